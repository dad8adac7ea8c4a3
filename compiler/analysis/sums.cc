// Simplifies index arithmetic by reading it as a sum and writing that back: terms cancel by
// themselves, floordiv(x, c)*c + floormod(x, c) is x again, minima and maxima lose operands that
// another one covers. An operation that may wrap stays as it is, as an atom.
#include <algorithm>

#include "compiler/analysis/simplifier.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Call;
using ir::Cast;
using ir::Expr;
using ir::IntImm;
using ir::Operator;

/// The operands of nested mins (or maxes).
void collect(const Atoms& atoms, Operator op, const Linear& operand, Atoms& all,
             std::vector<Linear>& result) {
  const std::optional<AtomId> atom = operand.as_atom();
  if (atom && operator_of(atoms.expr(*atom)) == op) {
    const Atoms::Operands operands = all.operands(*atom);
    collect(atoms, op, operands.a, all, result);
    collect(atoms, op, operands.b, all, result);
    return;
  }
  result.push_back(operand);
}

}  // namespace

Expr Simplifier::as_sum(const Expr& expr) {
  const Expr result = written(linear(expr));
  return ir::equal_trees(result, expr) ? expr : result;
}

Linear Simplifier::linear(const Expr& expr) {
  if (const IntImm* imm = ir::as<IntImm>(expr)) return linear_constant(imm->value);
  if (const ir::Var* var = ir::as<ir::Var>(expr)) {
    const Expr value = visit(*var);
    return ir::as<IntImm>(value) ? linear(value) : atom(value);
  }
  if (const Binary* binary = ir::as<Binary>(expr)) {
    if (const Linear* known = knowledge_.find_sum(expr)) return *known;
    Linear result = linear_of(*binary);
    knowledge_.keep_sum(expr, result);
    return result;
  }
  if (const Call* call = ir::as<Call>(expr)) return linear_of(*call);
  if (const Cast* cast = ir::as<Cast>(expr); cast != nullptr && cast->value->type == expr->type) {
    return linear(cast->value);
  }
  const Expr rebuilt = Mutator::operator()(expr);
  if (const IntImm* imm = ir::as<IntImm>(rebuilt)) return linear_constant(imm->value);
  return atom(rebuilt);
}

// Division that truncates rounds down where nothing is negative.
Linear Simplifier::linear_of(const Binary& node) {
  const Linear a = linear(node.a);
  const Linear b = linear(node.b);
  std::optional<Linear> result;
  switch (node.op) {
    case Operator::Add: result = trusted_sum(atoms_, a, b, 1); break;
    case Operator::Sub: result = trusted_sum(atoms_, a, b, -1); break;
    case Operator::Mul: result = trusted_product(atoms_, a, b); break;
    case Operator::FloorDiv: return quotient(a, b);
    case Operator::FloorMod: return remainder(a, b);
    case Operator::TruncDiv:
      if (nonnegative(a) && nonnegative(b)) return quotient(a, b);
      break;
    case Operator::TruncMod:
      if (nonnegative(a) && nonnegative(b)) return remainder(a, b);
      break;
    case Operator::Min:
    case Operator::Max: return choice(node.op, a, b);
    default: break;
  }
  if (result) return recombined(std::move(*result));
  return atom(Binary::make(node.op, atoms_.write(a), atoms_.write(b)));
}

Linear Simplifier::linear_of(const Call& node) {
  if (node.op == Operator::Negative) {
    const Linear a = linear(node.args[0]);
    if (const auto result = trusted_sum(atoms_, {}, a, -1)) return *result;
    return atom(Call::make(node.op, {atoms_.write(a)}));
  }
  return atoms_.read(visit(node));  // a choice that was decided is one of its operands
}

/// min or max of two sums; operands that another one makes superfluous are dropped.
Linear Simplifier::choice(Operator op, const Linear& a, const Linear& b) {
  std::vector<Linear> operands;
  collect(atoms_, op, a, atoms_, operands);
  collect(atoms_, op, b, atoms_, operands);
  const auto covers = [&](const Linear& x, const Linear& y) {  // y is superfluous beside x
    Refuter refuter(knowledge_);
    return op == Operator::Min ? refuter.ordered(x, y) : refuter.ordered(y, x);
  };
  std::vector<Linear> kept;
  for (const Linear& operand : operands) {
    const auto covered = [&](const Linear& other) { return covers(other, operand); };
    if (std::any_of(kept.begin(), kept.end(), covered)) continue;
    std::erase_if(kept, [&](const Linear& other) { return covers(operand, other); });
    kept.push_back(operand);
  }
  if (kept.size() == 1) return kept[0];
  Expr result = atoms_.write(kept[0]);
  for (size_t i = 1; i < kept.size(); ++i) {
    result = Binary::make(op, result, atoms_.write(kept[i]));
  }
  return atom(result);
}

/// min(a, b) + c as min(a + c, b + c) where that is shorter: min(i*32 + 32, n) - i*32 is
/// min(32, n - i*32).
Linear Simplifier::distributed(const Linear& sum) {
  if (sum.is_constant() || sum.as_atom()) return sum;
  for (const Term& term : sum.terms) {
    if (term.product.degree() != 1 || std::abs(term.coefficient) != 1) continue;
    const AtomId atom = term.product[0];
    const std::optional<Operator> op = operator_of(atoms_.expr(atom));
    if (op != Operator::Min && op != Operator::Max) continue;

    const Atoms::Operands operands = atoms_.operands(atom);
    const std::optional<Linear> rest = add(sum, linear_atom(atom), -term.coefficient);
    const std::optional<Linear> a = rest ? add(*rest, operands.a, term.coefficient) : std::nullopt;
    const std::optional<Linear> b = rest ? add(*rest, operands.b, term.coefficient) : std::nullopt;
    if (!a || !b) continue;
    const auto size = [](const Linear& x) { return x.terms.size() + (x.constant != 0 ? 1 : 0); };
    const size_t before = size(*rest) + size(operands.a) + size(operands.b);
    if (size(*a) + size(*b) >= before) continue;
    const Operator flipped = op == Operator::Min ? Operator::Max : Operator::Min;
    return choice(term.coefficient > 0 ? *op : flipped, *a, *b);
  }
  return sum;
}

/// The term of `sum` that `remainder`, a multiple of floormod(x, c), makes whole again, and what
/// of. It is floordiv(x, c)*c as it is written, or as it is simplified: floordiv(floordiv(x, 3), 3)
/// is floordiv(x, 9). Or floordiv(y, c)*c, where floormod(y, c) is floormod(x, c) too.
std::optional<Simplifier::Whole> Simplifier::whole_of(const Linear& sum, const Term& remainder) {
  const AtomId rest = remainder.product[0];
  const Expr expr = atoms_.expr(rest);
  const Binary& modulus = *ir::as<Binary>(expr);
  const Atoms::Operands operands = atoms_.operands(rest);
  const auto find = [&](const Linear& floor) -> const Term* {
    const std::optional<Linear> multiple = multiplied(floor, operands.b);
    const std::optional<Linear> pair =
        multiple ? scaled(*multiple, remainder.coefficient) : std::nullopt;
    if (!pair || pair->terms.size() != 1 || pair->constant != 0) return nullptr;
    const Term* match = sum.find(pair->terms[0].product);
    return match != nullptr && match->coefficient == pair->terms[0].coefficient ? match : nullptr;
  };
  const Term* match = find(atom(Binary::make(Operator::FloorDiv, modulus.a, modulus.b)));
  if (match == nullptr && sum.terms.size() > 1) match = find(quotient(operands.a, operands.b));
  if (match != nullptr) return Whole{match->product, operands.a};
  for (const Term& term : sum.terms) {
    if (term.product.degree() != 1) continue;
    const AtomId floor = term.product[0];
    if (operator_of(atoms_.expr(floor)) != Operator::FloorDiv) continue;
    const Atoms::Operands other = atoms_.operands(floor);
    if (is_same_quotient(term, other, remainder, operands)) return Whole{term.product, operands.a};
    if (!(other.b == operands.b) || find(linear_atom(floor)) == nullptr) continue;
    if (this->remainder(other.a, other.b) == linear_atom(rest)) return Whole{term.product, other.a};
  }
  return std::nullopt;
}

/// s + floordiv(z, d) as s*d + z, of which that is the quotient by d.
std::optional<Linear> Simplifier::in_smaller_units(const Linear& sum, int64_t& units) {
  for (const Term& term : sum.terms) {
    const bool may_be_quotient = term.coefficient == 1 && term.product.degree() == 1;
    if (!may_be_quotient || operator_of(atoms_.expr(term.product[0])) != Operator::FloorDiv)
      continue;
    const Atoms::Operands inner = atoms_.operands(term.product[0]);
    if (!inner.b.is_constant() || inner.b.constant <= 0 ||
        __builtin_mul_overflow(units, inner.b.constant, &units))
      continue;
    std::optional<Linear> rest = add(sum, linear_atom(term.product[0]), -1);
    if (rest) rest = scaled(*rest, inner.b.constant);
    return rest ? add(*rest, inner.a) : std::nullopt;
  }
  return std::nullopt;
}

/// Whether a term is as often floordiv(x, c)*c as another one is floormod(x, c), where x is divided
/// in smaller units: floordiv(x*16 + j, 48)*3 beside floormod(x, 3), where 0 <= j < 16, and
/// floordiv(x*16 + j, 48)*3 beside floormod(x + floordiv(j, 16), 3).
bool Simplifier::is_same_quotient(const Term& floor, const Atoms::Operands& division,
                                  const Term& remainder, const Atoms::Operands& modulus) {
  if (!division.b.is_constant() || !modulus.b.is_constant()) return false;
  int64_t times = 0;
  int64_t units = modulus.b.constant;
  if (__builtin_mul_overflow(remainder.coefficient, units, &times) || floor.coefficient != times ||
      division.b.constant <= units)
    return false;
  const std::optional<Linear> whole = coarser_quotient(division.a, division.b.constant);
  if (whole && *whole == quotient(modulus.a, modulus.b)) return true;
  std::optional<Linear> smaller = modulus.a;
  while (smaller && units < division.b.constant)
    smaller = in_smaller_units(*smaller, units);
  return smaller && units == division.b.constant && *smaller == division.a;
}

/// The same of floordiv(floormod(x, c), d), where c is a multiple of d: the other digits are those
/// of floordiv(x, c)*(c/d), and both of them floordiv(x, d).
std::optional<Simplifier::Whole> Simplifier::whole_quotient_of(const Linear& sum,
                                                               const Term& digits) {
  const Atoms::Operands division = atoms_.operands(digits.product[0]);
  const std::optional<AtomId> rest = division.a.as_atom();
  if (!rest || operator_of(atoms_.expr(*rest)) != Operator::FloorMod) return std::nullopt;
  const Atoms::Operands modulus = atoms_.operands(*rest);
  if (!division.b.is_constant() || !modulus.b.is_constant()) return std::nullopt;
  const int64_t d = division.b.constant;
  const int64_t c = modulus.b.constant;
  if (d <= 0 || c <= 0 || c % d != 0) return std::nullopt;
  const std::optional<Linear> times = scaled(quotient(modulus.a, modulus.b), c / d);
  const std::optional<Linear> pair = times ? scaled(*times, digits.coefficient) : std::nullopt;
  if (!pair || pair->terms.size() != 1 || pair->constant != 0) return std::nullopt;
  const Term* match = sum.find(pair->terms[0].product);
  if (match == nullptr || match->coefficient != pair->terms[0].coefficient) return std::nullopt;
  return Whole{match->product, quotient(modulus.a, division.b)};
}

/// floordiv(x, c)*c + floormod(x, c) as x.
Linear Simplifier::recombined(Linear sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term term = sum.terms[i];
    if (term.product.degree() != 1) continue;
    const std::optional<Operator> op = operator_of(atoms_.expr(term.product[0]));
    std::optional<Whole> whole;
    if (op == Operator::FloorDiv) whole = whole_quotient_of(sum, term);
    if (op == Operator::FloorMod) whole = whole_of(sum, term);
    if (!whole) continue;
    // Dividing by zero gives zero.
    if (!Refuter(knowledge_).positive(atoms_.operands(term.product[0]).b)) continue;

    // In the place of whichever of the two came first.
    std::optional<Linear> result = Linear{};
    bool placed = false;
    for (const Term& other : sum.terms) {
      const bool is_part = other.product == term.product || other.product == whole->quotient;
      if (!result) break;
      if (!is_part) {
        result = add(*result, Linear{{other}, 0});
      } else if (!std::exchange(placed, true)) {
        result = add(*result, whole->sum, term.coefficient);
      }
    }
    if (result) result = add(*result, linear_constant(sum.constant));
    if (result) return recombined(std::move(*result));
  }
  return sum;
}

}  // namespace kiln::analysis
