// Which reductions inside an expression become stages: on a CPU those that then have vectors of
// their own, on a GPU those that the caller asks for.
//
//   Y[i, j] = tanh(sum[k](A[i, k] * B[k, j]))  ->  S[i, j] = sum[k](..); Y[i, j] = tanh(S[i, j])
//
// By the step reduction_stage. What reduces a row, as in a softmax, stays where it is, since its
// vectors are along the reduction anyway.
#include "compiler/autoschedule/recognise/inner_reductions.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/schedule/steps/apply_steps.h"

namespace kiln::autoschedule {
namespace {

/// Whether one step can name the reduction: of one value, by axes of the definition that are its
/// own.
bool can_be_named(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const size_t known = graph.kernel->definition.axes.size();
  const bool has_whole = *stage.part_of < graph.kernel->definition.stages.size();
  const bool has_data = std::ranges::all_of(stage.stands_for, [&](AxisId axis) {
    return axis < known && graph.axes[axis].stage == *stage.part_of &&
           graph.axes[axis].kind == schedule::AxisKind::Data;
  });
  return stage.bodies.size() == 1 && has_whole && has_data &&
         std::ranges::all_of(stage.reduce, [&](AxisId axis) {
           return axis < known && !graph.axes[axis].is_shared;
         });
}

/// The reducer, where it has a name of the table.
std::string_view word_for(const ir::Expr& body) {
  const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
  return reduce->how.combiner ? language::row_of(*reduce->how.combiner).spelling : "reduction";
}

}  // namespace

std::optional<language::Step> reduction_stage_of(const StageGraph& graph, StageId part) {
  if (!can_be_named(graph, part)) return std::nullopt;
  const Stage& stage = graph[part];
  language::Step step{.kind = language::StepKind::ReductionStage, .stage = *stage.part_of};
  step.axes = stage.stands_for;
  step.axes.insert(step.axes.end(), stage.reduce.begin(), stage.reduce.end());
  step.tag = word_for(stage.bodies[0]);
  return step;
}

bool gains_vectors(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  if (has_dependent_extents(graph, id) || has_indirect_reads(stage)) return false;
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty() || !vector_factor(graph, id, columns.back(), kVectorBytes)) return false;
  return is_product(graph, id) || has_vectors_along_data(graph, id);
}

language::Schedule with_reduction_stages(
    const language::Kernel& kernel, language::Schedule given,
    const std::function<bool(const StageGraph&, StageId)>& gains) {
  StageGraph graph = schedule::build_stage_graph(kernel);
  const auto is_part = [](const Stage& stage) { return stage.part_of && stage.is_live; };
  if (std::ranges::none_of(graph.stages, is_part)) return given;
  schedule::apply_steps(graph, given);
  const std::vector<bool> touched = touched_roots(graph);
  for (const StageId id : graph.order) {
    const Stage& stage = graph[id];
    if (!is_part(stage) || touched[root_of(graph, *stage.part_of)]) continue;
    const bool is_inline = graph[*stage.part_of].attach.kind == schedule::Attach::Kind::Inline;
    if (is_inline || !gains(graph, id)) continue;
    std::optional<language::Step> step = reduction_stage_of(graph, id);
    if (step) given.steps.push_back(*std::move(step));
  }
  return given;
}

}  // namespace kiln::autoschedule
