#include "compiler/passes/apart.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

class CollectAccesses : public Visitor {
 public:
  std::vector<Access> accesses;

 private:
  using Visitor::visit;

  void add(const BufferRef& buffer, const std::vector<Expr>& indices, bool is_store) {
    if (own_.contains(buffer)) return;
    accesses.push_back({buffer, indices, is_store, loops_, statement_});
  }

  void visit(const Load& load) override {
    add(load.buffer, load.indices, false);
    Visitor::visit(load);
  }

  void visit(const Store& store) override {
    statement_ = &store;
    Visitor::visit(store);
    add(store.buffer, store.indices, true);
  }

  void visit(const If& node) override {
    statement_ = &node;
    Visitor::visit(node);
  }

  void visit(const Check& check) override {
    statement_ = &check;
    Visitor::visit(check);
  }

  void visit(const For& loop) override {
    statement_ = &loop;
    (*this)(loop.extent);
    loops_.push_back(&loop);
    (*this)(loop.body);
    loops_.pop_back();
  }

  void visit(const Allocate& allocate) override {
    own_.insert(allocate.buffer);
    Visitor::visit(allocate);
  }

  std::unordered_set<BufferRef> own_;
  std::vector<const For*> loops_;
  const StmtNode* statement_ = nullptr;
};

/// An index of one access, as  sum(factor * var)  +  still  +  something in low..high.
struct Split {
  std::vector<int64_t> factors;                 // of each of `vars`
  std::vector<std::pair<Expr, int64_t>> still;  // terms that are the same in both accesses
  int64_t low = 0;
  int64_t high = 0;
};

class SplitIndex {
 public:
  SplitIndex(const std::vector<LoopRange>& vars, const std::vector<LoopRange>& moving)
      : vars_(vars), moving_(moving) {}

  std::optional<Split> operator()(const Expr& expr) {
    result_ = {};
    result_.factors.assign(vars_.size(), 0);
    if (!add(expr, 1)) return std::nullopt;
    return result_;
  }

 private:
  static constexpr int64_t kHuge = int64_t{1} << 40;  // keeps all sums in range

  bool add(const Expr& expr, int64_t factor) {
    if (std::abs(factor) > kHuge) return false;
    if (const std::optional<int64_t> value = as_const_int(expr))
      return shift(*value, *value, factor);
    if (const Binary* node = as<Binary>(expr)) {
      switch (node->op) {
        case Operator::Add: return add(node->a, factor) && add(node->b, factor);
        case Operator::Sub: return add(node->a, factor) && add(node->b, -factor);
        case Operator::Mul: {
          const std::optional<int64_t> a = as_const_int(node->a);
          const std::optional<int64_t> b = as_const_int(node->b);
          if (a && std::abs(*a) < kHuge) return add_scaled(node->b, factor, *a);
          if (b && std::abs(*b) < kHuge) return add_scaled(node->a, factor, *b);
          break;
        }
        default: break;
      }
    }
    return add_term(expr, factor);
  }

  bool add_scaled(const Expr& expr, int64_t factor, int64_t by) {
    int64_t product = 0;
    return !__builtin_mul_overflow(factor, by, &product) && add(expr, product);
  }

  bool add_term(const Expr& term, int64_t factor) {
    for (size_t i = 0; i < vars_.size(); ++i) {
      if (term.get() == vars_[i].var.get()) {
        result_.factors[i] += factor;
        return true;
      }
      if (uses_var(term, vars_[i].var)) return false;
    }
    for (const LoopRange& range : moving_) {
      if (term.get() == range.var.get()) {
        const std::optional<int64_t> extent = as_const_int(range.extent);
        return extent && *extent < kHuge && shift(0, std::max<int64_t>(*extent - 1, 0), factor);
      }
      if (uses_var(term, range.var)) return false;
    }
    result_.still.emplace_back(term, factor);
    return true;
  }

  bool shift(int64_t low, int64_t high, int64_t factor) {
    if (std::abs(low) > kHuge || std::abs(high) > kHuge) return false;
    int64_t a = 0;
    int64_t b = 0;
    if (__builtin_mul_overflow(low, factor, &a) || __builtin_mul_overflow(high, factor, &b)) {
      return false;
    }
    return !__builtin_add_overflow(result_.low, std::min(a, b), &result_.low) &&
           !__builtin_add_overflow(result_.high, std::max(a, b), &result_.high);
  }

  const std::vector<LoopRange>& vars_;
  const std::vector<LoopRange>& moving_;
  Split result_;
};

bool same_terms(const Split& a, const Split& b) {
  return std::ranges::is_permutation(a.still, b.still, [](const auto& x, const auto& y) {
    return x.second == y.second && equal_trees(x.first, y.first);
  });
}

/// Marks the variables whose value an index of this form gives away: read from the smallest factor
/// up, each term must be worth more than all below it together, as digits of a number are.
void mark_told(const Split& form, int64_t low, int64_t high, const std::vector<LoopRange>& vars,
               std::vector<bool>& told) {
  std::vector<size_t> order;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (form.factors[i] != 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](size_t i) { return std::abs(form.factors[i]); });

  __int128 width = static_cast<__int128>(high) - low + 1;
  for (size_t position = 0; position < order.size(); ++position) {
    const int64_t factor = std::abs(form.factors[order[position]]);
    if (factor < width) return;
    const std::optional<int64_t> extent = as_const_int(vars[order[position]].extent);
    if (!extent && position + 1 < order.size()) return;
    width += static_cast<__int128>(factor) * (extent.value_or(1) - 1);
  }
  for (const size_t i : order)
    told[i] = true;
}

}  // namespace

std::vector<Access> accesses_of(const Stmt& stmt) {
  CollectAccesses walk;
  walk(stmt);
  return std::move(walk.accesses);
}

bool are_apart(const std::vector<std::vector<Expr>>& places, const std::vector<LoopRange>& vars,
               const std::vector<LoopRange>& moving) {
  std::vector<bool> told(vars.size());
  for (size_t i = 0; i < vars.size(); ++i)
    told[i] = is_const(vars[i].extent, 1);
  SplitIndex split(vars, moving);

  for (size_t d = 0; d < places[0].size(); ++d) {
    const std::optional<Split> first = split(places[0][d]);
    if (!first) continue;
    int64_t low = first->low;
    int64_t high = first->high;
    const bool all_alike = std::ranges::all_of(places, [&](const std::vector<Expr>& place) {
      const std::optional<Split> other = split(place[d]);
      if (!other || other->factors != first->factors || !same_terms(*first, *other)) return false;
      low = std::min(low, other->low);
      high = std::max(high, other->high);
      return true;
    });
    if (all_alike) mark_told(*first, low, high, vars, told);
  }
  return std::ranges::all_of(told, [](bool is_told) { return is_told; });
}

}  // namespace kiln::passes
