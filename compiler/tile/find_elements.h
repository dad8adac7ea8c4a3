#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/language/evaluate/scalar.h"
#include "compiler/language/kernel.h"
#include "compiler/tile/find_window.h"
#include "compiler/tile/form_error.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// What the axes of an inlined stage are called in the output.
using Renamed = std::map<language::AxisId, language::AxisId>;

/// A factor that is made of elements, in the type that tensor cores multiply.
struct ComputedFactor {
  language::ExprId expr = 0;
  Renamed renamed;
};

/// An element that a body reads: a tensor and, for each of its dimensions, an axis of the output or
/// one that is summed over. Of a window, whose indices are more than that, all axes in them; and
/// of a computed factor those of all that it is made of, first of what has the most.
struct Element {
  language::TensorId tensor;
  std::vector<language::AxisId> axes;
  std::optional<FactorRead> window;
  bool in_tf32 = false;  // of float32, what tf32() leaves is read
  std::optional<ComputedFactor> computed = {};

  bool has(language::AxisId axis) const;
};

/// These axes as they are called already.
Renamed same_names(const std::vector<language::AxisId>& axes);

constexpr std::string_view kNoProduct =
    "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
    "integers in int32";

/// What does on tiles what an operator does: there both results of a choice are there.
inline language::Operator tile_function(language::Operator op) {
  return op == language::Operator::IfThenElse ? language::Operator::Select : op;
}

/// The extent of a dimension or an axis. Throws as refuse_form does where it is neither a number
/// nor a size.
Extent extent_of(const language::Definition& definition, language::ExprId expr);

/// Looks at what is computed element by element, through the stages that it reads, for what is not;
/// and answers what is asked of elements. All of it throws as refuse_form does where tiles are not
/// computed so.
class ElementFinder {
 public:
  explicit ElementFinder(const language::Definition& definition) : definition_(definition) {}
  virtual ~ElementFinder() = default;

  /// A stage of one body.
  const language::Compute& compute_of(language::StageId stage) const;
  Extent extent_of(language::ExprId expr) const { return tile::extent_of(definition_, expr); }
  /// What is read, where it is the element of each axis and all of the tensor.
  Element element_of(const language::Read& read, const Renamed& renamed) const;
  bool is_placeholder(language::TensorId tensor) const;
  /// The axes of a stage that is read at `element`, as the output calls them.
  Renamed renamed_of(const Element& element) const;
  /// What an expression is that is made of numbers alone.
  std::optional<language::Scalar> number_of(language::ExprId expr) const;
  /// Of reductions, calls look_at_reduction.
  void look_at(language::ExprId expr, const Renamed& renamed);

 protected:
  virtual void look_at_reduction(const language::Reduction& reduction, DType type,
                                 const Renamed& renamed) = 0;
  /// The one output, all of whose parameters are of types that tiles have.
  language::StageId find_output() const;
  Element factor_of(language::ExprId expr, const Renamed& renamed);
  DType type_of(const Element& factor) const;

  const language::Definition& definition_;

 private:
  void look_at_cast(const language::CastTo& cast, DType type, const Renamed& renamed);
  double look_at_place(language::ExprId expr, const Renamed& renamed);
  Element computed_factor(language::ExprId expr, const Renamed& renamed);
  void collect_axes(language::ExprId expr, const Renamed& renamed, Element& factor) const;
  void set_plain_axes(Element& element, const FactorRead& read) const;
  void require_from_zero(language::AxisId axis) const;
  void add_axis(Element& element, language::AxisId axis, language::ExprId extent) const;

  int looked_at_ = 0;
  std::set<std::pair<language::TensorId, std::vector<language::AxisId>>> stages_;  // looked at
};

}  // namespace kiln::tile
