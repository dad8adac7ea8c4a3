#pragma once

#include "compiler/analysis/knowledge.h"
#include "compiler/analysis/refute.h"
#include "compiler/ir/mutator.h"

namespace kiln::analysis {

/// Simplifies expressions with what is known: index expressions as sums, conditions by proof, all
/// else by rebuilding it from simplified operands.
class Simplifier : private ir::Mutator {
 public:
  explicit Simplifier(Knowledge& knowledge) : knowledge_(knowledge), atoms_(knowledge.atoms) {}

  ir::Expr simplify(const ir::Expr& expr) { return (*this)(expr); }
  /// An int64 expression as a simplified sum.
  Linear linear(const ir::Expr& expr);
  /// Whether a condition holds always.
  bool proves(const ir::Expr& condition);
  bool nonnegative(const Linear& sum) { return Refuter(knowledge_).nonnegative(sum); }
  /// What `a op b` is for all values, if it is one thing.
  std::optional<bool> decide(ir::Operator op, const Linear& a, const Linear& b);

  /// min or max, and floordiv, of sums.
  Linear choice(ir::Operator op, const Linear& a, const Linear& b);
  Linear quotient(const Linear& a, const Linear& b);
  /// floordiv(i*32 + j, 96) as floordiv(i, 3) where 0 <= j < 32; nothing where the sum has no such
  /// part.
  std::optional<Linear> coarser_quotient(const Linear& a, int64_t divisor);
  /// floormod(i*32 + j, 96) as floormod(i, 3)*32 + j likewise.
  std::optional<Linear> coarser_remainder(const Linear& a, int64_t divisor);
  /// The sum as an expression, mins and maxes moved out where that is shorter.
  ir::Expr written(const Linear& sum) { return atoms_.write(distributed(sum)); }

 private:
  using Mutator::visit;
  ir::Expr visit(const ir::Var& node) override;
  ir::Expr visit(const ir::Binary& node) override;
  ir::Expr visit(const ir::Call& node) override;
  ir::Expr visit(const ir::Cast& node) override;
  ir::Expr visit(const ir::Load& node) override;

  // sums.cc
  ir::Expr as_sum(const ir::Expr& expr);
  Linear linear_of(const ir::Binary& node);
  Linear linear_of(const ir::Call& node);
  Linear atom(const ir::Expr& expr) { return linear_atom(atoms_.id_of(expr)); }
  Linear distributed(const Linear& sum);
  /// What floordiv(x, c)*c and floormod(x, c) are together.
  struct Whole {
    Product quotient;
    Linear sum;
  };
  std::optional<Whole> whole_of(const Linear& sum, const Term& remainder);
  std::optional<Whole> whole_quotient_of(const Linear& sum, const Term& digits);
  std::optional<Linear> in_smaller_units(const Linear& sum, int64_t& units);
  bool is_same_quotient(const Term& floor, const Atoms::Operands& division, const Term& remainder,
                        const Atoms::Operands& modulus);
  Linear recombined(Linear sum);

  // division.cc
  std::optional<Linear> nested_quotient(const Linear& a, const Linear& b);
  Linear remainder(const Linear& a, const Linear& b);
  std::optional<int64_t> constant_quotient(const Linear& a, int64_t divisor);
  struct Units {
    int64_t unit;
    Linear whole;
    Linear rest;
  };
  std::optional<Units> in_units(const Linear& a, int64_t divisor);
  bool is_below(const Linear& a, const Linear& b);

  // conditions.cc
  ir::Expr under(const ir::Expr& condition, const ir::Expr& expr, bool guarded = false);
  ir::Expr comparison(const ir::Binary& node);
  ir::Expr conjunction(const ir::Binary& node);
  ir::Expr disjunction(const ir::Binary& node);
  ir::Expr conditional(const ir::Call& node);
  bool follows(const ir::Expr& condition);
  std::optional<bool> known(const ir::Expr& condition);

  Knowledge& knowledge_;
  Atoms& atoms_;
};

}  // namespace kiln::analysis
