#pragma once

#include <limits>
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
  size_t depth() const { return marks_.size(); }

  const std::vector<Linear>& nonnegative() const { return nonnegative_; }
  /// Conditions that are not about sums, as they were pushed.
  const std::vector<ir::Expr>& conditions() const { return conditions_; }

  /// What came of proving that the sum is not negative, under these facts: the same question comes
  /// back often, from each index of a statement.
  std::optional<bool> recall(const Linear& sum) const;
  void remember(Linear sum, bool proved);

  /// How far inside the atom's variables are bound: greater is further in, -1 when unknown.
  int rank(AtomId atom);
  int rank(const Product& product);

  /// Constant bounds by interval arithmetic.
  Range64 range(const Linear& sum);
  Range64 range(AtomId atom);

 private:
  struct Mark {
    size_t nonnegative;
    size_t conditions;
    AtomId ranged;  // the variable whose range was pushed, or -1
    Range64 range_before;
    int rank_before;
  };
  struct Answer {
    Linear sum;
    bool proved;
    size_t depth;  // the number of facts then
  };
  void add_condition(const ir::Expr& condition);
  void add_comparison(ir::Operator op, const ir::Expr& a, const ir::Expr& b);
  void add_nonnegative(std::optional<Linear> sum);
  void mark();
  Range64& stored_range(AtomId atom);
  Range64 range_of_operator(ir::Operator op, AtomId atom);

  std::vector<Linear> nonnegative_;
  std::vector<ir::Expr> conditions_;
  std::vector<Mark> marks_;
  std::vector<Answer> answers_;  // by rising depth
  std::vector<Range64> ranges_;  // by atom; of variables
  std::vector<int> ranks_;       // by atom; of variables
  size_t followed_ = 0;
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
