// Keeps the last step of a recurrence in registers, where a few elements are computed side by side.
//
//   for t in 0..4095 { for i in 0..4 unroll { S[i, t + 1] = S[i, t] + X[i, t + 1] } }
//     ->
//   allocate S.last: float32[4] scope(local)
//   for i in 0..4 unroll { S.last[i] = S[i, 0] }
//   for t in 0..4095 { for i in 0..4 unroll {
//     S.last[i] = S.last[i] + X[i, t + 1]    S[i, t + 1] = S.last[i] } }
//
// A step that reads what the one before stored waits for the store, 7 cycles and more, and then
// adds (scalar replacement across iterations: Callahan, Carr and Kennedy, 1990). Vectors of columns
// are left: several wait at once, so that a running sum down 1024 x 1024 takes 94 us as it is on a
// Zen 5 and 98 with its states in registers.
//
// After partition_loops, so that full tiles have no guards; while indices are per dimension.
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/accumulator_tile.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/step_lines.h"
#include "compiler/passes/use_state.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// What fits registers beside the elements of a step, of the least vector unit: half of 16.
constexpr int64_t kMostElements = 8;

/// The step before the first, to the buffer.
class LoadState : public Mutator {
 public:
  LoadState(BufferRef state, std::vector<Expr> place, Expr last)
      : state_(std::move(state)), place_(std::move(place)), last_(std::move(last)) {}

 private:
  using Mutator::visit;
  Stmt visit(const Store&) override { return Store::make(state_, place_, last_); }

  const BufferRef state_;
  const std::vector<Expr> place_;
  const Expr last_;
};

class CarrySteps : public Mutator {
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const Stmt result = Mutator::visit(loop);
    const Stmt carried = in_registers(*as<For>(result));
    return carried ? carried : result;
  }

  static Stmt in_registers(const For& time) {
    if (time.loop_kind != LoopKind::Serial) return nullptr;
    std::optional<AccumulatorTile> step = layers_of(time.body);
    if (!step || step->store->value->type.lanes != 1) return nullptr;
    const Store& store = *step->store;
    const std::optional<Line> result = line_of(store.buffer, store.indices, time.var);
    if (!result) return nullptr;
    std::vector<Expr> shape;
    std::vector<Expr> place;
    int64_t elements = 1;
    for (Layer& layer : step->layers) {
      if (layer.loop == nullptr) {
        const Expr& condition = layer.guard->condition;
        if (uses_var(condition, time.var) || reads_memory(condition)) return nullptr;
        continue;
      }
      const std::optional<int64_t> extent = as_const_int(layer.loop->extent);
      if (layer.loop->loop_kind != LoopKind::Unrolled || !extent || *extent < 1 ||
          *extent > kMostElements)
        return nullptr;
      elements *= *extent;
      if (elements > kMostElements) return nullptr;
      layer.of_tile = true;
      shape.push_back(layer.loop->extent);
      place.emplace_back(layer.loop->var);
    }
    if (shape.empty()) {
      shape.push_back(index(1));
      place.push_back(index(0));
    }
    ReadLines reads(*result, time.var);
    reads(store.value);
    if (!reads.is_recurrence() || !is_one_to_one(*step)) return nullptr;
    return carried(time, *step, *result, std::move(shape), place);
  }

  static Stmt carried(const For& time, const AccumulatorTile& step, const Line& result,
                      std::vector<Expr> shape, const std::vector<Expr>& place) {
    const BufferRef state = Buffer::make(result.buffer->name + ".last", result.buffer->type,
                                         std::move(shape), Scope::Local);
    const Expr last = Load::make(result.buffer, result.at(index(-1)));
    const Stmt first = fresh_copy(LoadState(state, place, last)(time.body));
    const Stmt steps =
        For::make(time.var, time.extent, LoopKind::Serial, UseState(step, state)(time.body));
    Stmt all = Allocate::make(state, Block::make({first, steps}));
    // Before no step there may be no element.
    const std::optional<int64_t> extent = as_const_int(time.extent);
    if (!extent || *extent < 1) all = If::make(less(index(0), time.extent), std::move(all));
    return all;
  }
};

}  // namespace

Kernel carry_steps(Kernel kernel, const PassContext&) {
  CarrySteps carry;
  kernel.body = carry(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
