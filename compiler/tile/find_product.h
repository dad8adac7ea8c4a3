#pragma once

#include <vector>

#include "compiler/tile/find_elements.h"

namespace kiln::tile {

/// A contraction in the terms of its definition. An axis of the output that both factors have is a
/// batch; that the first alone has, a row; the second alone, a column.
struct Product {
  language::StageId output = 0;
  std::vector<language::AxisId> axes;  // of the output
  Element rows;                        // the factor without the column
  Element columns;
  std::vector<language::AxisId> row_axes;  // all rows
  language::AxisId column = 0;             // the last column
  std::vector<language::AxisId> sums;      // the last of which is cut into tiles

  language::AxisId sum() const { return sums.back(); }
};

/// Finds the contraction in a definition. Throws Unsupported TILE_FORM with the reason where it is
/// none that tensor cores do.
class ProductFinder : public ElementFinder {
 public:
  using ElementFinder::ElementFinder;

  Product find();
  using ElementFinder::type_of;
  /// The same with sums in the order of the definition, of a window that may lie as it likes.
  const Product& find_sides();
  /// Of the sums of a product.
  language::AxisId longest_sum(const Product& product) const;
  /// The factors and sums alone of what stands in an expression.
  Product find_factors(language::ExprId expr, const Renamed& renamed);

 protected:
  void look_at_reduction(const language::Reduction& sum, DType type, const Renamed& outer) override;

 private:
  void set_sum();
  void set_sides();
  std::vector<language::AxisId> own_axes(const Element& one, const Element& other) const;
  bool has_columns_first() const;

  Product product_;
  bool has_sum_ = false;
};

}  // namespace kiln::tile
