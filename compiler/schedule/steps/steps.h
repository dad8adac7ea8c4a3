#pragma once

#include <string>
#include <vector>

#include "compiler/language/tables/step.h"
#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

using language::StepKind;

/// What a step makes that defines a stage, as the step table has it.
struct NewStage {
  std::string name;
  std::vector<std::string> data;    // names of its axes
  std::vector<std::string> reduce;  // likewise
  std::vector<AxisId> reduced;      // cache_write: the reduction axes of the step's stage so far
  std::vector<StageId> readers;     // cache_read, cache_padded
};

/// One step on its way into the records: its stage and axes by their positions in the graph.
struct StepContext {
  StageGraph& graph;
  const language::Step& step;
  int position;  // in the schedule
  StageId stage;
  std::vector<AxisId> axes;
  const NewStage& made;          // of a step that defines a stage
  std::vector<AxisId>& defined;  // the axes the step makes, in the order of the step table

  Stage& record() const { return graph.stages[stage]; }
  Axis& axis(size_t operand) const { return graph.axes[axes[operand]]; }
};

/// What the graph makes of a step that the state has taken: an edit of its stage, and the checks
/// that need expressions, proofs or the nest. One function a row of the step table.
template <StepKind kind>
void apply(const StepContext& context);

#define STEP(name, ...) \
  template <>           \
  void apply<StepKind::name>(const StepContext& context);
#include "compiler/language/tables/steps.def"
#undef STEP

/// Whether each stage that is attached inside a loop is read inside it only.
void check_attachments(StageGraph& graph, const language::Schedule& schedule);

/// Whether the steps that change no loops are about loops and memory that are there when all steps
/// are taken.
void check_hints(StageGraph& graph, const language::Schedule& schedule);

/// Refuses loops of scatters that would update one element at once or in another order than the
/// definition's. Integers may be combined in any order, one after the other.
void check_scatters(const StageGraph& graph, const language::Schedule& schedule);
/// The same where the target has no threads that could meet, or the order shows.
void refuse_meeting_updates(const StageGraph& graph, StageId scatter,
                            const language::Schedule& schedule);

/// "i.outer, j, i.inner"
std::string names_of_axes(const StageGraph& graph, const std::vector<AxisId>& axes);

/// "split(k, factor=4)"
std::string describe(const StageGraph& graph, const language::Step& step,
                     const std::vector<AxisId>& axes);

/// Runs `body`; an Error that leaves it says at which step, and has the step's line.
template <typename Body>
decltype(auto) at_step(const StageGraph& graph, const language::Step& step, int position,
                       const std::string& text, Body&& body) {
  try {
    return annotate(fmt::format("at step {}: {}", position + 1, text), std::forward<Body>(body));
  } catch (Error& error) {
    error.set_location(location_of(graph, step));
    throw;
  }
}

}  // namespace kiln::schedule
