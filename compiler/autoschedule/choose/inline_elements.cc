// Element-wise stages leave memory, from the last one backwards:
//
//   T = X * X; U = T + 1; Y = U * tanh(U)  ->  Y = (X * X + 1) * tanh(X * X + 1)
//
// Halide's "compute inline where nothing is recomputed" (Ragan-Kelley et al., PLDI 2013).
#include "compiler/autoschedule/choose/inline_elements.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/templates/step_writer.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Reads of an expression in which an element is written out several times: names of one that name
// others are as many as their product.
constexpr size_t kMostReads = 64;

/// Whether each iteration of the reader is at another element.
bool moves_with_each_loop(const StageGraph& graph, const Stage& reader,
                          const ir::TensorRead& read) {
  const auto is_index = [&](AxisId axis) {
    return std::ranges::find(read.indices, ir::Expr(graph.axes[axis].value)) != read.indices.end();
  };
  return std::ranges::all_of(reader.data, is_index) && std::ranges::all_of(reader.reduce, is_index);
}

bool reads_each_element_once(const StageGraph& graph, StageId id, StageId reader, Reads allowed) {
  std::vector<ir::Expr> reads = reads_written_out(graph, reader);
  const size_t all = reads.size();
  std::erase_if(reads,
                [&](const ir::Expr& read) { return ir::as<ir::TensorRead>(read)->stage != id; });
  if (reads.empty() || (allowed == Reads::Once && reads.size() > 1)) return false;
  if (reads.size() > 1 && all + reads.size() * reads_written_out(graph, id).size() > kMostReads)
    return false;
  return moves_with_each_loop(graph, graph[reader], *ir::as<ir::TensorRead>(reads[0])) &&
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
