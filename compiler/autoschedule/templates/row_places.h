#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/rows.h"

namespace kiln::autoschedule {

/// Where stages read a tensor whose elements lie as those of a row do: that of the first element
/// of the row `first` in each dimension, the others behind it from dimension `from` on.
///
///   sum[c < 8, x < 56](X[n, g*8 + c, x])    first n, g*8, 0; from 1
struct RowPlace {
  std::vector<ir::Expr> first;
  size_t from = 0;

  bool is_same(const RowPlace& other) const;
};

/// The stages that are rows of the first `dimensions` of `last`, or of parts of the last of these.
class RowPlaces {
 public:
  RowPlaces(const StageGraph& graph, StageId last, size_t dimensions,
            const std::optional<RowPart>& part);

  /// The place of a read by a stage with a line; nothing where the elements of a line are not
  /// neighbours in its order, or where they do not fill a box.
  std::optional<RowPlace> place_of(StageId reader, const ir::TensorRead& read) const;

 private:
  const StageGraph& graph_;
  const StageId last_;
  const std::optional<RowPart> part_;
  std::vector<ir::VarRef> rows_;  // the dimensions that say which row
  ir::VarRef inside_;             // of a part
};

}  // namespace kiln::autoschedule
