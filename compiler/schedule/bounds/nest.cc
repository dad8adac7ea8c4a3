// The loops of one stage over its region: one for each leaf axis, the values of its root axes in
// terms of them, and the guards for iterations that a split or the region has too many.
//
//   C of n, split(i, 4)  ->  for io in 0..ceildiv(n, 4), ii in 0..4, guard io*4 + ii < n
#include "compiler/schedule/bounds/nest.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/axis_arithmetic.h"

namespace kiln::schedule {
namespace {

size_t level_of(const Nest& nest, const ir::Expr& condition) {
  // A guard stands as far out as its variables are known, so that loops inside need not ask.
  for (size_t i = nest.loops.size(); i > 0; --i) {
    if (ir::uses_var(condition, nest.loops[i - 1].var)) return i;
  }
  return 0;
}

/// Where a split may run past its axis, and what the stage itself says of its axes.
void add_conditions(Nest& nest, const Stage& stage, AxisArithmetic& axes,
                    const analysis::Facts& facts) {
  for (const Condition& condition : split_conditions(axes, facts))
    add_guard(nest, condition.holds, condition.is_reduce);
  for (const Condition& condition : stage.conditions)
    add_guard(nest, ir::substitute(condition.holds, nest.values), condition.is_reduce);
}

/// The region of an attached stage may leave the tensor at both ends.
void add_region_guards(Nest& nest, const Stage& stage, const AxisArithmetic&) {
  for (size_t d = 0; d < nest.region.size(); ++d) {
    const Region& region = nest.region[d];
    if (region.is_whole) continue;
    const ir::Expr value = region.min + nest.offsets[d];
    add_guard(nest, ir::less_equal(ir::index(0), value), false);
    add_guard(nest, ir::less(value, stage.shapes[0][d]), false);
  }
}

}  // namespace

void add_guard(Nest& nest, const ir::Expr& condition, bool is_reduce) {
  size_t level = level_of(nest, condition);
  // Start values are stored whatever the condition of a reduction says.
  if (is_reduce) level = std::max(level, nest.first_reduce() + 1);
  nest.guards.push_back({condition, level, is_reduce});
}

ir::Expr Storage::place(size_t d, const ir::Expr& index, const analysis::Facts& facts) const {
  const ir::Expr offset = origin[d] ? analysis::simplify(index - origin[d], facts) : index;
  if (static_cast<int>(d) != rolling) return offset;
  return analysis::simplify(ir::floormod(offset, buffer->shape[d]), facts);
}

std::vector<ir::Expr> Storage::indices(std::vector<ir::Expr> places) const {
  if (!layout.empty()) {
    std::vector<ir::Expr> laid;
    for (const LayoutDimension& part : layout) {
      const ir::Expr& place = places[part.dimension];
      const ir::Expr passed = part.step == 1 ? place : ir::floordiv(place, ir::index(part.step));
      laid.push_back(part.count == 0 ? passed : ir::floormod(passed, ir::index(part.count)));
    }
    places = std::move(laid);
  }
  if (copy) places.insert(places.begin(), copy);
  return places;
}

size_t Nest::first_reduce() const {
  const auto at =
      std::find_if(loops.begin(), loops.end(), [](const Loop& loop) { return loop.is_reduce; });
  return static_cast<size_t>(at - loops.begin());
}

Nest make_nest(const StageGraph& graph, StageId id, std::vector<Region> region,
               const std::vector<Loop>& shared, const analysis::Facts& facts) {
  const Stage& stage = graph[id];
  Nest nest;
  nest.region = std::move(region);
  AxisArithmetic axes(graph, stage, nest.region);
  size_t next_shared = 0;
  for (const AxisId leaf : stage.loops.leaves) {
    const Axis& axis = graph.axes[leaf];
    Loop loop{.extent = analysis::simplify(axes.extent(leaf), facts),
              .axis = leaf,
              .is_reduce = axis.kind == AxisKind::Reduce,
              .is_elided = axes.is_elided(leaf)};
    // The initial steps of a scan are a loop of their own inside those it shares.
    const bool is_time =
        stage.time_dimension >= 0 && !stage.data.empty() && leaf == stage.time_axis();
    loop.is_shared = !loop.is_elided && !is_time && next_shared < shared.size();
    const std::string name =
        axis.thread == ir::ThreadAxis::None ? axis.name : std::string(ir::name_of(axis.thread));
    loop.var = loop.is_shared ? shared[next_shared++].var : ir::Var::make(name);
    axes.use_variable(leaf, loop.var);
    nest.loops.push_back(loop);
  }
  for (const std::vector<AxisId>* roots : {&stage.data, &stage.reduce}) {
    for (const AxisId root : *roots)
      nest.values[graph.axes[root].value] = axes.value(root);
  }
  if (stage.kind == Stage::Kind::Scan) {
    nest.values[graph.axes[stage.as_scan.time].value] = axes.value(stage.as_scan.time);
  }
  for (const AxisId root : stage.data)
    nest.offsets.push_back(axes.offset(root));
  add_conditions(nest, stage, axes, facts);
  if (stage.kind == Stage::Kind::Compute && !stage.role.is_update)
    add_region_guards(nest, stage, axes);
  return nest;
}

analysis::Facts facts_of_sizes(const StageGraph& graph) {
  analysis::Facts facts;
  const language::Definition& definition = graph.kernel->definition;
  std::vector<bool> nonnegative;
  for (const language::Variable& variable : definition.variables) {
    nonnegative.push_back(variable.nonnegative);
  }
  std::vector<ir::Expr> conditions;
  for (const TensorId parameter : definition.parameters) {
    for (const ir::Expr& extent : graph[parameter.stage].shapes[parameter.output]) {
      const auto size =
          std::find_if(graph.sizes.begin(), graph.sizes.end(),
                       [&](const ir::VarRef& var) { return ir::Expr(var) == extent; });
      if (size != graph.sizes.end()) {
        nonnegative[static_cast<size_t>(size - graph.sizes.begin())] = true;
      } else if (!ir::as_const_int(extent)) {
        conditions.push_back(ir::less_equal(ir::index(0), extent));
      }
    }
  }
  for (size_t i = 0; i < graph.sizes.size(); ++i) {
    if (nonnegative[i]) facts.push_range(graph.sizes[i], ir::index(0), nullptr);
  }
  for (const Stage& stage : graph.stages) {
    if (stage.kind != Stage::Kind::Scan || !stage.is_live) continue;
    conditions.push_back(ir::less_equal(ir::index(0), graph.axes[stage.as_scan.time].extent));
  }
  for (ir::Expr& condition : conditions)
    facts.push_condition(std::move(condition));
  return facts;
}

size_t loop_of_axis(const Nest& nest, AxisId axis) {
  const auto at = std::find_if(nest.loops.begin(), nest.loops.end(),
                               [&](const Loop& loop) { return loop.axis == axis; });
  KILN_CHECK(at != nest.loops.end());
  return static_cast<size_t>(at - nest.loops.begin());
}

std::vector<const Loop*> loops_around(const StageGraph& graph, const NestPlan& plan, StageId id) {
  const Stage& stage = graph[id];
  std::vector<const Loop*> loops;
  if (stage.role.is_init) {
    for (const Loop& loop : plan.nests[stage.role.init_of].loops) {
      if (loop.is_shared) loops.push_back(&loop);
    }
    return loops;
  }
  if (stage.attach.kind != Attach::Kind::At) return loops;
  loops = loops_around(graph, plan, stage.attach.stage);
  const Nest& nest = plan.nests[stage.attach.stage];
  const bool is_scan = graph[stage.attach.stage].kind == Stage::Kind::Scan;
  for (size_t i = 0; i <= loop_of_axis(nest, stage.attach.axis); ++i) {
    if (is_scan || !nest.loops[i].is_shared) loops.push_back(&nest.loops[i]);
  }
  return loops;
}

}  // namespace kiln::schedule
