// Shows that a statement is idempotent: each element stored depends on nothing that the statement
// stores, but for sums `C[i] = C[i] + ..` whose element an earlier store of the same statement
// starts anew. Compared are buffers, indices and the loops around them, all by structure.
#include "compiler/passes/is_idempotent.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// A store, with all that stands around it inside of the statement.
struct Write {
  const Store* store;
  std::vector<const For*> loops;
  std::vector<Expr> conditions;
};

/// All stores but those to buffers of the statement's own, which begin undefined each time.
class CollectWrites : public Visitor {
 public:
  std::vector<Write> writes;
  bool is_plain = true;

 private:
  using Visitor::visit;

  void visit(const Store& store) override {
    if (own_.contains(store.buffer)) return;
    // Several may be of one element, which has the value of the last of them.
    is_plain = is_plain && std::ranges::none_of(store.indices, reads_memory);
    writes.push_back({&store, loops_, conditions_});
  }

  void visit(const For& loop) override {
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }

  void visit(const If& node) override {
    is_plain = is_plain && !node.else_body;
    conditions_.push_back(node.condition);
    Visitor::visit(node);
    conditions_.pop_back();
  }

  void visit(const Allocate& allocate) override {
    own_.insert(allocate.buffer);
    Visitor::visit(allocate);
  }

  void visit(const Tensorize& node) override { is_plain = false; }
  void visit(const Background& node) override { is_plain = false; }

  std::vector<const For*> loops_;
  std::vector<Expr> conditions_;
  std::unordered_set<BufferRef> own_;
};

/// All loads of buffers that are stored to, but for those of the element that a store replaces.
class ReadsStored : public Visitor {
 public:
  explicit ReadsStored(const std::unordered_set<BufferRef>& stored) : stored_(stored) {}

  bool others = false;
  std::unordered_set<const Store*> sums;  // that read the element they replace

 private:
  using Visitor::visit;

  void visit(const Store& store) override {
    store_ = &store;
    Visitor::visit(store);
    store_ = nullptr;
  }

  void visit(const Load& load) override {
    Visitor::visit(load);
    if (!stored_.contains(load.buffer)) return;
    const bool is_own =
        store_ != nullptr && load.buffer == store_->buffer &&
        std::ranges::equal(load.indices, store_->indices,
                           [](const Expr& a, const Expr& b) { return equal_trees(a, b); });
    if (is_own) {
      sums.insert(store_);
    } else {
      others = true;
    }
  }

  const std::unordered_set<BufferRef>& stored_;
  const Store* store_ = nullptr;
};

/// Whether `start` stores all elements that `sum` reads, before it does: in the loops around both,
/// in the same iteration.
bool begins(const Write& start, const Write& sum) {
  const auto [rest_of_start, rest_of_sum] = std::ranges::mismatch(start.loops, sum.loops);
  std::vector<const For*> over;  // the loops over elements, not those that add up
  std::copy_if(rest_of_sum, sum.loops.end(), std::back_inserter(over), [&](const For* loop) {
    return std::ranges::any_of(sum.store->indices,
                               [&](const Expr& index) { return uses_var(index, loop->var); });
  });
  if (std::distance(rest_of_start, start.loops.end()) != std::ssize(over)) return false;
  Substitution same;
  for (size_t i = 0; i < over.size(); ++i) {
    const For& loop = **(rest_of_start + static_cast<std::ptrdiff_t>(i));
    if (!equal_trees(loop.extent, over[i]->extent)) return false;
    same.emplace(loop.var, over[i]->var);
  }
  const auto is_same = [&](const Expr& a, const Expr& b) {
    return equal_trees(substitute(a, same), b);
  };
  return start.store->buffer == sum.store->buffer &&
         std::ranges::equal(start.store->indices, sum.store->indices, is_same) &&
         std::ranges::all_of(start.conditions, [&](const Expr& condition) {
           return std::ranges::any_of(sum.conditions,
                                      [&](const Expr& other) { return is_same(condition, other); });
         });
}

}  // namespace

bool is_idempotent(const Stmt& stmt) {
  CollectWrites collect;
  collect(stmt);
  std::unordered_set<BufferRef> stored;
  for (const Write& write : collect.writes)
    stored.insert(write.store->buffer);
  ReadsStored reads(stored);
  reads(stmt);
  if (!collect.is_plain || reads.others) return false;
  for (auto sum = collect.writes.begin(); sum != collect.writes.end(); ++sum) {
    if (!reads.sums.contains(sum->store)) continue;
    const bool is_begun = std::any_of(collect.writes.begin(), sum, [&](const Write& start) {
      return !reads.sums.contains(start.store) && begins(start, *sum);
    });
    if (!is_begun) return false;
  }
  return true;
}

}  // namespace kiln::passes
