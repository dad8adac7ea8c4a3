#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// The steps that a stage of a scan's cell is computed at: all but the initial ones.
struct CellSteps {
  AxisId time = 0;  // of the stage
  ir::Expr first;
  ir::Expr count;
  bool is_reverse = false;
};

/// What scans say of the stages of their cells, as the definition has them.
class Cells {
 public:
  explicit Cells(const StageGraph& graph);

  /// Nothing for a stage outside of any cell, and for one that is computed at all steps alike.
  const std::optional<CellSteps>& steps_of(StageId stage) const { return steps_[stage]; }

  /// Whether an expression reads what depends on the state of a scan, so that it is computed step
  /// by step.
  bool needs_state(const ir::Expr& expr) const;
  /// Enters a stage that the compiler adds.
  void add_stage(bool needs_state);

 private:
  std::vector<std::optional<CellSteps>> steps_;
  std::vector<bool> needs_state_;  // by stage
};

/// Whether `expr`, computed at an initial step too, could do there what it does at no other: read
/// outside of a tensor, divide by zero. A read at a later index is harmless, since it is at the
/// last step as well.
bool tells_first_step(const ir::Expr& expr, const ir::VarRef& time, bool is_reverse);

}  // namespace kiln::schedule
