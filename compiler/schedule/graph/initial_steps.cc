// What a cell reads of a stage outside of it at its own step t is never asked for at the initial
// steps, which init gives. Programs write such a stage over all steps nevertheless, for its shape
// to be the state's, and read X[t - 1] in it. Its axis then counts from the first step that is
// computed.
#include "compiler/schedule/graph/initial_steps.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/cell_steps.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

/// The steps at which a stage is read, and which of its dimensions they are.
struct StepsRead {
  size_t dimension = 0;
  ir::Expr first;
  ir::Expr count;
  bool is_reverse = false;
};

/// Finds the steps at which all readers of one stage read it.
class FindSteps {
 public:
  FindSteps(const StageGraph& graph, const Cells& cells, StageId stage)
      : graph_(graph), cells_(cells), stage_(stage) {}

  /// Nothing where one reads it otherwise than at its own step of a cell.
  std::optional<StepsRead> find() {
    for (const Axis& axis : graph_.axes) {
      if (is_read_in(axis.minimum) || is_read_in(axis.extent)) return std::nullopt;
    }
    for (StageId reader = 0; reader < graph_.stages.size(); ++reader) {
      if (!reads(direct_inputs(graph_, graph_[reader]))) continue;
      const std::optional<CellSteps>& steps = cells_.steps_of(reader);
      if (!steps || graph_[reader].kind != Stage::Kind::Compute) return std::nullopt;
      for (const ir::Expr& body : graph_[reader].bodies)
        look_at(body, *steps);
    }
    return is_at_step_ ? found_ : std::nullopt;
  }

 private:
  bool is_read_in(const ir::Expr& bound) const {
    bool found = false;
    for_each_read(bound,
                  [&](const ir::TensorRead& read) { found = found || read.stage == stage_; });
    return found;
  }

  bool reads(const std::vector<TensorId>& inputs) const {
    return std::ranges::any_of(inputs, [&](TensorId input) { return input.stage == stage_; });
  }

  void look_at(const ir::Expr& body, const CellSteps& steps) {
    const ir::Expr time(graph_.axes[steps.time].value);
    for_each_read(body, [&](const ir::TensorRead& read) {
      if (read.stage != stage_) return;
      const auto at = std::find(read.indices.begin(), read.indices.end(), time);
      if (at == read.indices.end()) {
        is_at_step_ = false;
        return;
      }
      const auto dimension = static_cast<size_t>(at - read.indices.begin());
      if (!found_) found_ = StepsRead{dimension, steps.first, steps.count, steps.is_reverse};
      is_at_step_ = is_at_step_ && found_->dimension == dimension &&
                    ir::equal_trees(found_->first, steps.first) &&
                    ir::equal_trees(found_->count, steps.count);
    });
  }

  const StageGraph& graph_;
  const Cells& cells_;
  const StageId stage_;
  std::optional<StepsRead> found_;
  bool is_at_step_ = true;
};

void drop(StageGraph& graph, StageId id, const StepsRead& steps) {
  Stage& stage = graph.stages[id];
  const AxisId dropped = stage.data[steps.dimension];
  const ir::VarRef value = graph.axes[dropped].value;
  const ir::Substitution later = {{value, steps.first + ir::Expr(value)}};
  for (ir::Expr& body : stage.bodies)
    body = ir::substitute(body, later);
  for (Axis& axis : graph.axes) {
    axis.minimum = ir::substitute(axis.minimum, later);
    axis.extent = ir::substitute(axis.extent, later);
  }
  graph.axes[dropped].extent = steps.count;
  for (std::vector<ir::Expr>& shape : stage.shapes)
    shape[steps.dimension] = steps.count;
  for (Stage& reader : graph.stages) {
    for (ir::Expr& body : reader.bodies) {
      body = replace_reads(body, [&](const ir::TensorRead& read) {
        std::vector<ir::Expr> indices = read.indices;
        if (read.stage == id) indices[steps.dimension] = indices[steps.dimension] - steps.first;
        return ir::TensorRead::make(read.type, read.stage, read.output, std::move(indices));
      });
    }
  }
}

}  // namespace

void drop_initial_steps(StageGraph& graph) {
  const Cells cells(graph);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    if (stage.kind != Stage::Kind::Compute || cells.steps_of(id) || graph.has_parameter(id))
      continue;
    const std::optional<StepsRead> steps = FindSteps(graph, cells, id).find();
    if (!steps) continue;
    const ir::VarRef& time = graph.axes[stage.data[steps->dimension]].value;
    const bool tells = std::ranges::any_of(stage.bodies, [&](const ir::Expr& body) {
      return tells_first_step(body, time, steps->is_reverse);
    });
    if (tells) drop(graph, id, *steps);
  }
}

}  // namespace kiln::schedule
