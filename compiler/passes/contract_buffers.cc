// Keeps what one iteration of a loop stores, and that iteration alone reads, in memory for one
// iteration: registers, once its vectors are.
//
//   allocate Z: float32[n]
//   for i in 0..n/32 parallel {
//     for v in 0..32 vectorize { Z[i*32 + v] = X[i*32 + v]*2.0 }
//     for v in 0..32 vectorize { W[i*32 + v] = max(Z[i*32 + v], 0.0)*Z[i*32 + v] } }
//     ->
//   for i in 0..n/32 parallel {
//     allocate Z: float32[32]
//     for v in 0..32 vectorize { Z[v] = X[i*32 + v]*2.0 }
//     for v in 0..32 vectorize { W[i*32 + v] = max(Z[v], 0.0)*Z[v] } }
//
// Of ten million floats that takes 2.9 ms instead of 4.4 on a core of a Zen 4, and 40 MB less.
//
// Array contraction (Lewis, Lin and Snyder, "The implementation and evaluation of fusion and
// contraction in array languages", 1998).
//
// After join_loops, which brings the two together; before buffers get a place.
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/buffer_uses.h"
#include "compiler/passes/contracted_buffers.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// The buffer as the memories of its iterations.
class Replace : public Mutator {
 public:
  Replace(BufferRef from, const std::vector<Contracted>& to) : from_(std::move(from)) {
    for (const Contracted& each : to)
      by_loop_[each.around] = &each;
  }

  Stmt body(const Stmt& stmt) { return within(nullptr, stmt); }

 private:
  using Mutator::visit;
  Stmt visit(const For& loop) override {
    loops_.push_back(&loop);
    const Stmt inside = within(&loop, loop.body);
    loops_.pop_back();
    if (inside == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, inside);
  }

  Stmt within(const For* loop, const Stmt& stmt) {
    const auto found = by_loop_.find(loop);
    if (found == by_loop_.end()) return (*this)(stmt);
    const Contracted* const outer = std::exchange(current_, found->second);
    const size_t depth = std::exchange(depth_, loops_.size());
    const Stmt inside = (*this)(stmt);
    depth_ = depth;
    const BufferRef memory = std::exchange(current_, outer)->memory;
    return Allocate::make(memory, inside);
  }

  Element element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    if (buffer != from_) return Mutator::element(buffer, indices);
    return {current_->memory, steps_of(indices, steps_within(loops_, depth_))->offsets};
  }

  const BufferRef from_;
  std::unordered_map<const For*, const Contracted*> by_loop_;
  const Contracted* current_ = nullptr;
  size_t depth_ = 0;  // loops around the memory of now
  std::vector<const For*> loops_;
};

class ContractBuffers : public Mutator {
  /// Of one iteration, and in it.
  static bool is_there_already(const Allocate& allocate, const std::vector<Contracted>& found) {
    return found.size() == 1 && found[0].around == nullptr &&
           are_equal(allocate.buffer->shape, found[0].memory->shape);
  }

  using Mutator::visit;
  Stmt visit(const Allocate& allocate) override {
    const std::vector<Contracted> found = contracted(allocate);
    if (found.empty() || is_there_already(allocate, found)) return Mutator::visit(allocate);
    return (*this)(Replace(allocate.buffer, found).body(allocate.body));
  }
};

}  // namespace

Kernel contract_buffers(Kernel kernel, const PassContext&) {
  kernel.body = ContractBuffers()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
