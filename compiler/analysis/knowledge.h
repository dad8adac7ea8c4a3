#pragma once

#include <limits>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/linear.h"
#include "compiler/analysis/models.h"
#include "compiler/analysis/prove.h"

namespace kiln::analysis {

/// A closed range of integers; the ends of int64 stand for "no bound".
struct Range64 {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t low = -kNone;
  int64_t high = kNone;
};

/// Facts as the analysis computes with them: sums that are at least 0.
class Knowledge {
 public:
  Atoms atoms;
  Models models{atoms};

  /// Takes in the entries after those taken in before.
  void follow(const std::vector<Facts::Entry>& entries);
  /// Forgets all entries but the first `count`.
  void follow_down(size_t count);

  void push_range(const ir::VarRef& var, const ir::Expr& lower, const ir::Expr& upper);
  void push_condition(const ir::Expr& condition);
  /// sum >= 0
  void push_nonnegative(Linear sum);
  void pop();
  /// A number for what is known now: the same again after a push and its pop, never otherwise.
  uint64_t state() const { return marks_.empty() ? 0 : marks_.back().state; }

  const std::vector<Linear>& nonnegative() const { return nonnegative_; }
  /// Conditions that are not about sums, as they were pushed.
  const std::vector<ir::Expr>& conditions() const { return conditions_; }

  /// What came of proving that the sum is not negative, under these facts: the same question comes
  /// back often, from each index of a statement.
  std::optional<bool> recall(const Linear& sum);
  void remember(Linear sum, bool proved);

  /// The simplified sums of expressions, as far as they were asked for under these facts.
  const Linear* find_sum(const ir::Expr& expr) const;
  void keep_sum(const ir::Expr& expr, const Linear& sum);

  /// How far inside the atom's variables are bound: greater is further in, -1 when unknown.
  int rank(AtomId atom);
  int rank(const Product& product);

  /// Constant bounds by interval arithmetic.
  Range64 range(const Linear& sum);
  Range64 range(AtomId atom);

 private:
  struct Mark {
    uint64_t state;
    size_t nonnegative;
    size_t conditions;
    AtomId ranged;  // the variable whose range was pushed, or -1
    Range64 range_before;
    int rank_before;
  };
  struct Answer {
    Linear sum;
    bool proved;
    size_t depth;  // how many of the pushes it may depend on
  };
  void add_condition(const ir::Expr& condition);
  void add_comparison(ir::Operator op, const ir::Expr& a, const ir::Expr& b);
  void add_nonnegative(std::optional<Linear> sum);
  void mark();
  Range64& stored_range(AtomId atom);
  Range64 computed_range(AtomId atom);
  Range64 range_of_operator(ir::Operator op, AtomId atom);

  /// Bits that sums with a variable in common share. Sums without one rarely do.
  uint64_t bits_of(const Linear& sum);
  /// The bits of all that the facts connect with the sum.
  uint64_t connected(const Linear& sum);
  bool is_connected_after(size_t fact, uint64_t bits) const;

  std::vector<Linear> nonnegative_;
  std::vector<uint64_t> bits_;  // of each of those
  std::vector<ir::Expr> conditions_;
  std::vector<Mark> marks_;
  std::vector<Answer> answers_;
  struct KnownSum {
    uint64_t state;
    Linear sum;
  };
  std::unordered_map<ir::Expr, KnownSum> known_sums_;
  struct KnownRange {
    uint64_t state = ~uint64_t{0};
    Range64 range;
  };
  std::vector<Range64> ranges_;           // by atom; of variables
  std::vector<KnownRange> known_ranges_;  // by atom; of the others
  std::vector<int> ranks_;                // by atom; of variables
  size_t followed_ = 0;
  uint64_t last_state_ = 0;
  int nesting_ = 0;
};

/// Pushes for as long as it lives.
class Assume {
 public:
  Assume(Knowledge& knowledge, const ir::Expr& condition) : knowledge_(knowledge) {
    knowledge_.push_condition(condition);
  }
  Assume(Knowledge& knowledge, Linear nonnegative) : knowledge_(knowledge) {
    knowledge_.push_nonnegative(std::move(nonnegative));
  }
  ~Assume() { knowledge_.pop(); }
  Assume(const Assume&) = delete;
  Assume& operator=(const Assume&) = delete;

 private:
  Knowledge& knowledge_;
};

/// The condition with Not moved inwards where that keeps the meaning (a NaN compares false both
/// ways).
ir::Expr negated(const ir::Expr& condition);

}  // namespace kiln::analysis
