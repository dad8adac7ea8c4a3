// Finds all that a statement does with one buffer, in the order of the text.
#include "compiler/passes/buffer_uses.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

class FindUses : public Visitor {
 public:
  explicit FindUses(const BufferRef& buffer) : buffer_(buffer) {}

  BufferUses found;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }
  void visit(const MultiplyTiles& tiles) override {
    steps_ = loops_.size();
    Visitor::visit(tiles);
    steps_ = kNone;
  }
  void visit(const If& node) override {
    ++guards_;
    Visitor::visit(node);
    --guards_;
  }
  void visit(const Store& store) override {
    store_ = &store;
    Visitor::visit(store);
    store_ = nullptr;
    // After what it loads.
    if (store.buffer == buffer_) add(store.indices, &store, true);
  }
  void visit(const Load& load) override {
    if (load.buffer == buffer_) add(load.indices, store_, false);
    Visitor::visit(load);
  }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    if (buffer == buffer_) ++found.named;
    Visitor::element(buffer, indices);
  }
  void add(const std::vector<Expr>& indices, const Store* store, bool is_stored) {
    const size_t steps = std::min(steps_, loops_.size());
    found.uses.push_back({indices, loops_, steps, store, is_stored, guards_ > 0});
  }

  const BufferRef& buffer_;
  std::vector<const For*> loops_;
  const Store* store_ = nullptr;
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  size_t steps_ = kNone;
  int guards_ = 0;
};

}  // namespace

BufferUses uses_of(const BufferRef& buffer, const Stmt& stmt) {
  FindUses find(buffer);
  find(stmt);
  return std::move(find.found);
}

bool are_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal_trees(x, y); });
}

std::vector<analysis::LoopRange> ranges_of(const std::vector<const For*>& loops) {
  std::vector<analysis::LoopRange> ranges;
  for (const For* loop : loops)
    ranges.push_back({loop->var, loop->extent});
  return ranges;
}

}  // namespace kiln::passes
