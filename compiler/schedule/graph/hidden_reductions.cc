// Takes reductions out innermost first, so that one inside another is a stage that the other reads.
// Two equal reductions of one reducer (an argmax and its value) are one stage with two outputs. A
// reduction keeps its axes, so that steps that name them find it; only where two reductions run
// over one axis has the second a copy of it.
#include "compiler/schedule/graph/hidden_reductions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/schedule/graph/cell_steps.h"
#include "compiler/schedule/graph/expressions.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

class CollectVars : public ir::Visitor {
 public:
  std::vector<ir::VarRef> vars;

 private:
  using Visitor::visit;
  void visit(const ir::Var& var) override {
    if (std::find(vars.begin(), vars.end(), ir::VarRef(&var)) == vars.end()) vars.push_back(&var);
  }
};

/// Takes the reductions out of the bodies of one stage.
class TakeOut : public ir::Mutator {
 public:
  TakeOut(StageGraph& graph, StageId stage, Cells& cells, std::unordered_set<AxisId>& taken)
      : graph_(graph), stage_(stage), cells_(cells), taken_(taken) {
    for (AxisId id = 0; id < graph.axes.size(); ++id)
      axis_of_[graph.axes[id].value] = id;
  }

  /// A reduction without others inside of it.
  ir::Expr without_inner(const ir::Reduce& reduce) {
    const auto all = [this](const std::vector<ir::Expr>& list) {
      std::vector<ir::Expr> result;
      for (const ir::Expr& expr : list)
        result.push_back((*this)(expr));
      return result;
    };
    const ir::Expr condition = reduce.condition ? (*this)(reduce.condition) : ir::Expr();
    std::vector<ir::Expr> init = all(reduce.init);
    if (condition) ++branches_;
    std::vector<ir::Expr> sources = all(reduce.sources);
    if (condition) --branches_;
    return ir::Reduce::make(reduce.how, std::move(sources), condition, std::move(init),
                            reduce.axes);
  }

 private:
  using Mutator::visit;

  ir::Expr visit(const ir::Call& call) override {
    if (call.op != language::Operator::IfThenElse) return Mutator::visit(call);
    const ir::Expr condition = (*this)(call.args[0]);
    ++branches_;
    const ir::Expr yes = (*this)(call.args[1]);
    const ir::Expr no = (*this)(call.args[2]);
    --branches_;
    return ir::Call::make(call.op, {condition, yes, no});
  }

  ir::Expr visit(const ir::Reduce& reduce) override {
    const auto known = made_.find(&reduce);
    if (known != made_.end()) return known->second;
    for (const auto& [other, read] : made_) {
      const bool same = other->how.reducer && other->how.reducer == reduce.how.reducer &&
                        other->sources == reduce.sources && other->axes == reduce.axes &&
                        other->condition == reduce.condition && other->init == reduce.init;
      if (!same) continue;
      const ir::TensorRead& before = *ir::as<ir::TensorRead>(read);
      return made_[&reduce] =
                 ir::TensorRead::make(reduce.type, before.stage, reduce.how.output, before.indices);
    }
    const ir::Expr rewritten = without_inner(reduce);
    return made_[&reduce] = read_of_new_stage(*ir::as<ir::Reduce>(rewritten));
  }

  ir::Expr read_of_new_stage(const ir::Reduce& reduce) {
    const StageId id = static_cast<StageId>(graph_.stages.size());
    const ir::Reducer* reducer = reduce.how.reducer.get();
    Stage stage;
    stage.kind = Stage::Kind::Compute;
    stage.name = fmt::format("{}.{}", graph_[stage_].name,
                             reducer != nullptr ? std::string_view(reducer->name)
                                                : row_of(*reduce.how.combiner).spelling);
    stage.origin = graph_[stage_].origin;
    stage.part_of = stage_;
    stage.from_branch = branches_ > 0;
    for (const ir::Expr& source : reduce.sources)
      stage.types.push_back(source->type.element);
    const std::vector<ir::Expr> parts = parts_of(reduce);
    const bool needs_state =
        std::ranges::any_of(parts, [&](const ir::Expr& part) { return cells_.needs_state(part); });

    ir::Substitution renamed;
    std::vector<ir::Expr> indices;
    std::vector<ir::Expr> shape;
    for (const AxisId outer : axes_used_by(parts, reduce.axes)) {
      const Axis axis = needs_state ? graph_.axes[outer] : without_initial_steps(outer, parts);
      const ir::VarRef value = ir::Var::make(axis.name);
      stage.data.push_back(add_axis({.name = axis.name,
                                     .kind = AxisKind::Data,
                                     .stage = id,
                                     .value = value,
                                     .minimum = ir::index(0),
                                     .extent = axis.extent}));
      stage.stands_for.push_back(outer);
      renamed[axis.value] = axis.minimum + ir::Expr(value);
      indices.push_back(ir::Expr(axis.value) - axis.minimum);
      shape.push_back(axis.extent);
    }
    std::vector<ir::VarRef> values;
    for (const ir::VarRef& value : reduce.axes) {
      stage.reduce.push_back(own_axis(axis_of_.at(value), id, renamed));
      values.push_back(graph_.axes[stage.reduce.back()].value);
    }
    stage.shapes.assign(stage.types.size(), shape);
    add_bodies(stage, reduce_over(reduce, renamed, values));
    graph_.stages.push_back(std::move(stage));
    cells_.add_stage(needs_state);
    return ir::TensorRead::make(reduce.type, id, reduce.how.output, std::move(indices));
  }

  /// One for each output of the reduction.
  static void add_bodies(Stage& stage, const ir::Expr& reduce) {
    const ir::Reduce& body = *ir::as<ir::Reduce>(reduce);
    for (uint32_t output = 0; output < stage.types.size(); ++output) {
      ir::Combination how = body.how;
      how.output = output;
      stage.bodies.push_back(
          ir::Reduce::make(how, body.sources, body.condition, body.init, body.axes));
    }
  }

  /// The axis, over those of its values alone that the stage is computed at. A sum that needs no
  /// state leaves the time loop of its scan, but must not be asked for at the initial steps.
  Axis without_initial_steps(AxisId id, const std::vector<ir::Expr>& parts) const {
    Axis axis = graph_.axes[id];
    const std::optional<CellSteps>& steps = cells_.steps_of(stage_);
    if (!steps || steps->time != id) return axis;
    const bool tells = std::ranges::any_of(parts, [&](const ir::Expr& part) {
      return tells_first_step(part, axis.value, steps->is_reverse);
    });
    if (!tells) return axis;
    axis.minimum = steps->first;
    axis.extent = steps->count;
    return axis;
  }

  AxisId add_axis(Axis axis) {
    graph_.axes.push_back(std::move(axis));
    return static_cast<AxisId>(graph_.axes.size() - 1);
  }

  /// The reduction axis itself, so that steps find it; a copy when another reduction has it
  /// already.
  AxisId own_axis(AxisId id, StageId stage, ir::Substitution& renamed) {
    Axis axis = graph_.axes[id];
    axis.stage = stage;
    axis.minimum = ir::substitute(axis.minimum, renamed);
    axis.extent = ir::substitute(axis.extent, renamed);
    if (taken_.insert(id).second) {
      graph_.axes[id] = axis;
      return id;
    }
    graph_.axes[id].is_shared = axis.is_shared = true;
    const ir::VarRef before = axis.value;
    axis.value = ir::Var::make(axis.name);
    renamed[before] = axis.value;
    return add_axis(std::move(axis));
  }

  /// Sources, condition, start values, and the bounds of the axes.
  std::vector<ir::Expr> parts_of(const ir::Reduce& reduce) const {
    std::vector<ir::Expr> parts = reduce.sources;
    if (reduce.condition) parts.push_back(reduce.condition);
    parts.insert(parts.end(), reduce.init.begin(), reduce.init.end());
    for (const ir::VarRef& value : reduce.axes) {
      parts.push_back(graph_.axes[axis_of_.at(value)].minimum);
      parts.push_back(graph_.axes[axis_of_.at(value)].extent);
    }
    return parts;
  }

  /// Axes outside the reduction that its parts use, in the order of their ids.
  std::vector<AxisId> axes_used_by(const std::vector<ir::Expr>& parts,
                                   const std::vector<ir::VarRef>& reduced) {
    CollectVars collect;
    for (const ir::Expr& part : parts)
      collect(part);
    std::vector<AxisId> used;
    for (const ir::VarRef& var : collect.vars) {
      const auto axis = axis_of_.find(var);
      const bool own = std::find(reduced.begin(), reduced.end(), var) != reduced.end();
      if (axis == axis_of_.end() || own) continue;
      refuse_dependent_extent(axis->second);
      used.push_back(axis->second);
    }
    std::sort(used.begin(), used.end());
    return used;
  }

  void refuse_dependent_extent(AxisId id) {
    CollectVars collect;
    collect(graph_.axes[id].extent);
    for (const ir::VarRef& var : collect.vars) {
      if (!axis_of_.contains(var)) continue;
      fail(ErrorKind::InvalidArgument, "REDUCTION_PLACE",
           "reductions are only allowed at the top level of compute: the one inside {} uses {}, "
           "whose extent depends on {}; reduce over both axes at once, or make a stage of its own",
           graph_[stage_].name, graph_.axes[id].name, var->name);
    }
  }

  StageGraph& graph_;
  const StageId stage_;
  Cells& cells_;
  std::unordered_set<AxisId>& taken_;
  std::unordered_map<ir::VarRef, AxisId> axis_of_;
  std::unordered_map<const ir::Reduce*, ir::Expr> made_;
  int branches_ = 0;
};

/// Whether the bodies are reductions that one nest computes.
bool is_one_reduction(const StageGraph& graph, StageId id) {
  const language::Definition& definition = graph.kernel->definition;
  const auto& compute = std::get<language::Compute>(definition.stages[id]);
  return definition.whole_reduction(compute) != nullptr;
}

}  // namespace

void take_out_reductions(StageGraph& graph) {
  const size_t count = graph.stages.size();
  std::unordered_set<AxisId> taken;
  Cells cells(graph);
  for (StageId id = 0; id < count; ++id) {
    if (graph[id].kind != Stage::Kind::Compute) continue;
    const bool whole = is_one_reduction(graph, id);
    if (whole) {
      const ir::Reduce& reduce = *ir::as<ir::Reduce>(graph[id].bodies[0]);
      for (AxisId axis = 0; axis < graph.axes.size(); ++axis) {
        const auto at = std::find(reduce.axes.begin(), reduce.axes.end(), graph.axes[axis].value);
        if (at == reduce.axes.end()) continue;
        graph.axes[axis].stage = id;
        taken.insert(axis);
      }
      for (const ir::VarRef& value : reduce.axes) {
        for (AxisId axis = 0; axis < graph.axes.size(); ++axis) {
          if (graph.axes[axis].value == value) graph.stages[id].reduce.push_back(axis);
        }
      }
    }
    TakeOut take_out(graph, id, cells, taken);
    const std::vector<ir::Expr> bodies = graph[id].bodies;
    std::vector<ir::Expr> rewritten;
    at_stage(graph, id, [&] {
      for (const ir::Expr& body : bodies) {
        if (!whole) {
          rewritten.push_back(take_out(body));
          continue;
        }
        rewritten.push_back(take_out.without_inner(*ir::as<ir::Reduce>(body)));
      }
    });
    graph.stages[id].bodies = std::move(rewritten);
  }
}

}  // namespace kiln::schedule
