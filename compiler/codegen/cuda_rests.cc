// Loops that are not worth the time that NVRTC takes to write their iterations out.
//
//   for k in 0..64 { .. for s in 0..8 { products } }   for k in 0..2 { .. for s_1 in 0..8 {
//   products } }
//     ->  #pragma unroll 1 for s_1: NVRTC reads and schedules one iteration where it would be eight
//
// Of an attention of 128 numbers in bfloat16 whose mask has a loop of its own these are a third of
// its time, and take so many registers that some are spilled.
#include "compiler/codegen/cuda_rests.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/races.h"

namespace kiln::codegen {
namespace {

using namespace ir;

constexpr double kUnknown = 64;       // iterations of which nothing is known
constexpr double kManyElements = 16;  // of a thread
constexpr double kLittle = 8;         // times less than the most

/// What an iteration of a loop does with a thread's own elements, and whether it does more.
class Step : public Visitor {
 public:
  explicit Step(const For& loop) { (*this)(loop.body); }

  double updates = 0;
  BufferRef sums;  // one of those it updates
  bool reads_shared = false;
  bool is_plain = true;  // nothing goes to or comes from memory that others see

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    const double around = times_;
    times_ *= static_cast<double>(as_const_int(loop.extent).value_or(1));
    Visitor::visit(loop);
    times_ = around;
  }
  void visit(const Store& store) override {
    if (store.buffer->scope == Scope::Local) {
      updates += times_;
      sums = store.buffer;
    }
    is_plain = is_plain && store.buffer->scope == Scope::Local;
    Visitor::visit(store);
  }
  void visit(const Load& load) override {
    reads_shared = reads_shared || load.buffer->scope == Scope::Shared;
    is_plain = is_plain && load.buffer->scope != Scope::Global;
    Visitor::visit(load);
  }

  double times_ = 1;
};

class FindsRests : public Visitor {
 public:
  /// Of one sum what is left is short, and as a loop its places take registers that the others
  /// want: a product of tensor floats had 255 for sm_80 instead of 240, and spilled.
  LoopSet result() const {
    double most = 0;
    bool are_several = false;
    for (const Found& found : steps_) {
      most = std::max(most, found.work);
      are_several = are_several || found.sums != steps_[0].sums;
    }
    LoopSet rests;
    for (const Found& found : steps_)
      if (are_several && found.work * kLittle <= most) rests.insert(found.loop);
    return rests;
  }

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Serial) return Visitor::visit(loop);
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    const double around = times_;
    times_ *= extent ? static_cast<double>(*extent) : kUnknown;
    const Step step(loop);
    const bool is_step = step.reads_shared && step.is_plain && step.updates >= kManyElements &&
                         !waits_in(loop.body).for_block;
    if (is_step) {
      if (extent) steps_.push_back({&loop, times_ * step.updates, step.sums});
    } else {
      Visitor::visit(loop);
    }
    times_ = around;
  }

  struct Found {
    const For* loop;
    double work;
    BufferRef sums;
  };

  double times_ = 1;
  std::vector<Found> steps_;
};

}  // namespace

LoopSet rest_loops(const Stmt& body) {
  FindsRests walk;
  walk(body);
  return walk.result();
}

}  // namespace kiln::codegen
