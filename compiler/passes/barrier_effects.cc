// Collects what statements do to the buffers that threads of a block share, and which buffers have
// two copies that the iterations of a loop use in turn:
//
//   for k: s[k % 2, t] = A[k, t]  C[t] += s[k % 2, 31 - t]     ->    s, by k
#include "compiler/passes/barrier_effects.h"

#include <set>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

class CopiesInTurn : public Visitor {
 public:
  explicit CopiesInTurn(const For& loop) : copy_(floormod(loop.var, index(2))) {
    (*this)(loop.body);
  }

  std::unordered_set<BufferRef> found() const {
    std::unordered_set<BufferRef> result;
    for (const auto& [buffer, dimensions] : dimensions_) {
      if (!dimensions.empty()) result.insert(buffer);
    }
    return result;
  }

 private:
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    std::set<size_t> dimensions;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (equal_trees(indices[d], copy_)) dimensions.insert(d);
    }
    const auto [at, is_new] = dimensions_.try_emplace(buffer, dimensions);
    if (!is_new) std::erase_if(at->second, [&](size_t d) { return !dimensions.contains(d); });
    Visitor::element(buffer, indices);
  }

  const Expr copy_;
  std::unordered_map<BufferRef, std::set<size_t>> dimensions_;  // that say which copy
};

class CollectEffects : public Visitor {
 public:
  /// All of them, or those of `only`.
  CollectEffects(const SharedBuffers& shared, const std::unordered_set<BufferRef>& in_turn,
                 const std::unordered_set<BufferRef>* only = nullptr)
      : shared_(shared), in_turn_(in_turn), only_(only) {}
  Effects effects;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    if (is_asked(load.buffer)) effects.read.add(load.buffer, copies(load.buffer));
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    note_written(store.buffer);
    Visitor::visit(store);
  }
  void visit(const Atomic& node) override {
    note_written(node.buffer);
    Visitor::visit(node);
  }
  void note_written(const BufferRef& buffer) {
    if (!is_asked(buffer)) return;
    effects.written.add(buffer, copies(buffer));
    if (shared_.rewritten.contains(buffer)) effects.rewritten.add(buffer, copies(buffer));
  }
  bool is_asked(const BufferRef& buffer) const {
    return shared_.contested.contains(buffer) && (only_ == nullptr || only_->contains(buffer));
  }
  Copies copies(const BufferRef& buffer) const {
    return in_turn_.contains(buffer) ? kThisTurn : kAllCopies;
  }

  const SharedBuffers& shared_;
  const std::unordered_set<BufferRef>& in_turn_;
  const std::unordered_set<BufferRef>* const only_;
};

}  // namespace

std::unordered_set<BufferRef> copies_in_turn(const For& loop) { return CopiesInTurn(loop).found(); }

Effects effects_of(const Stmt& stmt, const SharedBuffers& shared,
                   const std::unordered_set<BufferRef>& in_turn,
                   const std::unordered_set<BufferRef>* only) {
  CollectEffects walk(shared, in_turn, only);
  walk(stmt);
  return std::move(walk.effects);
}

}  // namespace kiln::passes
