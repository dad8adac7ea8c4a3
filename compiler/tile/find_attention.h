#pragma once

#include <optional>
#include <vector>

#include "compiler/tile/find_elements.h"

namespace kiln::tile {

/// An expression, and what its axes are called in the output.
struct Place {
  language::ExprId expr = 0;
  Renamed renamed;
};

/// Keys from `end` on are not seen, which is made of places of the other axes and grows by
/// `per_row` from one query to the next. What they see is `score`, in the terms of the scores.
struct SeenKeys {
  language::ExprId score = 0;
  Place end;
  int64_t per_row = 0;
  bool includes_end = false;
};

/// A softmax of products, times a matrix, in the terms of its definition:
///
///   O[.., i, d] = sum[j](float32(P[.., i, j]) * float32(V[.., j, d])), where
///   P[.., i, j] = float16(exp(S[.., i, j] - max[j](S[.., i, j])) / sum[j](exp(..)))
///   S[.., i, j] is made of sum[k](float32(Q[.., i, k]) * float32(K[.., j, k])), element by element
struct Attention {
  language::StageId output = 0;
  std::vector<language::AxisId> axes;  // of the output
  language::AxisId row = 0;            // i: only queries have it; the last if there are several
  language::AxisId column = 0;         // d: only values have it
  language::AxisId key = 0;            // j
  language::AxisId depth = 0;          // k
  Element query;
  Element keys;
  Element values;
  Place scores;                       // S
  std::optional<SeenKeys> seen;       // where S is -inf for all that a row does not see
  bool has_stage_of_weights = false;  // P is one, as they are multiplied
};

/// Finds the attention in a definition. Throws Unsupported TILE_FORM where it is none, and where it
/// is one that is not done on tiles.
class AttentionFinder : public ElementFinder {
 public:
  using ElementFinder::ElementFinder;

  Attention find();
  /// Whether what was thrown was about an attention: about its parts, not that there is none.
  bool has_weights() const { return has_weights_; }

 protected:
  void look_at_reduction(const language::Reduction& sum, DType type, const Renamed& outer) override;

 private:
  Place followed(Place place) const;
  bool is_weight(Place place);
  bool is_stage(language::ExprId factor) const;
  bool are_same(Place a, Place b);
  bool is_over_keys(const Place& reduction, language::Combiner combiner, const Place& source);
  std::optional<int64_t> growth_of(const Place& end) const;
  void set_scores();
  void set_seen();
  void set_axes();

  Attention attention_;
  DType weight_ = DType::Float32;
  bool has_sum_ = false;
  bool has_weights_ = false;
  int compared_ = 0;
};

}  // namespace kiln::tile
