// Element-wise stages leave memory, from the last one backwards:
//
//   T = X * X; U = T + 1; Y = U * tanh(U)  ->  Y = (X * X + 1) * tanh(X * X + 1)
//
// Halide's "compute inline where nothing is recomputed" (Ragan-Kelley et al., PLDI 2013).
#include "compiler/autoschedule/choose/inline_elements.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/templates/step_writer.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Reads of an expression in which an element is written out several times, a limit of the code:
// names of one that name others are as many as their product.
constexpr size_t kMostReads = 64;

/// Whether what is side by side in a stage is so in all that it reads along that axis.
bool reads_along_rows(const StageGraph& graph, StageId id, const std::vector<ir::Expr>& reads) {
  const ir::VarRef& last = graph.axes[graph[id].data.back()].value;
  return std::ranges::all_of(reads, [&](const ir::Expr& read) {
    const std::vector<ir::Expr>& indices = ir::as<ir::TensorRead>(read)->indices;
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool is_row = d + 1 == indices.size() && indices[d] == ir::Expr(last);
      if (!is_row && ir::uses_var(indices[d], last)) return false;
    }
    return true;
  });
}

/// Whether the stage is made of rows and of what was computed of whole rows, as their mean, so that
/// one launch may have all of it.
bool reads_of_whole_rows(const StageGraph& graph, StageId id, const std::vector<ir::Expr>& reads) {
  return std::ranges::any_of(reads, [&](const ir::Expr& each) {
    const auto* read = ir::as<ir::TensorRead>(each);
    const auto is_used = [&](AxisId axis) { return is_used_in(graph, *read, axis); };
    return graph[read->stage].kind != Stage::Kind::Placeholder &&
           !std::ranges::all_of(graph[id].data, is_used);
  });
}

/// Whether each iteration of the reader is at another element. Where a compiler finds what is the
/// same, also as a view of other extents is: Y[i, j] = T[i / 1024, i % 1024, j / 64, j % 64];
/// unless elements of T then lie apart that a launch of its own would read side by side.
bool moves_with_each_loop(const StageGraph& graph, StageId id, const Stage& reader,
                          const ir::TensorRead& read, Reads allowed) {
  const auto is_index = [&](AxisId axis) {
    return std::ranges::find(read.indices, ir::Expr(graph.axes[axis].value)) != read.indices.end();
  };
  if (std::ranges::all_of(reader.data, is_index) && std::ranges::all_of(reader.reduce, is_index))
    return true;
  if (allowed == Reads::Once || graph[id].data.empty()) return false;
  const std::vector<ir::Expr> own = reads_written_out(graph, id);
  if (!reads_along_rows(graph, id, own) || reads_of_whole_rows(graph, id, own)) return false;
  std::vector<analysis::LoopRange> loops;
  for (const auto* axes : {&reader.data, &reader.reduce}) {
    for (const AxisId axis : *axes) {
      if (!ir::is_const(graph.axes[axis].minimum, 0)) return false;
      loops.push_back({graph.axes[axis].value, graph.axes[axis].extent});
    }
  }
  return analysis::are_distinct(read.indices, loops);
}

bool reads_each_element_once(const StageGraph& graph, StageId id, StageId reader, Reads allowed) {
  std::vector<ir::Expr> reads = reads_written_out(graph, reader);
  const size_t all = reads.size();
  std::erase_if(reads,
                [&](const ir::Expr& read) { return ir::as<ir::TensorRead>(read)->stage != id; });
  if (reads.empty() || (allowed == Reads::Once && reads.size() > 1)) return false;
  if (reads.size() > 1 && all + reads.size() * reads_written_out(graph, id).size() > kMostReads)
    return false;
  return moves_with_each_loop(graph, id, graph[reader], *ir::as<ir::TensorRead>(reads[0]),
                              allowed) &&
         std::ranges::all_of(reads,
                             [&](const ir::Expr& read) { return ir::equal_trees(read, reads[0]); });
}

bool can_be_inline(const StageGraph& graph, StageId id, Reads allowed) {
  const Stage& stage = graph[id];
  if (!is_free(graph, id) || graph.has_parameter(id) || stage.is_reduction() ||
      stage.bodies.size() != 1 || !reductions_inside(graph, id).empty()) {
    return false;
  }
  const std::vector<StageId> readers = schedule::readers_of(graph, id);
  if (readers.size() != 1) return false;
  const Stage& reader = graph[readers[0]];
  return reader.kind == Stage::Kind::Compute && !reader.is_touched && reader.role.cell_of < 0 &&
         !reader.role.is_init && reads_each_element_once(graph, id, readers[0], allowed);
}

}  // namespace

OpenSchedule with_inline_elements(const language::Kernel& kernel, OpenSchedule given, Reads reads) {
  StageGraph graph = graph_of(kernel, given);
  std::vector<StageId> found;
  // What reads is inline before what it reads, and both have one reader then.
  for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
    if (!can_be_inline(graph, *id, reads)) continue;
    graph.stages[*id].attach.kind = schedule::Attach::Kind::Inline;
    found.push_back(*id);
  }
  std::ranges::reverse(found);
  StepWriter steps(std::move(given.schedule), graph);
  for (const StageId id : found)
    steps.compute_inline(id);
  given.schedule = std::move(steps).schedule();
  return given;
}

}  // namespace kiln::autoschedule
