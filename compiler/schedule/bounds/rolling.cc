// rolling_buffer: a stage keeps what the iterations of the loop it is computed at have in common,
// in a ring of as many rows as one of them reads; the first computes all of them, each later one
// those that are new.
//
//   B at C's loop y; C[y, x] reads B[y .. y + 2, x]
//     ->  B[row % 3, x] = ..  if y == 0 || row == y + 2
//
// As TVM's Stage.rolling_buffer; Halide's sliding window over folded storage (Ragan-Kelley et al.,
// PLDI 2013, 4.3).
#include "compiler/schedule/bounds/rolling.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {
namespace {

class Roll {
 public:
  Roll(const StageGraph& graph, NestPlan& plan, StageId id, const analysis::Facts& sizes)
      : graph_(graph), plan_(plan), id_(id), stage_(graph[id]), facts_(sizes) {}

  int operator()() {
    if (stage_.attach.kind != Attach::Kind::At) {
      refuse(
          "it is computed {}, and no loop moves over it; compute_at it inside a loop of what "
          "reads it",
          stage_.attach.kind == Attach::Kind::Inline ? "inline" : "once");
    }
    for (const Loop* loop : loops_around(graph_, plan_, id_))
      facts_.push_range(loop->var, ir::index(0), loop->extent);
    const Nest& consumer = plan_.nests[stage_.attach.stage];
    const size_t place = loop_of_axis(consumer, stage_.attach.axis);
    const Loop& loop = consumer.loops[place];
    if (loop.is_elided) return -1;
    refuse_other_orders(loop);
    refuse_late_start(consumer, place);
    return keep(loop);
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    const auto position = static_cast<size_t>(stage_.memory.rolled_by);
    try {
      annotate(fmt::format("at step {}: rolling_buffer({})", position + 1, stage_.name), [&] {
        fail(ErrorKind::InvalidArgument, "ROLLING_BUFFER", "cannot roll {}: {}", stage_.name,
             fmt::format(format, std::forward<Args>(args)...));
      });
    } catch (Error& error) {
      error.set_location(location_of(graph_, graph_.state.steps()[position]));
      throw;
    }
    KILN_CHECK(false);
  }

  std::string name_of(const Loop& loop) const {
    return fmt::format("{} of {}", graph_.axes[loop.axis].name, graph_[stage_.attach.stage].name);
  }

  void refuse_other_orders(const Loop& loop) const {
    const Axis& axis = graph_.axes[loop.axis];
    const std::vector<Loop>& own = plan_.nests[id_].loops;
    const bool is_shared = loop.is_shared || std::ranges::any_of(own, &Loop::is_shared);
    const bool in_turn =
        axis.loop_kind == ir::LoopKind::Serial || axis.loop_kind == ir::LoopKind::Unrolled;
    if (in_turn && axis.thread == ir::ThreadAxis::None && !is_shared) return;
    refuse(
        "the iterations of {} do not run one after the other; compute_at it inside a loop that "
        "is not parallel, vectorized or bound, as the inner one of a split",
        name_of(loop));
  }

  /// The first iteration must run, since it computes the most.
  void refuse_late_start(const Nest& consumer, size_t place) const {
    const Loop& loop = consumer.loops[place];
    for (const Guard& guard : consumer.guards) {
      if (guard.level != place + 1 || analysis::can_prove(guard.condition, facts_)) continue;
      if (ends_only(guard.condition, loop.var)) continue;
      refuse(
          "the first iterations of {} may have nothing to compute, and later ones need what "
          "they leave out; compute_at it inside another loop",
          name_of(loop));
    }
  }

  /// Whether a condition that holds in an iteration holds in all before.
  bool ends_only(const ir::Expr& condition, const ir::VarRef& var) const {
    const auto* order = ir::as<ir::Binary>(condition);
    if (order == nullptr) return false;
    if (order->op != ir::Operator::Less && order->op != ir::Operator::LessEqual) return false;
    const ir::Expr gap = order->b - order->a;
    return analysis::can_prove(ir::less_equal(next(gap, var), gap), facts_);
  }

  static ir::Expr next(const ir::Expr& expr, const ir::VarRef& var) {
    return ir::substitute(expr, {{var, ir::Expr(var) + 1}});
  }

  int keep(const Loop& loop) {
    Nest& nest = plan_.nests[id_];
    int moving = -1;
    for (size_t d = 0; d < nest.region.size(); ++d) {
      if (!ir::uses_var(nest.region[d].min, loop.var)) continue;
      if (moving >= 0) {
        refuse("what is read of it moves along {} and {} at once with {}", dimension(moving),
               dimension(static_cast<int>(d)), name_of(loop));
      }
      moving = static_cast<int>(d);
    }
    if (moving < 0) {
      refuse(
          "what iterations of {} read of it does not move along a dimension; compute_at it outside "
          "of "
          "that loop",
          name_of(loop));
    }
    const Region& region = nest.region[static_cast<size_t>(moving)];
    const ir::Expr step = analysis::simplify(next(region.min, loop.var) - region.min, facts_);
    const bool is_known = !ir::uses_var(step, loop.var) &&
                          analysis::can_prove(ir::less_equal(ir::index(1), step), facts_);
    if (!is_known) {
      refuse(
          "how far what is read of it moves along {} with {} is not the same each time, or "
          "backwards",
          dimension(moving), name_of(loop));
    }
    const ir::Expr kept = analysis::simplify(region.extent - step, facts_);
    if (!analysis::can_prove(ir::less_equal(ir::index(1), kept), facts_)) {
      refuse("no two iterations of {} read the same of it; leave out rolling_buffer",
             name_of(loop));
    }
    const ir::Expr is_first = ir::less_equal(loop.var, ir::index(0));
    const ir::Expr is_new = ir::less_equal(kept, nest.offsets[static_cast<size_t>(moving)]);
    add_guard(nest, ir::logical_or(is_first, is_new), false);
    return moving;
  }

  const std::string& dimension(int d) const {
    return graph_.axes[stage_.data[static_cast<size_t>(d)]].name;
  }

  const StageGraph& graph_;
  NestPlan& plan_;
  const StageId id_;
  const Stage& stage_;
  analysis::Facts facts_;
};

}  // namespace

int roll(const StageGraph& graph, NestPlan& plan, StageId stage, const analysis::Facts& sizes) {
  return graph[stage].memory.rolled_by < 0 ? -1 : Roll(graph, plan, stage, sizes)();
}

}  // namespace kiln::schedule
