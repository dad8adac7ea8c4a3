// Loops in whose iterations two shared memories take turns, as those of products in float32.
//
//   for k in 0..512 { S[k % 2, ..] = ..  barrier  .. S[k % 2, ..] .. }
//     ->  #pragma unroll 2: each of two iterations has its place as a constant of the instructions
//
// A loop is written so where its sums take half of all registers for 256 threads anyway: smaller
// ones have more blocks at once with fewer registers. What is fetched one by one has too many
// addresses for two iterations, and half of the registers all the same.
#include "compiler/codegen/cuda_turns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/races.h"

namespace kiln::codegen {
namespace {

using namespace ir;

constexpr int64_t kFewLoads = 4;  // from memory, each of which has an address
// Of a thread's own elements: 64 sums of 8 steps, and what is on its way to shared memory.
constexpr int64_t kLeastUpdates = 512;
constexpr int64_t kMostUpdates = 576;

/// What an iteration has, with its loops written out.
class Turns : public Visitor {
 public:
  explicit Turns(const For& loop) : loop_(loop) { (*this)(loop.body); }

  bool takes_turns = false;
  bool has_background = false;
  int64_t loads = 0;
  int64_t updates = 0;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    const int64_t around = times_;
    times_ *= std::max<int64_t>(as_const_int(loop.extent).value_or(kMostUpdates + 1), 1);
    times_ = std::min(times_, kMostUpdates + 1);
    Visitor::visit(loop);
    times_ = around;
  }
  void visit(const Background& node) override {
    has_background = true;
    Visitor::visit(node);
  }
  void visit(const Load& load) override {
    if (load.buffer->scope == Scope::Global) loads += times_;
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    if (store.buffer->scope == Scope::Local) updates += times_;
    Visitor::visit(store);
  }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    if (buffer->scope == Scope::Shared)
      takes_turns = takes_turns || std::ranges::any_of(
                                       indices, [&](const Expr& index) { return has_turn(index); });
    Visitor::element(buffer, indices);
  }
  bool has_turn(const Expr& expr) const {
    const auto* rest = as<Binary>(expr);
    const bool divides =
        rest != nullptr && (rest->op == Operator::FloorMod || rest->op == Operator::TruncMod);
    const auto* as_unsigned = divides ? as<Cast>(rest->a) : nullptr;
    const bool is_rest = divides && is_const(rest->b, 2) &&
                         (as_unsigned != nullptr ? as_unsigned->value : rest->a) == loop_.var;
    return is_rest ||
           std::ranges::any_of(operands_of(expr), [&](const Expr& part) { return has_turn(part); });
  }

  const For& loop_;
  int64_t times_ = 1;
};

class FindsTurns : public Visitor {
 public:
  TurnLoops found;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    look_at(loop);
    Visitor::visit(loop);
  }
  void look_at(const For& loop) {
    constexpr int64_t kLeast = 4;
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (loop.loop_kind != LoopKind::Serial || !extent || *extent < kLeast) return;
    if (!waits_in(loop.body).for_block) return;
    const Turns turns(loop);
    if (!turns.takes_turns || turns.has_background) return;
    if (turns.updates < kLeastUpdates || turns.updates > kMostUpdates) return;
    found.all.insert(&loop);
    if (turns.loads <= kFewLoads) found.written_twice.insert(&loop);
  }
};

}  // namespace

TurnLoops turn_loops(const Stmt& body) {
  FindsTurns walk;
  walk(body);
  return std::move(walk.found);
}

}  // namespace kiln::codegen
