#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/ir/mutator.h"
#include "compiler/schedule/bounds/infer_bounds.h"
#include "compiler/schedule/emit/emit.h"
#include "compiler/schedule/steps/apply_steps.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/random.h"

namespace kiln::schedule {
namespace {

/// The loops that a stage has under its schedule, by what the language says alone.
std::vector<AxisId> loops_by_the_language(const language::ScheduleState& state,
                                          const StageGraph& graph, language::StageId id) {
  std::vector<AxisId> loops;
  for (const language::AxisId leaf : state.stage(id).loops.leaves) {
    const AxisId axis = graph.axis_of_id[leaf];
    // A reduction inside of its expression has loops of its own.
    if (graph.axes[axis].stage == graph.stage_of_id[id]) loops.push_back(axis);
  }
  return loops;
}

/// Whether loops of a nest stand inside of each other in its order, none left out.
class LoopOrder : public ir::Visitor {
 public:
  explicit LoopOrder(const Nest& nest) {
    for (const Loop& loop : nest.loops) {
      if (!loop.is_elided && !loop.is_shared) order_.push_back(loop.var);
    }
  }

  std::vector<std::string> found;  // the loops inside of each other that go deepest
  std::vector<std::string> wanted() const { return names_of(order_); }

 private:
  using Visitor::visit;
  void visit(const ir::For& loop) override {
    const bool is_own = std::ranges::find(order_, ir::VarRef(loop.var)) != order_.end();
    if (is_own) around_.push_back(loop.var);
    if (around_.size() > found.size()) found = names_of(around_);
    Visitor::visit(loop);
    if (is_own) around_.pop_back();
  }

  static std::vector<std::string> names_of(const std::vector<ir::VarRef>& vars) {
    std::vector<std::string> names;
    for (const ir::VarRef& var : vars)
      names.push_back(var->name);
    return names;
  }

  std::vector<ir::VarRef> order_;
  std::vector<ir::VarRef> around_;
};

class LoopsOfCase {
 public:
  explicit LoopsOfCase(const testing::FuzzCase& which)
      : state_(which.kernel.definition, which.kernel.names, which.schedule),
        graph_(build_stage_graph(which.kernel)) {
    apply_steps(graph_, which.schedule);
    plan_ = infer_bounds(graph_, TargetKind::Llvm);
    std::vector<RuntimeCheck> checks;
    emitted_ = emit_loops(graph_, plan_, TargetKind::Llvm, checks);
  }

  /// How many loops the state has; each is found in the loops that are emitted.
  int compare() const {
    int loops = 0;
    for (language::StageId id = 0; id < state_.stages().size(); ++id) {
      const StageId position = graph_.stage_of_id[id];
      const Stage& stage = graph_[position];
      if (!stage.is_live || stage.attach.kind == Attach::Kind::Inline) continue;
      const std::vector<AxisId> expected = loops_by_the_language(state_, graph_, id);
      std::vector<AxisId> own;
      // A scan may run inside the loops over its columns, which are those of its updates.
      for (const Loop& loop : plan_.nests[position].loops) {
        if (graph_.axes[loop.axis].stage == position) own.push_back(loop.axis);
      }
      std::vector<AxisId> in_order = expected;
      // Of what a scan's cell computes, time comes first whatever its place.
      if (stage.time_dimension >= 0) {
        std::sort(own.begin(), own.end());
        std::sort(in_order.begin(), in_order.end());
      }
      EXPECT_EQ(own, in_order) << stage.name;
      LoopOrder order(plan_.nests[position]);
      order(emitted_);
      EXPECT_EQ(order.found, order.wanted()) << stage.name;
      loops += static_cast<int>(expected.size());
    }
    return loops;
  }

 private:
  const language::ScheduleState state_;
  StageGraph graph_;
  NestPlan plan_;
  ir::Stmt emitted_;
};

/// The state knows the loops of each stage without sizes and expressions: they are those that the
/// compiler emits.
TEST(ScheduleState, HasTheLoopsThatAreEmitted) {
  const int rounds = testing::fuzz_rounds(300);
  int loops = 0;
  const uint64_t end = testing::fuzz_seed() + static_cast<uint64_t>(rounds);
  for (uint64_t seed = testing::fuzz_seed(); seed < end && !HasFailure(); ++seed) {
    const testing::FuzzCase which = testing::draw_case(seed);
    SCOPED_TRACE(testing::describe(seed, which));
    try {
      loops += LoopsOfCase(which).compare();
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.message();
    }
  }
  if (rounds >= 100) {
    EXPECT_GT(loops, 4 * rounds);
  }
}

}  // namespace
}  // namespace kiln::schedule
