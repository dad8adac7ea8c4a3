#include "compiler/schedule/nest.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/build.h"

namespace kiln::schedule {
namespace {

/// Extents and values of all axes of a stage: extents go down from the root axes through the
/// relations, values come up from the loops.
class AxisArithmetic {
 public:
  AxisArithmetic(const StageGraph& graph, const Stage& stage, const std::vector<Region>& region)
      : graph_(graph), stage_(stage), region_(region) {
    for (const Relation& relation : stage.relations) {
      if (const Split* split = std::get_if<Split>(&relation)) {
        defined_by_[split->outer] = defined_by_[split->inner] = &relation;
        consumed_by_[split->parent] = &relation;
      } else {
        const Fuse& fuse = std::get<Fuse>(relation);
        defined_by_[fuse.fused] = &relation;
        for (const AxisId part : fuse.parts)
          consumed_by_[part] = &relation;
      }
    }
    for (size_t d = 0; d < stage.data.size(); ++d)
      dimension_[stage.data[d]] = d;
  }

  void use_variable(AxisId leaf, const ir::VarRef& var) { variables_[leaf] = var; }

  ir::Expr extent(AxisId axis) {
    const auto known = extents_.find(axis);
    if (known != extents_.end()) return known->second;
    return extents_[axis] = find_extent(axis);
  }

  /// Counted from 0.
  ir::Expr offset(AxisId axis) {
    const auto consumed = consumed_by_.find(axis);
    if (consumed == consumed_by_.end()) {
      if (is_elided(axis)) return ir::index(0);
      const auto variable = variables_.find(axis);
      if (variable == variables_.end()) refuse_order(axis);
      return variable->second;
    }
    if (const Split* split = std::get_if<Split>(consumed->second)) {
      return offset(split->outer) * extent(split->inner) + offset(split->inner);
    }
    return offset_in_fused(std::get<Fuse>(*consumed->second), axis);
  }

  /// What a body sees.
  ir::Expr value(AxisId root) {
    const auto dimension = dimension_.find(root);
    if (dimension != dimension_.end()) return region_[dimension->second].min + offset(root);
    return in_loop_variables(graph_.axes[root].minimum) + offset(root);
  }

  bool is_elided(AxisId leaf) { return ir::is_const(extent(leaf), 1) && !is_thread(leaf); }

  /// The axis whose guard covers a split of `axis` that does not divide: when an outer part runs
  /// past its end, so does what was split.
  AxisId guarded_axis(AxisId axis) const {
    const auto defined = defined_by_.find(axis);
    if (defined == defined_by_.end()) return axis;
    const Split* split = std::get_if<Split>(defined->second);
    if (split == nullptr || split->outer != axis) return axis;
    return guarded_axis(split->parent);
  }

 private:
  bool is_thread(AxisId axis) const { return graph_.axes[axis].thread != ir::ThreadAxis::None; }

  /// Loops get their variables from the outside in, so one without a variable is further in.
  [[noreturn]] void refuse_order(AxisId inner) const {
    fail(ErrorKind::InvalidArgument, "LOOP_ORDER",
         "the extent of a loop of {} depends on {}, whose loop stands inside of it; reorder them",
         stage_.name, graph_.axes[inner].name);
  }

  ir::Expr find_extent(AxisId axis) {
    const auto defined = defined_by_.find(axis);
    if (defined == defined_by_.end()) {
      const auto dimension = dimension_.find(axis);
      if (dimension != dimension_.end()) return region_[dimension->second].extent;
      return in_loop_variables(graph_.axes[axis].extent);
    }
    if (const Split* split = std::get_if<Split>(defined->second)) {
      const bool is_outer = split->outer == axis;
      if (split->factor) {
        const ir::Expr factor = ir::index(*split->factor);
        return is_outer ? ir::ceildiv(extent(split->parent), factor) : factor;
      }
      const ir::Expr parts = ir::index(*split->parts);
      return is_outer ? parts : ir::ceildiv(extent(split->parent), parts);
    }
    ir::Expr product = ir::index(1);
    for (const AxisId part : std::get<Fuse>(*defined->second).parts)
      product = product * extent(part);
    return product;
  }

  ir::Expr offset_in_fused(const Fuse& fuse, AxisId axis) {
    ir::Expr inside = ir::index(1);
    for (size_t i = fuse.parts.size(); i-- > 0;) {
      const AxisId part = fuse.parts[i];
      if (part != axis) {
        inside = inside * extent(part);
        continue;
      }
      const ir::Expr shifted =
          ir::is_const(inside, 1) ? offset(fuse.fused) : ir::floordiv(offset(fuse.fused), inside);
      return i == 0 ? shifted : ir::floormod(shifted, extent(part));
    }
    KILN_CHECK(false);
    return nullptr;
  }

  /// Extents of reduction axes may use values of axes outside of them.
  ir::Expr in_loop_variables(const ir::Expr& expr) {
    ir::Substitution values;
    for (const std::vector<AxisId>* roots : {&stage_.data, &stage_.reduce}) {
      for (const AxisId root : *roots) {
        if (ir::uses_var(expr, graph_.axes[root].value)) {
          values[graph_.axes[root].value] = value(root);
        }
      }
    }
    return values.empty() ? expr : ir::substitute(expr, values);
  }

  const StageGraph& graph_;
  const Stage& stage_;
  const std::vector<Region>& region_;
  std::unordered_map<AxisId, const Relation*> defined_by_;
  std::unordered_map<AxisId, const Relation*> consumed_by_;
  std::unordered_map<AxisId, size_t> dimension_;
  std::unordered_map<AxisId, ir::VarRef> variables_;
  std::unordered_map<AxisId, ir::Expr> extents_;
};

bool divides(const ir::Expr& extent, const ir::Expr& factor, const analysis::Facts& facts) {
  return analysis::can_prove(ir::equal(ir::floormod(extent, factor), ir::index(0)), facts);
}

size_t level_of(const Nest& nest, const ir::Expr& condition) {
  for (size_t i = nest.loops.size(); i > 0; --i) {
    if (ir::uses_var(condition, nest.loops[i - 1].var)) return i;
  }
  return 0;
}

void add_guard(Nest& nest, const ir::Expr& condition, bool is_reduce) {
  nest.guards.push_back({condition, level_of(nest, condition), is_reduce});
}

void add_split_guards(Nest& nest, const StageGraph& graph, const Stage& stage, AxisArithmetic& axes,
                      const analysis::Facts& facts) {
  std::vector<AxisId> guarded;
  for (const Relation& relation : stage.relations) {
    const Split* split = std::get_if<Split>(&relation);
    if (split == nullptr) continue;
    const ir::Expr count = split->factor ? ir::index(*split->factor) : axes.extent(split->outer);
    if (divides(axes.extent(split->parent), count, facts)) continue;
    const AxisId axis = axes.guarded_axis(split->parent);
    if (std::find(guarded.begin(), guarded.end(), axis) != guarded.end()) continue;
    guarded.push_back(axis);
    add_guard(nest, ir::less(axes.offset(axis), axes.extent(axis)),
              graph.axes[axis].kind == AxisKind::Reduce);
  }
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

ir::Expr Storage::place(size_t d, const ir::Expr& index, const analysis::Facts& facts) const {
  const ir::Expr offset = origin[d] ? analysis::simplify(index - origin[d], facts) : index;
  if (static_cast<int>(d) != rolling) return offset;
  return analysis::simplify(ir::floormod(offset, buffer->shape[d]), facts);
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
  for (const AxisId leaf : stage.leaves) {
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
    nest.values[graph.axes[stage.time].value] = axes.value(stage.time);
  }
  for (const AxisId root : stage.data)
    nest.offsets.push_back(axes.offset(root));
  add_split_guards(nest, graph, stage, axes, facts);
  if (stage.kind == Stage::Kind::Compute && !stage.is_update) add_region_guards(nest, stage, axes);
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
    conditions.push_back(ir::less_equal(ir::index(0), graph.axes[stage.time].extent));
  }
  for (ir::Expr& condition : conditions)
    facts.push_condition(std::move(condition));
  return facts;
}

}  // namespace kiln::schedule
