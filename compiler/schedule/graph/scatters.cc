// A scatter updates its base in place: the base itself where nothing else reads it, else a copy.
// Two iterations along an axis meet in no element where an index moves by a constant along it:
//   S[i, X[i, j]] += 1   ->   told apart by i, not by j
#include "compiler/schedule/graph/scatters.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scan_cells.h"

namespace kiln::schedule {
namespace {

bool is_only_base(const StageGraph& graph, TensorId tensor, const std::map<TensorId, Uses>& uses) {
  const Stage& stage = graph[tensor.stage];
  const Uses& use = uses.at(tensor);
  return stage.kind == Stage::Kind::Compute && stage.types.size() == 1 && stage.role.base_of < 0 &&
         !graph.is_parameter(tensor) && use.reads == 1 && use.scan_places == 0;
}

/// A scatter that also reads its base elsewhere than at the elements it updates needs it whole.
bool reads_base(const Stage& scatter) {
  bool found = false;
  std::vector<ir::Expr> exprs = scatter.as_scatter.indices;
  exprs.insert(exprs.end(), scatter.bodies.begin(), scatter.bodies.end());
  for (const ir::Expr& expr : exprs) {
    for_each_read(expr, [&](const ir::TensorRead& read) {
      found = found || TensorId{read.stage, read.output} == scatter.as_scatter.base;
    });
  }
  return found;
}

}  // namespace

void place_scatter_bases(StageGraph& graph) {
  const std::map<TensorId, Uses> uses = uses_of_tensors(graph);
  const size_t count = graph.stages.size();
  for (StageId id = 0; id < count; ++id) {
    if (graph[id].kind != Stage::Kind::Scatter) continue;
    const TensorId base = graph[id].as_scatter.base;
    if (!is_only_base(graph, base, uses) || reads_base(graph[id])) {
      const StageId copy = add_copy(graph, id, base, "base");
      graph.stages[id].as_scatter.base = {copy, 0};
    }
    graph.stages[graph[id].as_scatter.base.stage].role.base_of = static_cast<int>(id);
  }
}

bool tells_elements_apart(const StageGraph& graph, StageId id, AxisId axis) {
  const Stage& stage = graph[id];
  ir::Substitution from_zero;
  analysis::LoopRange asked;
  std::vector<analysis::LoopRange> others;
  for (const AxisId each : stage.data) {
    const Axis& given = graph.axes[each];
    const analysis::LoopRange range = {given.value, given.extent};
    from_zero.emplace(given.value, given.minimum + given.value);
    if (each == axis) {
      asked = range;
    } else {
      others.push_back(range);
    }
  }
  std::vector<ir::Expr> indices;
  for (const ir::Expr& index : stage.as_scatter.indices) {
    if (!has_read(index)) indices.push_back(ir::substitute(index, from_zero));  // data: any number
  }
  return asked.var && !indices.empty() && analysis::are_distinct(indices, {asked}, others);
}

bool may_meet(const StageGraph& graph, StageId id, AxisId loop) {
  const auto meets = [&](AxisId axis) { return may_meet(graph, id, axis); };
  for (const Relation& relation : graph[id].loops.relations) {
    const Split* split = std::get_if<Split>(&relation);
    if (split != nullptr && (split->outer == loop || split->inner == loop))
      return meets(split->parent);
    const Fuse* fuse = std::get_if<Fuse>(&relation);
    if (fuse != nullptr && fuse->fused == loop) return std::ranges::any_of(fuse->parts, meets);
  }
  return !tells_elements_apart(graph, id, loop);
}

bool is_in_one_piece(const Stage& scatter) {
  using language::Operator;
  const std::optional<Operator> how = scatter.as_scatter.combiner;
  const DType type = scatter.types[0];
  const bool is_extremum = how == Operator::Min || how == Operator::Max;
  const bool is_wide = size_of(type) >= 4 && type != DType::Bool;
  return is_wide && (is_extremum || (how == Operator::Add && is_int(type)));
}

bool has_meeting_threads(const StageGraph& graph, StageId id) {
  return std::ranges::any_of(graph[id].loops.leaves, [&](AxisId leaf) {
    const ir::ThreadAxis thread = graph.axes[leaf].thread;
    return (ir::is_thread_axis(thread) || ir::is_block_axis(thread)) && may_meet(graph, id, leaf);
  });
}

}  // namespace kiln::schedule
