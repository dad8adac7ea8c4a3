#pragma once

#include <unordered_map>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// Extents and values of all axes of a stage: extents go down from the root axes through the
/// relations, values come up from the loops.
class AxisArithmetic {
 public:
  AxisArithmetic(const StageGraph& graph, const Stage& stage, const std::vector<Region>& region);

  /// Loops get their variables from the outside in. An axis that loops are made of may have one,
  /// too, of which what it was made of is a value then.
  void use_variable(AxisId axis, const ir::VarRef& var) { variables_[axis] = var; }

  ir::Expr extent(AxisId axis);
  /// Counted from 0, in terms of the loops.
  ir::Expr offset(AxisId axis);
  /// What a body sees.
  ir::Expr value(AxisId root);
  bool is_elided(AxisId leaf) { return ir::is_const(extent(leaf), 1) && !is_thread(leaf); }

  /// The axis whose guard covers a split of `axis` that does not divide: when an outer part runs
  /// past its end, so does what was split.
  AxisId guarded_axis(AxisId axis) const;

  /// The loops in terms of the root axes: the inverse of offset(). `offsets` has those of the
  /// roots.
  std::unordered_map<AxisId, ir::Expr> loops_of(std::unordered_map<AxisId, ir::Expr> offsets);

  const Stage& stage() const { return stage_; }
  bool is_reduce(AxisId axis) const { return graph_.axes[axis].kind == AxisKind::Reduce; }

 private:
  bool is_thread(AxisId axis) const { return graph_.axes[axis].thread != ir::ThreadAxis::None; }
  [[noreturn]] void refuse_order(AxisId inner) const;
  [[noreturn]] void refuse_extent(AxisId fused) const;
  ir::Expr find_extent(AxisId axis);
  ir::Expr offset_in_fused(const Fuse& fuse, AxisId axis);
  ir::Expr in_loop_variables(const ir::Expr& expr);

  const StageGraph& graph_;
  const Stage& stage_;
  const std::vector<Region>& region_;
  std::unordered_map<AxisId, const Relation*> defined_by_;
  std::unordered_map<AxisId, const Relation*> consumed_by_;
  std::unordered_map<AxisId, size_t> dimension_;
  std::unordered_map<AxisId, ir::VarRef> variables_;
  std::unordered_map<AxisId, ir::Expr> extents_;
};

/// What must hold where splits do not divide, in terms of the loops.
std::vector<Condition> split_conditions(AxisArithmetic& axes, const analysis::Facts& facts);

}  // namespace kiln::schedule
