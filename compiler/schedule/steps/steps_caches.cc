// Copies of whole tensors. A cache_read stands right after what it copies, and its readers read it
// at the same indices. A cache_write stands right before the stage and takes over its reductions;
// its dimensions are the loops of the stage so far, so that tiles can lie one after the other:
//   C[i] with loops i.outer, i.inner  ->  C.local[i.outer, i.inner];  C[i] = C.local[i / 4, i % 4]
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/axis_arithmetic.h"
#include "compiler/schedule/graph/expressions.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/new_stage.h"

namespace kiln::schedule {
namespace {

/// The same, and of a scatter the copy that the compiler made for it to start from.
std::vector<StageId> reading_parts_of(const StageGraph& graph, StageId stage) {
  std::vector<StageId> parts = parts_of(graph, stage);
  if (graph[stage].kind == Stage::Kind::Scatter) {
    const StageId base = graph[stage].as_scatter.base.stage;
    if (graph[base].origin == graph[stage].origin) parts.push_back(base);
  }
  return parts;
}

bool reads(const StageGraph& graph, StageId reader, TensorId tensor) {
  const std::vector<TensorId> inputs = direct_inputs(graph, graph[reader]);
  return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
}

/// Makes what read a tensor read its copy. A scatter updates the copy of its base in place.
void redirect(StageGraph& graph, StageId reader, TensorId tensor, StageId copy) {
  Stage& stage = graph.stages[reader];
  if (stage.kind == Stage::Kind::Scatter && stage.as_scatter.base == tensor) {
    graph.stages[tensor.stage].role.base_of = -1;
    graph.stages[copy].role.base_of = static_cast<int>(reader);
    stage.as_scatter.base = {copy, 0};
  }
  for (std::vector<ir::Expr>* exprs : {&stage.bodies, &stage.as_scatter.indices}) {
    for (ir::Expr& expr : *exprs) {
      expr = replace_reads(expr, [&](const ir::TensorRead& read) -> ir::Expr {
        if (TensorId{read.stage, read.output} != tensor) return &read;
        return ir::TensorRead::make(read.type, copy, 0, read.indices);
      });
    }
  }
}

/// The stages, parts included, that are to read the copy.
std::vector<StageId> readers_of_copy(const StageGraph& graph, TensorId tensor,
                                     const std::vector<StageId>& readers) {
  std::vector<StageId> result;
  for (const StageId reader : readers) {
    const size_t before = result.size();
    for (const StageId part : reading_parts_of(graph, reader)) {
      if (reads(graph, part, tensor)) result.push_back(part);
    }
    if (result.size() > before) continue;
    fail(ErrorKind::InvalidArgument, "CACHE_READ", "{} does not read {}", graph[reader].name,
         graph.tensor_name(tensor));
  }
  return result;
}

/// The scan whose state or cell a tensor belongs to, or -1.
int cell_of_tensor(const StageGraph& graph, StageId id) {
  if (graph[id].role.cell_of >= 0) return graph[id].role.cell_of;
  for (StageId scan = 0; scan < graph.stages.size(); ++scan) {
    for (const TensorId state : graph[scan].as_scan.state) {
      if (state.stage == id) return static_cast<int>(scan);
    }
  }
  return -1;
}

void put_at_time(const StageGraph& graph, Stage& stage, int cell) {
  stage.role.cell_of = cell;
  const auto scan = static_cast<StageId>(cell);
  stage.attach = {Attach::Kind::At, scan, graph[scan].as_scan.time, -1};
}

/// Root axes for the loops over data of `from`: the layout of a new stage. Fills in what the root
/// axes of `from` are in their terms.
void add_layout(const StepContext& context, AxisArithmetic& axes, Stage& stage,
                ir::Substitution& values) {
  const Stage& from = context.record();
  const analysis::Facts facts = facts_of_sizes(context.graph);
  std::vector<ir::Expr> shape;
  for (const AxisId leaf : from.loops.leaves) {
    if (axes.is_reduce(leaf)) continue;
    if (from.time_dimension >= 0 && leaf == from.time_axis()) {
      stage.time_dimension = static_cast<int>(shape.size());
    }
    shape.push_back(analysis::simplify(axes.extent(leaf), facts));
    stage.data.push_back(add_axis(context.graph, context.made.data[stage.data.size()],
                                  AxisKind::Data, ir::index(0), shape.back()));
    axes.use_variable(leaf, context.graph.axes[stage.data.back()].value);
  }
  stage.shapes.assign(from.types.size(), shape);
  for (const AxisId root : from.data)
    values[context.graph.axes[root].value] = axes.value(root);
}

/// What the splits of the layout leave empty. Those of reductions are no part of it.
void add_layout_conditions(const StepContext& context, AxisArithmetic& axes, Stage& stage) {
  for (Condition& condition : split_conditions(axes, facts_of_sizes(context.graph)))
    stage.conditions.push_back(std::move(condition));
}

/// Reduction axes of the new stage's own, in the place of those of `from`.
std::vector<ir::VarRef> add_reduction(const StepContext& context, Stage& stage,
                                      ir::Substitution& values) {
  const NewStage& made = context.made;
  StageGraph& graph = context.graph;
  const std::vector<AxisId> before = context.record().reduce;
  std::vector<ir::VarRef> variables;
  for (const AxisId old : before) {
    const auto place = std::find(made.reduced.begin(), made.reduced.end(), old);
    KILN_CHECK(place != made.reduced.end());
    const std::string& name = made.reduce[static_cast<size_t>(place - made.reduced.begin())];
    stage.reduce.push_back(add_axis(graph, name, AxisKind::Reduce,
                                    ir::substitute(graph.axes[old].minimum, values),
                                    ir::substitute(graph.axes[old].extent, values)));
    variables.push_back(graph.axes[stage.reduce.back()].value);
    values[graph.axes[old].value] = variables.back();
  }
  return variables;
}

/// The stage reads its values from the new one, whose layout are its loops so far.
void become_copy(const StepContext& context, StageId copied, AxisArithmetic& axes) {
  StageGraph& graph = context.graph;
  Stage& stage = context.record();
  std::unordered_map<AxisId, ir::Expr> roots;
  for (const AxisId root : stage.data)
    roots[root] = graph.axes[root].value;
  const std::unordered_map<AxisId, ir::Expr> loops = axes.loops_of(roots);
  std::vector<ir::Expr> indices;
  for (const AxisId leaf : stage.loops.leaves) {
    if (!axes.is_reduce(leaf)) indices.push_back(loops.at(leaf));
  }
  for (uint32_t output = 0; output < stage.bodies.size(); ++output) {
    stage.bodies[output] = ir::TensorRead::make({stage.types[output], 1}, copied, output, indices);
  }
  stage.conditions = conditions_in(stage.conditions, {}, true);
  stage.reduce.clear();
  stage.loops.start_with(stage.data);
}

void name_scope(const StepContext& context, Stage& stage) {
  stage.memory.scope = context.step.tag;
  stage.memory.scope_line = location_of(context.graph, context.step);
}

}  // namespace

template <>
void apply<StepKind::CacheRead>(const StepContext& context) {
  const NewStage& made = context.made;
  if (!context.axes.empty()) return make_packed_copy(context);
  StageGraph& graph = context.graph;
  const TensorId tensor{context.stage, context.step.output};
  const std::vector<StageId> readers = readers_of_copy(graph, tensor, made.readers);
  Stage stage = stage_for(graph, tensor.stage, made);
  if (const int cell = cell_of_tensor(graph, tensor.stage); cell >= 0) {
    put_at_time(graph, stage, cell);
  }
  stage.time_dimension = graph[tensor.stage].time_dimension;
  stage.is_live = std::ranges::any_of(readers, [&](StageId id) { return graph[id].is_live; });
  name_scope(context, stage);
  const Stage& from = graph[tensor.stage];
  stage.types = {from.types[tensor.output]};
  stage.shapes = {from.shapes[tensor.output]};
  std::vector<ir::Expr> indices;
  ir::Substitution values;
  for (size_t d = 0; d < made.data.size(); ++d) {
    stage.data.push_back(
        add_axis(graph, made.data[d], AxisKind::Data, ir::index(0), stage.shapes[0][d]));
    indices.push_back(graph.axes[stage.data.back()].value);
    if (d < from.data.size()) values[graph.axes[from.data[d]].value] = indices.back();
  }
  stage.conditions = conditions_in(from.conditions, values, true);
  stage.bodies = {ir::TensorRead::make({stage.types[0], 1}, tensor.stage, tensor.output, indices)};
  context.defined = stage.data;
  const StageId copy = enter_stage(graph, std::move(stage), tensor.stage, false);
  for (const StageId reader : readers) {
    redirect(graph, reader, tensor, copy);
    graph.stages[reader].is_touched = true;
  }
}

template <>
void apply<StepKind::CacheWrite>(const StepContext& context) {
  const NewStage& made = context.made;
  StageGraph& graph = context.graph;
  const Stage from = context.record();
  const std::vector<Region> whole = all_of(from);
  AxisArithmetic axes(graph, from, whole);
  Stage stage = stage_for(graph, context.stage, made);
  stage.types = from.types;
  name_scope(context, stage);
  ir::Substitution values;
  add_layout(context, axes, stage, values);
  add_layout_conditions(context, axes, stage);
  const std::vector<ir::VarRef> reduced = add_reduction(context, stage, values);
  for (Condition& condition : conditions_in(from.conditions, values, false))
    stage.conditions.push_back(std::move(condition));
  for (const ir::Expr& body : from.bodies) {
    const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
    stage.bodies.push_back(reduce != nullptr ? reduce_over(*reduce, values, reduced)
                                             : ir::substitute(body, values));
  }

  context.defined = stage.data;
  for (size_t i = 0; i < made.reduced.size(); ++i) {
    const auto own = std::find(from.reduce.begin(), from.reduce.end(), made.reduced[i]);
    // A reduction inside the expression has loops of its own, which stay.
    context.defined.push_back(own == from.reduce.end()
                                  ? made.reduced[i]
                                  : stage.reduce[static_cast<size_t>(own - from.reduce.begin())]);
  }
  const std::vector<StageId> parts = parts_of(graph, context.stage);
  const StageId id = enter_stage(graph, std::move(stage), context.stage, true);
  for (size_t i = 1; i < parts.size(); ++i)
    graph.stages[parts[i]].part_of = id;
  become_copy(context, id, axes);
}

template <>
void apply<StepKind::SetScope>(const StepContext& context) {
  name_scope(context, context.record());
}

}  // namespace kiln::schedule
