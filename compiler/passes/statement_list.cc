// Moves statements past each other where neither touches what the other one stores.
//
//   [for j in 0..9 E[j] = ..] [E[9] = ..] [total = 0] [for k in 0..9 total = total + E[k]]
//     the loops may meet, with total = 0 before both and E[9] behind
#include "compiler/passes/statement_list.h"

#include <algorithm>

#include "compiler/analysis/accesses.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Access;

/// Where an access lies in a dimension, whatever the loops inside of its statement do.
analysis::Interval interval_of(const Access& access, size_t dimension) {
  const bool is_vector = access.indices[dimension]->type.lanes > 1;
  if (access.index_changes || is_vector) return {};
  std::vector<analysis::Facts::Range> loops;
  for (const For* loop : access.loops)
    loops.push_back({loop->var, index(0), reads_memory(loop->extent) ? Expr() : loop->extent});
  return analysis::bounds_of(access.indices[dimension], loops, {});
}

/// Whether two accesses of a buffer are of elements on either side of a place.
bool are_apart(const Access& a, const Access& b) {
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const analysis::Interval of_a = interval_of(a, d);
    const analysis::Interval of_b = interval_of(b, d);
    const auto is_before = [](const Expr& last, const Expr& first) {
      return last && first && analysis::can_prove(less(last, first), {});
    };
    if (is_before(of_a.max, of_b.min) || is_before(of_b.max, of_a.min)) return true;
  }
  return false;
}

}  // namespace

StatementList::StatementList(const Stmt& body) { add(body); }

StatementList::Item StatementList::item_of(Stmt statement) {
  std::vector<Access> accesses = analysis::accesses_of(statement);
  return {std::move(statement), {}, std::move(accesses)};
}

// Of long statements only the buffers are looked at: each two elements would be compared.
bool StatementList::depend(const Item& a, const Item& b) {
  constexpr size_t kMostCompared = 64;
  const bool are_compared = a.accesses.size() * b.accesses.size() <= kMostCompared;
  return std::ranges::any_of(a.accesses, [&](const Access& x) {
    return std::ranges::any_of(b.accesses, [&](const Access& y) {
      return x.buffer == y.buffer && (x.is_store || y.is_store) &&
             !(are_compared && are_apart(x, y));
    });
  });
}

void StatementList::add(const Stmt& stmt) {
  if (const auto* block = as<Block>(stmt)) {
    for (const Stmt& each : block->body)
      add(each);
  } else if (const auto* allocate = as<Allocate>(stmt)) {
    items_.push_back({{}, allocate->buffer});
    add(allocate->body);
  } else {
    items_.push_back(item_of(stmt));
  }
}

bool StatementList::mutate(const std::function<Stmt(const Stmt&)>& mutate) {
  bool is_changed = false;
  for (Item& item : items_) {
    if (!item.statement) continue;
    Stmt result = mutate(item.statement);
    if (result == item.statement) continue;
    is_changed = true;
    item = item_of(std::move(result));
  }
  return is_changed;
}

std::vector<bool> StatementList::needs_first(size_t first, size_t second) const {
  std::vector<bool> needs(second - first, false);
  needs[0] = true;
  for (size_t i = first + 1; i < second; ++i) {
    for (size_t earlier = first; earlier < i && !needs[i - first]; ++earlier)
      needs[i - first] = needs[earlier - first] && depend(items_[earlier], items_[i]);
  }
  return needs;
}

bool StatementList::may_meet(size_t first, size_t second) const {
  const std::vector<bool> needs = needs_first(first, second);
  for (size_t i = first + 1; i < second; ++i)
    if (needs[i - first] && depend(items_[i], items_[second])) return false;
  return true;
}

void StatementList::join(size_t first, size_t second, Stmt joined) {
  const std::vector<bool> needs = needs_first(first, second);
  std::vector<Item> order;
  const auto add_between = [&](bool behind) {
    for (size_t i = first + 1; i < second; ++i)
      if (needs[i - first] == behind) order.push_back(items_[i]);
  };
  add_between(false);
  order.push_back(item_of(std::move(joined)));
  add_between(true);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(second));
  std::ranges::copy(order, items_.begin() + static_cast<std::ptrdiff_t>(first));
}

Stmt StatementList::statement() const {
  std::vector<Stmt> after;
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->statement) {
      after.push_back(item->statement);
    } else {
      std::ranges::reverse(after);
      after = {Allocate::make(item->memory, Block::make(std::move(after)))};
    }
  }
  std::ranges::reverse(after);
  return Block::make(std::move(after));
}

}  // namespace kiln::passes
