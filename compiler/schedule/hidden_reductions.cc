#include "compiler/schedule/hidden_reductions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/schedule/reads.h"

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
  TakeOut(StageGraph& graph, StageId stage, std::unordered_set<AxisId>& taken)
      : graph_(graph), stage_(stage), taken_(taken) {
    for (AxisId id = 0; id < graph.axes.size(); ++id)
      axis_of_[graph.axes[id].value] = id;
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
    const ir::Expr source = (*this)(reduce.source);
    return made_[&reduce] = read_of_new_stage(reduce, source);
  }

  ir::Expr read_of_new_stage(const ir::Reduce& reduce, const ir::Expr& source) {
    const StageId id = static_cast<StageId>(graph_.stages.size());
    Stage stage;
    stage.kind = Stage::Kind::Compute;
    stage.name = fmt::format("{}.{}", graph_[stage_].name, row_of(reduce.combiner).spelling);
    stage.origin = graph_[stage_].origin;
    stage.part_of = stage_;
    stage.from_branch = branches_ > 0;
    stage.types = {reduce.type.element};

    ir::Substitution renamed;
    std::vector<ir::Expr> indices;
    std::vector<ir::Expr> shape;
    for (const AxisId outer : axes_used_by(reduce, source)) {
      const Axis axis = graph_.axes[outer];
      const ir::VarRef value = ir::Var::make(axis.name);
      stage.data.push_back(add_axis({.name = axis.name,
                                     .kind = AxisKind::Data,
                                     .stage = id,
                                     .value = value,
                                     .minimum = ir::index(0),
                                     .extent = axis.extent}));
      renamed[axis.value] = axis.minimum + ir::Expr(value);
      indices.push_back(ir::Expr(axis.value) - axis.minimum);
      shape.push_back(axis.extent);
    }
    std::vector<ir::VarRef> values;
    for (const ir::VarRef& value : reduce.axes) {
      stage.reduce.push_back(own_axis(axis_of_.at(value), id, renamed));
      values.push_back(graph_.axes[stage.reduce.back()].value);
    }
    stage.shapes = {std::move(shape)};
    stage.bodies = {ir::Reduce::make(reduce.combiner, ir::substitute(source, renamed), values)};
    graph_.stages.push_back(std::move(stage));
    return ir::TensorRead::make(reduce.type, id, 0, std::move(indices));
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
    const ir::VarRef before = axis.value;
    axis.value = ir::Var::make(axis.name);
    renamed[before] = axis.value;
    return add_axis(std::move(axis));
  }

  /// Axes outside the reduction that it uses, in the order of their ids.
  std::vector<AxisId> axes_used_by(const ir::Reduce& reduce, const ir::Expr& source) {
    CollectVars collect;
    collect(source);
    for (const ir::VarRef& value : reduce.axes) {
      collect(graph_.axes[axis_of_.at(value)].minimum);
      collect(graph_.axes[axis_of_.at(value)].extent);
    }
    std::vector<AxisId> used;
    for (const ir::VarRef& var : collect.vars) {
      const auto axis = axis_of_.find(var);
      const bool own = std::find(reduce.axes.begin(), reduce.axes.end(), var) != reduce.axes.end();
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
  std::unordered_set<AxisId>& taken_;
  std::unordered_map<ir::VarRef, AxisId> axis_of_;
  std::unordered_map<const ir::Reduce*, ir::Expr> made_;
  int branches_ = 0;
};

/// Whether all bodies are reductions over the same axes, so that one nest computes them.
bool is_one_reduction(const Stage& stage) {
  const ir::Reduce* first = ir::as<ir::Reduce>(stage.bodies[0]);
  return first != nullptr &&
         std::all_of(stage.bodies.begin(), stage.bodies.end(), [&](const ir::Expr& body) {
           const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
           return reduce != nullptr && reduce->axes == first->axes;
         });
}

}  // namespace

void take_out_reductions(StageGraph& graph) {
  const size_t count = graph.stages.size();
  std::unordered_set<AxisId> taken;
  for (StageId id = 0; id < count; ++id) {
    if (graph[id].kind != Stage::Kind::Compute) continue;
    const bool whole = is_one_reduction(graph[id]);
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
    TakeOut take_out(graph, id, taken);
    const std::vector<ir::Expr> bodies = graph[id].bodies;
    std::vector<ir::Expr> rewritten;
    at_stage(graph, id, [&] {
      for (const ir::Expr& body : bodies) {
        if (!whole) {
          rewritten.push_back(take_out(body));
          continue;
        }
        const ir::Reduce& reduce = *ir::as<ir::Reduce>(body);
        rewritten.push_back(
            ir::Reduce::make(reduce.combiner, take_out(reduce.source), reduce.axes));
      }
    });
    graph.stages[id].bodies = std::move(rewritten);
  }
}

}  // namespace kiln::schedule
