#pragma once

#include <functional>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Calls `f` for each TensorRead in `expr`, indices of reads included.
void for_each_read(const ir::Expr& expr, const std::function<void(const ir::TensorRead&)>& f);

bool has_read(const ir::Expr& expr);

/// What is cast, however often.
ir::Expr without_casts(ir::Expr expr);

/// `expr` with each TensorRead replaced; `f` gets reads whose indices are rewritten already.
ir::Expr replace_reads(const ir::Expr& expr,
                       const std::function<ir::Expr(const ir::TensorRead&)>& f);

/// The minimum and the extent of each axis that a stage reduces over; they may read tensors.
std::vector<ir::Expr> reduction_bounds(const StageGraph& graph, const Stage& stage);

/// All expressions of a stage: bounds of its reductions, its conditions, indices of a scatter, then
/// its bodies.
std::vector<ir::Expr> reading_parts(const StageGraph& graph, const Stage& stage);

/// Tensors that a stage needs directly: reads of its bodies and of the bounds of its reductions;
/// init and update of a scan; the base of a scatter.
std::vector<TensorId> direct_inputs(const StageGraph& graph, const Stage& stage);

/// The stages that read outputs of `stage`, with readers that are computed inline replaced by their
/// own readers, in the order of the graph. Scans do not count as readers of their init and update.
std::vector<StageId> readers_of(const StageGraph& graph, StageId stage);
/// The same for each stage, in any order.
std::vector<std::vector<StageId>> readers_of_each(const StageGraph& graph);

/// The bodies of `stage`, the indices of a scatter and the bounds of its reductions, with inline
/// stages written out.
std::vector<ir::Expr> expanded_bodies(const StageGraph& graph, StageId stage);
std::vector<ir::Expr> expanded_bounds(const StageGraph& graph, StageId stage);
/// Likewise what the reductions of `stage` start from.
std::vector<ir::Expr> expanded_inits(const StageGraph& graph, StageId stage);

/// The graph with all inline stages written out in the bodies of the others.
StageGraph written_out(const StageGraph& graph);

/// Refuses to write out what would not end: ResourceExhausted INLINE_LIMIT.
void refuse_large_inlining(const StageGraph& graph);

}  // namespace kiln::schedule
