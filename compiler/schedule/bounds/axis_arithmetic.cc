// Extents and values of axes through splits and fuses, as expressions.
//
//   split(i, factor=4) of n:   io < ceildiv(n, 4), ii < 4,  i = io*4 + ii
//   fuse(i, j) of n x m:       ij < n*m,  i = ij / m,  j = ij % m
//
// Where 4 does not divide n, the last io runs past it: split_conditions() gives i < n. TVM's
// PassDownDomain and PassUpIndex do the same over the same relations.
#include "compiler/schedule/bounds/axis_arithmetic.h"

#include <algorithm>

#include "compiler/schedule/graph/reads.h"
#include "runtime/core/size_expr.h"

namespace kiln::schedule {

AxisArithmetic::AxisArithmetic(const StageGraph& graph, const Stage& stage,
                               const std::vector<Region>& region)
    : graph_(graph), stage_(stage), region_(region) {
  for (const Relation& relation : stage.loops.relations) {
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

ir::Expr AxisArithmetic::extent(AxisId axis) {
  const auto known = extents_.find(axis);
  if (known != extents_.end()) return known->second;
  return extents_[axis] = find_extent(axis);
}

ir::Expr AxisArithmetic::offset(AxisId axis) {
  const auto consumed = consumed_by_.find(axis);
  const bool is_leaf = consumed == consumed_by_.end();
  if (is_leaf && is_elided(axis)) return ir::index(0);
  if (const auto variable = variables_.find(axis); variable != variables_.end())
    return variable->second;
  if (is_leaf) refuse_order(axis);
  if (const Split* split = std::get_if<Split>(consumed->second)) {
    return offset(split->outer) * extent(split->inner) + offset(split->inner);
  }
  return offset_in_fused(std::get<Fuse>(*consumed->second), axis);
}

ir::Expr AxisArithmetic::value(AxisId root) {
  const auto dimension = dimension_.find(root);
  if (dimension != dimension_.end()) return region_[dimension->second].min + offset(root);
  return in_loop_variables(graph_.axes[root].minimum) + offset(root);
}

AxisId AxisArithmetic::guarded_axis(AxisId axis) const {
  const auto defined = defined_by_.find(axis);
  if (defined == defined_by_.end()) return axis;
  const Split* split = std::get_if<Split>(defined->second);
  if (split == nullptr || split->outer != axis) return axis;
  return guarded_axis(split->parent);
}

std::unordered_map<AxisId, ir::Expr> AxisArithmetic::loops_of(
    std::unordered_map<AxisId, ir::Expr> offsets) {
  for (const Relation& relation : stage_.loops.relations) {
    if (const Split* split = std::get_if<Split>(&relation)) {
      const auto parent = offsets.find(split->parent);
      if (parent == offsets.end()) continue;
      const ir::Expr inner = extent(split->inner);
      offsets[split->outer] = ir::floordiv(parent->second, inner);
      offsets[split->inner] = ir::floormod(offsets.at(split->parent), inner);
      continue;
    }
    const Fuse& fuse = std::get<Fuse>(relation);
    if (!offsets.contains(fuse.parts[0])) continue;
    ir::Expr fused = offsets.at(fuse.parts[0]);
    for (size_t i = 1; i < fuse.parts.size(); ++i)
      fused = fused * extent(fuse.parts[i]) + offsets.at(fuse.parts[i]);
    offsets[fuse.fused] = fused;
  }
  return offsets;
}

void AxisArithmetic::refuse_order(AxisId inner) const {
  fail(ErrorKind::InvalidArgument, "LOOP_ORDER",
       "the extent of a loop of {} depends on {}, whose loop stands inside of it; reorder them",
       stage_.name, graph_.axes[inner].name);
}

ir::Expr AxisArithmetic::find_extent(AxisId axis) {
  const auto defined = defined_by_.find(axis);
  if (defined == defined_by_.end()) {
    const auto dimension = dimension_.find(axis);
    if (dimension != dimension_.end()) return region_[dimension->second].extent;
    const ir::Expr extent = in_loop_variables(graph_.axes[axis].extent);
    // Data may say any number; the arithmetic of splits wants none below 0.
    return has_read(extent) ? ir::max(extent, ir::index(0)) : extent;
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
  int64_t constant = 1;
  for (const AxisId part : std::get<Fuse>(*defined->second).parts) {
    product = product * extent(part);
    const int64_t factor = std::max<int64_t>(ir::as_const_int(extent(part)).value_or(1), 1);
    // Symbolic parts count as 1: only constant ones can be judged here.
    const bool is_past = __builtin_mul_overflow(constant, factor, &constant);
    if (is_past || constant > kLargestSize) refuse_extent(axis);
  }
  return product;
}

/// Only factors of splits that are far larger than their loops make so many.
void AxisArithmetic::refuse_extent(AxisId fused) const {
  fail(ErrorKind::ResourceExhausted, "LOOP_EXTENT",
       "{} of {} would have more than {} iterations; fuse loops of smaller factors",
       graph_.axes[fused].name, stage_.name, kLargestSize);
}

ir::Expr AxisArithmetic::offset_in_fused(const Fuse& fuse, AxisId axis) {
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
ir::Expr AxisArithmetic::in_loop_variables(const ir::Expr& expr) {
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

namespace {

bool divides(const ir::Expr& extent, const ir::Expr& factor, const analysis::Facts& facts) {
  return analysis::can_prove(ir::equal(ir::floormod(extent, factor), ir::index(0)), facts);
}

}  // namespace

std::vector<Condition> split_conditions(AxisArithmetic& axes, const analysis::Facts& facts) {
  std::vector<AxisId> guarded;
  std::vector<Condition> conditions;
  for (const Relation& relation : axes.stage().loops.relations) {
    const Split* split = std::get_if<Split>(&relation);
    if (split == nullptr) continue;
    const ir::Expr count = split->factor ? ir::index(*split->factor) : axes.extent(split->outer);
    if (divides(axes.extent(split->parent), count, facts)) continue;
    const AxisId axis = axes.guarded_axis(split->parent);
    // One guard on the axis that all the splits are of is enough for each of them.
    if (std::find(guarded.begin(), guarded.end(), axis) != guarded.end()) continue;
    guarded.push_back(axis);
    conditions.push_back({ir::less(axes.offset(axis), axes.extent(axis)), axes.is_reduce(axis)});
  }
  return conditions;
}

}  // namespace kiln::schedule
