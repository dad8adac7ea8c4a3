// A copy with the padding around it, so that the loops that read it ask no condition:
//   if_then_else(1 <= y + r && y + r <= h, X[y + r - 1], 0)  ->  X.padded[y + r]
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/new_stage.h"
#include "compiler/schedule/steps/padded_read.h"

namespace kiln::schedule {
namespace {

/// Of the stages that a body reads, beside one of them, that which is computed last.
StageId last_read(const StageGraph& graph, const ir::Expr& body, StageId known) {
  const auto place_of = [&](StageId id) { return std::ranges::find(graph.order, id); };
  auto last = place_of(known);
  for_each_read(body, [&](const ir::TensorRead& read) {
    const auto place = place_of(read.stage);
    if (place != graph.order.end()) last = std::max(last, place);
  });
  return *last;
}

}  // namespace

template <>
void apply<StepKind::CachePadded>(const StepContext& context) {
  StageGraph& graph = context.graph;
  const NewStage& made = context.made;
  const TensorId tensor{context.stage, context.step.output};
  const StageId reader = made.readers[0];
  const auto found = find_padded_read(graph, reader, tensor);
  if (const std::string* why = std::get_if<std::string>(&found)) {
    fail(ErrorKind::Unsupported, "CACHE_READ", "cannot make a padded copy of {} for {}: {}",
         graph.tensor_name(tensor), graph[reader].name, *why);
  }
  const PaddedRead& padded = std::get<PaddedRead>(found);
  Stage stage = stage_for(graph, tensor.stage, made);
  stage.is_touched = false;  // which stages there are says nothing of how they run
  stage.is_padding = true;
  stage.is_live = graph[reader].is_live;
  stage.types = {padded.value->type.element};
  stage.shapes = {padded.shape};
  ir::Substitution values;
  for (size_t d = 0; d < made.data.size(); ++d) {
    stage.data.push_back(
        add_axis(graph, made.data[d], AxisKind::Data, ir::index(0), padded.shape[d]));
    values[padded.axes[d]] = graph.axes[stage.data.back()].value;
  }
  stage.bodies = {ir::substitute(padded.body, values)};
  context.defined = stage.data;
  const StageId source = last_read(graph, stage.bodies[0], tensor.stage);
  read_padded(graph, reader, padded, enter_stage(graph, std::move(stage), source, false));
}

}  // namespace kiln::schedule
