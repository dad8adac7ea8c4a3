#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/tile/find_window.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// An element that a body reads: a tensor and, for each of its dimensions, an axis of the output or
/// one that is summed over. Of a window, whose indices are more than that, all axes in them.
struct Element {
  language::TensorId tensor;
  std::vector<language::AxisId> axes;
  std::optional<FactorRead> window;

  bool has(language::AxisId axis) const;
};

/// What the axes of an inlined stage are called in the output.
using Renamed = std::map<language::AxisId, language::AxisId>;

/// A contraction in the terms of its definition. An axis of the output that both factors have is a
/// batch; that the first alone has, a row; the second alone, a column.
struct Product {
  language::StageId output = 0;
  std::vector<language::AxisId> axes;  // of the output
  Element rows;                        // the factor without the column
  Element columns;
  std::vector<language::AxisId> row_axes;  // the last row; of a window, all rows
  language::AxisId column = 0;             // the last column
  std::vector<language::AxisId> sums;      // the last of which is cut into tiles

  language::AxisId sum() const { return sums.back(); }

  /// Its axes as they are called already.
  Renamed same() const;
};

/// Finds the contraction in a definition, and answers what is asked of it then. All of it throws
/// Unsupported TILE_FORM with the reason where it is no contraction that tensor cores do.
class ProductFinder {
 public:
  explicit ProductFinder(const language::Definition& definition) : definition_(definition) {}

  Product find();

  /// A stage of one body.
  const language::Compute& compute_of(language::StageId stage) const;
  /// The extent of a dimension or an axis.
  Extent extent_of(language::ExprId expr) const;
  /// What is read, where it is the element of each axis and all of the tensor.
  Element element_of(const language::Read& read, const Renamed& renamed) const;
  bool is_placeholder(language::TensorId tensor) const;
  /// The axes of a stage that is read at `element`, as the output calls them.
  Renamed renamed_of(const Element& element) const;

 private:
  void look_at(language::ExprId expr, const Renamed& renamed);
  void look_at_cast(const language::CastTo& cast, DType type, const Renamed& renamed);
  void look_at_sum(const language::Reduction& sum, DType type, Renamed renamed);
  Element factor_of(language::ExprId expr, const Renamed& renamed) const;
  Element plain_factor(const FactorRead& read) const;
  void require_from_zero(language::AxisId axis) const;
  void add_axis(Element& element, language::AxisId axis, language::ExprId extent) const;
  void set_sum();
  void set_sides();

  const language::Definition& definition_;
  Product product_;
  bool has_sum_ = false;
};

}  // namespace kiln::tile
