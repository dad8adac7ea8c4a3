// Partial results along one loop of a reduction, so that what cannot run at once in one sum can in
// many (rfactor of Halide and TVM; Suriana and others, Parallel Associative Reductions in Halide):
//   s = sum[k](X[k]), k split by 4, rfactor of k.inner
//     ->  s.rf[v] = sum[k.outer](X[k.outer * 4 + v]);  s = sum[v](s.rf[v])
// The partial results start from the identity, the whole from the reduction's own start values.
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/axis_arithmetic.h"
#include "compiler/schedule/graph/expressions.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/new_stage.h"

namespace kiln::schedule {
namespace {

/// The stage with its reduction loops alone; its data axes are whole.
Stage without_data_loops(const StageGraph& graph, const Stage& stage) {
  const auto is_reduce = [&](AxisId axis) { return graph.axes[axis].kind == AxisKind::Reduce; };
  Stage result = stage;
  std::erase_if(result.loops.relations,
                [&](const Relation& relation) { return !is_reduce(language::made_of(relation)); });
  result.loops.leaves = stage.data;
  for (const AxisId leaf : stage.loops.leaves) {
    if (is_reduce(leaf)) result.loops.leaves.push_back(leaf);
  }
  return result;
}

class UsesAxis : public ir::Visitor {
 public:
  explicit UsesAxis(const StageGraph& graph) : graph_(graph) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::Var& var) override {
    const auto& sizes = graph_.sizes;
    found = found || std::find(sizes.begin(), sizes.end(), ir::VarRef(&var)) == sizes.end();
  }
  void visit(const ir::TensorRead&) override { found = true; }
  const StageGraph& graph_;
};

/// The factored loop becomes a dimension, so its extent is one.
void require_plain_extent(const StepContext& context, const ir::Expr& extent) {
  UsesAxis uses(context.graph);
  uses(extent);
  if (has_read(extent)) {
    fail(ErrorKind::Unsupported, "RFACTOR",
         "cannot factor {}: its extent is read from a tensor, but it becomes a dimension of {}; "
         "split it and factor the inner part",
         context.axis(0).name, context.record().name);
  }
  if (!uses.found) return;
  fail(ErrorKind::Unsupported, "RFACTOR",
       "cannot factor {}: its extent {} depends on other axes, but it becomes a dimension of {}; "
       "split it and factor the inner part",
       context.axis(0).name, extent, context.record().name);
}

/// What one value of the axes adds to a reduction.
ir::Expr term_of(const ir::Reduce& reduce) {
  const ir::Expr& source = reduce.sources[reduce.how.output];
  if (!reduce.condition) return source;
  const ir::Expr nothing = identity_of(reduce.how, source->type.element);
  return ir::Call::make(ir::Operator::IfThenElse, {reduce.condition, source, nothing});
}

/// Builds the stage of partial results.
class Factored {
 public:
  explicit Factored(const StepContext& context)
      : context_(context),
        graph_(context.graph),
        made_(context.made),
        from_(without_data_loops(context.graph, context.record())),
        whole_(all_of(from_)),
        axes_(context.graph, from_, whole_),
        facts_(facts_of_sizes(context.graph)) {}

  Stage stage() {
    Stage stage = stage_for(graph_, context_.stage, made_);
    stage.types = from_.types;
    stage.memory.scope = from_.memory.scope;
    add_data(stage);
    add_reduction(stage);
    for (const AxisId root : from_.reduce)
      values_[graph_.axes[root].value] = axes_.value(root);
    for (Condition& condition : split_conditions(axes_, facts_)) {
      condition.is_reduce = true;
      stage.conditions.push_back(std::move(condition));
    }
    for (Condition& condition : conditions_in(from_.conditions, values_, false))
      stage.conditions.push_back(std::move(condition));
    add_bodies(stage);
    return stage;
  }

 private:
  void add_data(Stage& stage) {
    const AxisId factored = context_.axes[0];
    require_plain_extent(context_, named_extent(factored));
    const ir::Expr extent = analysis::simplify(axes_.extent(factored), facts_);
    std::vector<ir::Expr> shape = from_.shapes[0];
    const auto place = static_cast<size_t>(context_.step.value);
    shape.insert(shape.begin() + context_.step.value, extent);
    for (size_t d = 0; d < shape.size(); ++d) {
      stage.data.push_back(add_axis(graph_, made_.data[d], AxisKind::Data, ir::index(0), shape[d]));
      const ir::VarRef& value = graph_.axes[stage.data.back()].value;
      if (d == place) {
        axes_.use_variable(factored, value);
        continue;
      }
      const AxisId root = from_.data[d < place ? d : d - 1];
      axes_.use_variable(root, value);
      values_[graph_.axes[root].value] = value;
    }
    if (from_.time_dimension >= 0) {
      stage.time_dimension = from_.time_dimension + (context_.step.value <= from_.time_dimension);
    }
    stage.shapes.assign(from_.types.size(), shape);
  }

  /// The extent in terms of the axes as they are called, wherever their loops stand.
  ir::Expr named_extent(AxisId factored) const {
    AxisArithmetic axes = axes_;
    for (const AxisId leaf : from_.loops.leaves) {
      const Axis& axis = graph_.axes[leaf];
      if (leaf != factored)
        axes.use_variable(leaf, axis.value ? axis.value : ir::Var::make(axis.name));
    }
    return analysis::simplify(axes.extent(factored), facts_);
  }

  void add_reduction(Stage& stage) {
    for (const AxisId leaf : from_.loops.leaves) {
      if (!axes_.is_reduce(leaf) || leaf == context_.axes[0]) continue;
      // The minimum of a root axis is a part of its value.
      const ir::Expr extent = analysis::simplify(axes_.extent(leaf), facts_);
      stage.reduce.push_back(add_axis(graph_, made_.reduce[stage.reduce.size()], AxisKind::Reduce,
                                      ir::index(0), extent));
      axes_.use_variable(leaf, graph_.axes[stage.reduce.back()].value);
    }
  }

  void add_bodies(Stage& stage) {
    std::vector<ir::VarRef> reduced;
    for (const AxisId axis : stage.reduce)
      reduced.push_back(graph_.axes[axis].value);
    for (const ir::Expr& body : from_.bodies) {
      const ir::Reduce& reduce = *ir::as<ir::Reduce>(body);
      stage.bodies.push_back(reduced.empty() ? ir::substitute(term_of(reduce), values_)
                                             : reduce_over(reduce, values_, reduced, true));
    }
    if (!reduced.empty() || stage.conditions.empty()) return;
    fail(ErrorKind::Unsupported, "RFACTOR",
         "cannot factor {}: it is the only reduction loop of {}, which has partial results already",
         context_.axis(0).name, context_.record().name);
  }

  const StepContext& context_;
  StageGraph& graph_;
  const NewStage& made_;
  const Stage from_;
  const std::vector<Region> whole_;
  AxisArithmetic axes_;
  const analysis::Facts facts_;
  ir::Substitution values_;
};

/// Puts the one reduction axis where the reduction loops of the stage began.
void replace_reduction(StageGraph& graph, Stage& stage, AxisId axis) {
  const auto is_reduce = [&](AxisId leaf) { return graph.axes[leaf].kind == AxisKind::Reduce; };
  const auto first = std::find_if(stage.loops.leaves.begin(), stage.loops.leaves.end(), is_reduce);
  const auto place = first - stage.loops.leaves.begin();
  std::erase_if(stage.loops.leaves, [&](AxisId leaf) { return is_reduce(leaf); });
  stage.loops.leaves.insert(stage.loops.leaves.begin() + place, axis);
  std::erase_if(stage.loops.relations,
                [&](const Relation& relation) { return is_reduce(language::made_of(relation)); });
  stage.reduce = {axis};
}

}  // namespace

template <>
void apply<StepKind::Rfactor>(const StepContext& context) {
  StageGraph& graph = context.graph;
  const Stage& record = context.record();
  size_t loops = 0;
  for (const AxisId leaf : record.loops.leaves)
    loops += graph.axes[leaf].kind == AxisKind::Reduce ? 1 : 0;
  // The state refuses a reduction inside of a larger expression.
  KILN_CHECK(context.step.stage == context.stage && loops == context.made.reduce.size() + 1);
  Stage stage = Factored(context).stage();
  const auto place = static_cast<size_t>(context.step.value);
  const ir::Expr extent = stage.shapes[0][place];
  context.defined = stage.data;
  context.defined.insert(context.defined.end(), stage.reduce.begin(), stage.reduce.end());
  const std::string name = fmt::format("{}.v", context.axis(0).name);
  const StageId id = enter_stage(graph, std::move(stage), context.stage, true);

  const AxisId axis = add_axis(graph, name, AxisKind::Reduce, ir::index(0), extent);
  graph.axes[axis].stage = context.stage;
  const ir::VarRef& variable = graph.axes[axis].value;
  Stage& whole = context.record();
  std::vector<ir::Expr> indices;
  for (const AxisId root : whole.data)
    indices.push_back(graph.axes[root].value);
  indices.insert(indices.begin() + context.step.value, variable);
  for (uint32_t output = 0; output < whole.bodies.size(); ++output) {
    const ir::Reduce& reduce = *ir::as<ir::Reduce>(whole.bodies[output]);
    std::vector<ir::Expr> partial;
    const uint32_t first = output - reduce.how.output;
    for (uint32_t i = first; i < first + reduce.how.values(); ++i)
      partial.push_back(ir::TensorRead::make({whole.types[i], 1}, id, i, indices));
    whole.bodies[output] =
        ir::Reduce::make(reduce.how, std::move(partial), nullptr, reduce.init, {variable});
  }
  whole.conditions = conditions_in(whole.conditions, {}, true);
  replace_reduction(graph, whole, axis);
  context.defined.push_back(axis);
}

}  // namespace kiln::schedule
