#pragma once

#include <functional>

#include "compiler/schedule/stage_graph.h"

namespace kiln::schedule {

/// Calls `f` for each TensorRead in `expr`, indices of reads included.
void for_each_read(const ir::Expr& expr, const std::function<void(const ir::TensorRead&)>& f);

/// `expr` with each TensorRead replaced; `f` gets reads whose indices are rewritten already.
ir::Expr replace_reads(const ir::Expr& expr,
                       const std::function<ir::Expr(const ir::TensorRead&)>& f);

/// Tensors that a stage needs directly: reads of its bodies; init and update of a scan.
std::vector<TensorId> direct_inputs(const Stage& stage);

/// The stages that read outputs of `stage`, with readers that are computed inline replaced by their
/// own readers, in the order of the graph. Scans do not count as readers of their init and update.
std::vector<StageId> readers_of(const StageGraph& graph, StageId stage);

/// The bodies of `stage` with inline stages written out.
std::vector<ir::Expr> expanded_bodies(const StageGraph& graph, StageId stage);

/// Refuses to write out what would not end: ResourceExhausted INLINE_LIMIT.
void refuse_large_inlining(const StageGraph& graph);

}  // namespace kiln::schedule
