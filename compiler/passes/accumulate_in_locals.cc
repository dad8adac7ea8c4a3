// Keeps what a thread adds up in a register: an element that is set before a loop, and that each
// step of the loop updates at that place alone, is a local buffer of one element while the loop
// runs. A compiler of CUDA C cannot do it, since any other pointer might be to the same element; it
// is the scalar replacement of Callahan, Carr and Kennedy (1990).
//
//   C[i] = 0    for k in 0..l { C[i] = C[i] + A[i, k] }
//     ->
//   allocate C.acc: float32[1] scope(local) { C.acc[0] = 0
//     for k in 0..l { C.acc[0] = C.acc[0] + A[i, k] }    C[i] = C.acc[0] }
//
// After insert_barriers: nobody else sees the element in between, since a thread that needs it
// waits for a barrier, and loops with one stay as they are.
#include <algorithm>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/thread_mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Whether a loop sums up the element that a store sets, and what stands in the way.
class SumsUp : public Visitor {
 public:
  explicit SumsUp(const Store& start) : start_(start) {}
  bool result() const { return is_stored_ && !is_elsewhere_; }

 private:
  using Visitor::visit;
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    const bool is_same = std::ranges::equal(
        indices, start_.indices, [](const Expr& a, const Expr& b) { return equal_trees(a, b); });
    if (buffer == start_.buffer && !is_same) is_elsewhere_ = true;
    Visitor::element(buffer, indices);
  }
  void visit(const Store& store) override {
    is_stored_ = is_stored_ || store.buffer == start_.buffer;
    is_elsewhere_ = is_elsewhere_ || store.predicate;
    Visitor::visit(store);
  }
  void visit(const For& loop) override {
    const bool is_threads = loop.loop_kind == LoopKind::ThreadIndex;
    const bool is_moved = std::ranges::any_of(
        start_.indices, [&](const Expr& index) { return uses_var(index, loop.var); });
    is_elsewhere_ = is_elsewhere_ || is_threads || is_moved;
    Visitor::visit(loop);
  }
  void visit(const Barrier&) override { is_elsewhere_ = true; }

  const Store& start_;
  bool is_stored_ = false;
  bool is_elsewhere_ = false;
};

class ReadsBuffer : public Visitor {
 public:
  explicit ReadsBuffer(const BufferRef& buffer) : buffer_(buffer) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    found = found || load.buffer == buffer_;
    Visitor::visit(load);
  }
  const BufferRef& buffer_;
};

/// A statement with the one element of `from` that it touches in the place of `to`.
class UseLocal : public Mutator {
 public:
  UseLocal(BufferRef from, BufferRef to) : from_(std::move(from)), to_(std::move(to)) {}

 private:
  using Mutator::visit;
  Expr visit(const Load& load) override {
    return load.buffer == from_ ? Load::make(to_, {index(0)}) : Mutator::visit(load);
  }
  Stmt visit(const Store& store) override {
    if (store.buffer != from_) return Mutator::visit(store);
    return Store::make(to_, {index(0)}, (*this)(store.value));
  }
  const BufferRef from_;
  const BufferRef to_;
};

class AccumulateInLocals : public ThreadMutator {
  using ThreadMutator::visit;

  Stmt visit(const Block& block) override {
    if (!is_in_threads()) return Mutator::visit(block);
    std::vector<Stmt> body;
    for (const Stmt& stmt : block.body) {
      Stmt next = (*this)(stmt);
      if (as<For>(next) != nullptr) next = with_locals(body, std::move(next));
      body.push_back(std::move(next));
    }
    return body == block.body ? Stmt(&block) : Block::make(std::move(body));
  }

  /// The loop with the stores right in front of it that begin its sums, taken out of `before`.
  static Stmt with_locals(std::vector<Stmt>& before, Stmt loop) {
    auto first = before.end();
    while (first != before.begin() && as<Store>(*(first - 1)) != nullptr)
      --first;
    const std::vector<Stmt> stores(first, before.end());
    before.erase(first, before.end());

    std::vector<Stmt> begin;
    std::vector<Stmt> end;
    std::vector<BufferRef> locals;
    Stmt body = loop;
    for (const Stmt& stmt : stores) {
      const Store& store = *as<Store>(stmt);
      if (!begins_sum(store, stores, loop)) {
        begin.push_back(stmt);
        continue;
      }
      const BufferRef local =
          Buffer::make(store.buffer->name + ".acc", store.buffer->type, {index(1)}, Scope::Local);
      begin.push_back(Store::make(local, {index(0)}, store.value));
      body = UseLocal(store.buffer, local)(body);
      end.push_back(Store::make(store.buffer, store.indices, Load::make(local, {index(0)})));
      locals.push_back(local);
    }
    std::vector<Stmt> all = std::move(begin);
    all.push_back(body);
    all.insert(all.end(), end.begin(), end.end());
    Stmt result = all.size() == 1 ? all[0] : Block::make(std::move(all));
    for (const BufferRef& local : locals)
      result = Allocate::make(local, result);
    if (!locals.empty()) return result;
    before.insert(before.end(), stores.begin(), stores.end());
    return loop;
  }

  static bool begins_sum(const Store& store, const std::vector<Stmt>& stores, const Stmt& loop) {
    const auto is_used = [&](const Stmt& other) {
      ReadsBuffer reads(store.buffer);
      reads(other);
      return reads.found || (other.get() != &store && as<Store>(other)->buffer == store.buffer);
    };
    const bool is_plain = !store.predicate && store.buffer->scope != Scope::Local &&
                          store.value->type.lanes == 1 &&
                          std::ranges::none_of(store.indices, reads_memory);
    if (!is_plain || std::ranges::any_of(stores, is_used)) return false;
    SumsUp walk(store);
    walk(loop);
    return walk.result();
  }
};

}  // namespace

ir::Kernel accumulate_in_locals(ir::Kernel kernel, const PassContext&) {
  kernel.body = AccumulateInLocals()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
