// A stage is in a scan's cell when it is an update or reads a state, directly or not; which of its
// axes is time, the language says. What is taken out of such a stage needs the same steps and no
// others:
//   s[0] = 0, s[t] = s[t - 1] + sum[k](X[t - 1, k])  ->  the sum reads X[-1] at t = 0: not there
#include "compiler/schedule/graph/cell_steps.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/language/check/time_dimensions.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

/// Looks for uses of time besides reads at it, or at a step that comes later.
class FindsOtherUses : public ir::Visitor {
 public:
  FindsOtherUses(const ir::VarRef& time, bool is_reverse) : time_(time), is_reverse_(is_reverse) {}
  bool found = false;

 private:
  using Visitor::visit;

  void visit(const ir::Var& var) override { found = found || ir::VarRef(&var) == time_; }

  void visit(const ir::TensorRead& read) override {
    for (const ir::Expr& index : read.indices) {
      if (!is_at_or_after(index)) (*this)(index);
    }
  }

  bool is_at_or_after(const ir::Expr& index) const {
    if (index == ir::Expr(time_)) return true;
    const ir::Binary* sum = ir::as<ir::Binary>(index);
    if (sum == nullptr || !(sum->a == ir::Expr(time_))) return false;
    const std::optional<int64_t> offset = ir::as_const_int(sum->b);
    const auto later = is_reverse_ ? language::Operator::Sub : language::Operator::Add;
    return sum->op == later && offset && *offset >= 0;
  }

  const ir::VarRef time_;
  const bool is_reverse_;
};

}  // namespace

Cells::Cells(const StageGraph& graph)
    : steps_(graph.stages.size()), needs_state_(graph.stages.size(), false) {
  std::vector<int> scan_of(graph.stages.size(), -1);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    for (const TensorId state : graph[id].as_scan.state) {
      needs_state_[state.stage] = true;
      scan_of[state.stage] = static_cast<int>(id);
    }
    for (const TensorId update : graph[id].as_scan.update)
      scan_of[update.stage] = static_cast<int>(id);
  }
  const std::vector<int> time = language::time_dimensions(graph.kernel->definition);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    if (stage.kind != Stage::Kind::Compute) continue;
    for (const TensorId input : direct_inputs(graph, stage)) {
      if (!needs_state_[input.stage]) continue;
      needs_state_[id] = true;
      scan_of[id] = scan_of[input.stage];
    }
    if (scan_of[id] < 0 || time[id] < 0) continue;
    const Stage& scan = graph[static_cast<StageId>(scan_of[id])];
    const Axis& steps = graph.axes[scan.as_scan.time];
    steps_[id] = CellSteps{stage.data[static_cast<size_t>(time[id])],
                           scan.as_scan.is_reverse ? ir::index(0) : steps.minimum, steps.extent,
                           scan.as_scan.is_reverse};
  }
}

bool Cells::needs_state(const ir::Expr& expr) const {
  bool found = false;
  for_each_read(expr,
                [&](const ir::TensorRead& read) { found = found || needs_state_[read.stage]; });
  return found;
}

void Cells::add_stage(bool needs_state) {
  steps_.emplace_back();
  needs_state_.push_back(needs_state);
}

bool tells_first_step(const ir::Expr& expr, const ir::VarRef& time, bool is_reverse) {
  FindsOtherUses walk(time, is_reverse);
  walk(expr);
  return walk.found;
}

}  // namespace kiln::schedule
