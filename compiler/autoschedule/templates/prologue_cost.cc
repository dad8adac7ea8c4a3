// What a prologue costs: computed where a factor is fetched it is computed again by each block
// that fetches the same part, and stored it takes a launch and its way through memory.
//
//   max(A[i, k], 0) * S[k] of float16  ->  two operations, each between widening and rounding; S is
//   one load more for each vector
#include "compiler/autoschedule/templates/prologue_cost.h"

#include <algorithm>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/instructions.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::autoschedule {
namespace {

// A load, a store, and the place of either.
constexpr double kMoveInstructions = 6;
// From whole numbers to floats and back there is a quarter of the lanes.
constexpr double kConversion = 4;

class CountInstructions : public ir::Visitor {
 public:
  CountInstructions(const StageGraph& graph, const std::vector<AxisId>& axes)
      : graph_(graph), axes_(axes) {}
  PrologueWork work;

 private:
  using Visitor::visit;

  /// Floats of 8 and 16 bits are computed in float32, and rounded.
  void operation(language::Operator op, const ir::Type& type) {
    work.instructions += thread_instructions(op);
    if (is_float(type.element)) work.multiply_adds += thread_multiply_adds(op);
    if (is_float(type.element) && size_of(type.element) < 4) work.instructions += 1;
  }
  void visit(const ir::Binary& binary) override {
    operation(binary.op, binary.type);
    Visitor::visit(binary);
  }
  void visit(const ir::Call& call) override {
    operation(call.op, call.type);
    Visitor::visit(call);
  }
  void visit(const ir::Cast& cast) override {
    const bool is_other = is_float(cast.type.element) != is_float(cast.value->type.element);
    work.instructions += is_other ? kConversion : 1;
    Visitor::visit(cast);
  }
  /// An element is loaded once, however often it is read.
  void visit(const ir::TensorRead& read) override {
    const auto is_same = [&](const ir::Expr& other) { return ir::equal_trees(other, &read); };
    if (std::ranges::any_of(loaded_, is_same)) return;
    loaded_.emplace_back(&read);
    const bool is_whole =
        std::ranges::all_of(axes_, [&](AxisId axis) { return is_used_in(graph_, read, axis); });
    if (is_whole) work.bytes += static_cast<double>(size_of(read.type.element));
    if (loaded_.size() > 1) work.other_loads += 1;
    const bool is_narrow = is_float(read.type.element) && size_of(read.type.element) < 4;
    if (is_narrow) work.instructions += 1;
  }

  const StageGraph& graph_;
  const std::vector<AxisId>& axes_;
  std::vector<ir::Expr> loaded_;
};

}  // namespace

PrologueWork prologue_work(const StageGraph& graph, StageId prologue) {
  const Stage& stage = graph[prologue];
  CountInstructions count(graph, stage.data);
  count(stage.bodies[0]);
  return count.work;
}

double stored_cycles(const StageGraph& graph, StageId prologue, const GpuMachine& machine) {
  const PrologueWork work = prologue_work(graph, prologue);
  double elements = 1;
  for (const ir::Expr& extent : graph[prologue].shapes[0])
    elements *= static_cast<double>(ir::as_const_int(extent).value_or(kAnyExtent));
  const double each = elements / static_cast<double>(machine.multiprocessors);
  const auto own = static_cast<double>(size_of(graph[prologue].types[0]));
  const auto lanes = static_cast<double>(kVectorBytesOfThread) / own;
  const double issue = each *
                       (work.instructions + kMoveInstructions * (1 + work.other_loads) / lanes) /
                       (ir::kWarp * kSchedulers);
  const double bytes = each * (work.bytes + own);
  const bool stays =
      bytes * static_cast<double>(machine.multiprocessors) <= static_cast<double>(machine.l2_size);
  const double moved = bytes / (stays ? machine.l2_bytes : machine.memory_bytes);
  return kLaunchSeconds * machine.gigahertz * 1e9 + (stays ? kL2LoadCycles : kLoadCycles) +
         std::max(issue, moved);
}

}  // namespace kiln::autoschedule
