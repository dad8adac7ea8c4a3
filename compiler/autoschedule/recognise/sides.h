#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// The data axes of a contraction by the factors that move along them, each in the order of the
/// stage.
struct Sides {
  std::vector<AxisId> batch;    // both factors, or neither
  std::vector<AxisId> rows;     // the row factor alone
  std::vector<AxisId> columns;  // the column factor alone
};

Sides sides_of(const StageGraph& graph, StageId stage, const Contraction& contraction);

/// The product of their extents; nothing where one is not known.
std::optional<int64_t> constant_extent_of(const StageGraph& graph, const std::vector<AxisId>& axes);

/// The longest of the axes whose extents are known.
std::optional<AxisId> longest_axis(const StageGraph& graph, const std::vector<AxisId>& axes);

/// A dimension that a split has cut: what is read at `outer` * length + `inner`, where `inner` runs
/// over that length.
struct CutDimension {
  AxisId outer = 0;
  AxisId inner = 0;
};
/// The two of these axes by which the index is one; nothing where it is something else.
std::optional<CutDimension> cut_dimension(const StageGraph& graph, const ir::Expr& index,
                                          const std::vector<AxisId>& axes);

/// Whether each index is one of the axes, or a dimension that two of them have cut, and each axis
/// is used once: a copy with these axes has the same elements in another order.
bool is_permuted(const StageGraph& graph, const ir::TensorRead& read,
                 const std::vector<AxisId>& axes);

/// Whether the index, as the axis runs, counts on from a multiple of the axis's length: a
/// dimension, or one of its equal parts.
bool begins_at_multiples(const StageGraph& graph, const ir::Expr& index, AxisId axis);

/// Elements that both an axis and the rows of what is read, where their length is known, are
/// multiples of: an axis has a part of a row where its sum is in parts.
int64_t common_width(const StageGraph& graph, const ir::TensorRead& read, AxisId axis);

/// Elements that lie one after the other in memory, and along these axes as one loop, too: those of
/// the last axes, which are the last dimensions of what is read, or the last part of one.
int64_t elements_in_order(const StageGraph& graph, const ir::TensorRead& read,
                          const std::vector<AxisId>& axes);

/// Whether the axes may be one loop whose parts are told apart by dividing by numbers that are
/// known: only the first may have an extent that is not.
bool may_be_one_loop(const StageGraph& graph, const std::vector<AxisId>& axes);

}  // namespace kiln::autoschedule
