// Divides sums by sums: floordiv(i*32 + j, 32) -> i where 0 <= j < 32. What the divisor divides
// term by term is taken out, the rest vanishes where its range lies within one multiple, and
// divisions of divisions become one. Nothing is concluded for a divisor that may be 0, where the
// quotient is 0.
#include <numeric>

#include "compiler/analysis/simplifier.h"
#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Expr;
using ir::Operator;

int64_t common_divisor(const Linear& a, int64_t divisor) {
  for (const Term& term : a.terms)
    divisor = std::gcd(divisor, term.coefficient);
  return divisor;
}

/// floor(a / divisor) when the divisor divides every coefficient.
Linear exact_quotient(const Linear& a, int64_t divisor) {
  Linear result = a;
  for (Term& term : result.terms)
    term.coefficient /= divisor;
  result.constant = floor_div(a.constant, divisor);
  return result;
}

/// The single term of a divisor such as n or 4*n.
const Term* as_term(const Linear& divisor) {
  return divisor.constant == 0 && divisor.terms.size() == 1 ? &divisor.terms[0] : nullptr;
}

/// Divisors that need no proof.
std::optional<int64_t> positive_constant(const Linear& linear) {
  if (!linear.is_constant() || linear.constant <= 0) return std::nullopt;
  return linear.constant;
}

}  // namespace

/// 0 <= a < b, which makes floordiv(a, b) 0 and floormod(a, b) a.
bool Simplifier::is_below(const Linear& a, const Linear& b) {
  const std::optional<Linear> difference = add(b, a, -1);
  const std::optional<Linear> room =
      difference ? add(*difference, linear_constant(-1)) : std::nullopt;
  return nonnegative(a) && room && nonnegative(*room);
}

/// floor(a / divisor) when it is one number for all values of a.
std::optional<int64_t> Simplifier::constant_quotient(const Linear& a, int64_t divisor) {
  const Range64 range = knowledge_.range(a);
  if (range.low != -Range64::kNone && range.high != Range64::kNone && range.low <= range.high &&
      floor_div(range.low, divisor) == floor_div(range.high, divisor)) {
    return floor_div(range.low, divisor);
  }
  if (is_below(a, linear_constant(divisor))) return 0;
  return std::nullopt;
}

/// floordiv(floordiv(x, d), b) as floordiv(x, d*b), which also holds when one of them is 0.
std::optional<Linear> Simplifier::nested_quotient(const Linear& a, const Linear& b) {
  const std::optional<AtomId> inner = a.as_atom();
  if (!inner || operator_of(atoms_.expr(*inner)) != Operator::FloorDiv) return std::nullopt;
  const Atoms::Operands operands = atoms_.operands(*inner);
  if (!nonnegative(operands.b) || !nonnegative(b)) return std::nullopt;
  const std::optional<Linear> product = multiplied(operands.b, b);
  if (!product) return std::nullopt;
  return quotient(operands.a, *product);
}

/// A sum as x*unit + rest, 0 <= rest < unit, of a unit that divides the divisor.
std::optional<Simplifier::Units> Simplifier::in_units(const Linear& a, int64_t divisor) {
  for (const Term& term : a.terms) {
    const int64_t unit = term.coefficient;
    if (unit <= 1 || divisor % unit != 0) continue;
    const Divided parts = divide(a, unit);
    const std::optional<int64_t> value = constant_quotient(parts.rest, unit);
    const auto whole = value ? add(parts.whole, linear_constant(*value)) : std::nullopt;
    const auto rest = value ? add(parts.rest, linear_constant(unit), -*value) : std::nullopt;
    if (whole && rest) return Units{unit, *whole, *rest};
  }
  return std::nullopt;
}

std::optional<Linear> Simplifier::coarser_quotient(const Linear& a, int64_t divisor) {
  const std::optional<Units> units = in_units(a, divisor);
  if (!units) return std::nullopt;
  return quotient(units->whole, linear_constant(divisor / units->unit));
}

std::optional<Linear> Simplifier::coarser_remainder(const Linear& a, int64_t divisor) {
  const std::optional<Units> units = in_units(a, divisor);
  if (!units) return std::nullopt;
  const Linear whole = remainder(units->whole, linear_constant(divisor / units->unit));
  const std::optional<Linear> scaled_whole = scaled(whole, units->unit);
  return scaled_whole ? add(*scaled_whole, units->rest) : std::nullopt;
}

// By a constant: (i*32 + j)/32 is i + j/32, and j/32 is 0 where j < 32. By a product of sizes the
// same with what the product divides, where it is known to be positive.
Linear Simplifier::quotient(const Linear& a, const Linear& b) {
  const auto division = [&](const Linear& x, const Linear& y) {
    return atom(Binary::make(Operator::FloorDiv, atoms_.write(x), atoms_.write(y)));
  };
  if (atoms_.trust(a) == Trust::Wild) return division(a, b);
  if (const std::optional<int64_t> divisor = positive_constant(b)) {
    Divided parts = divide(a, *divisor);
    const Linear& whole = parts.whole;
    if (parts.rest.is_constant()) return whole;
    if (const std::optional<int64_t> value = constant_quotient(parts.rest, *divisor)) {
      if (const auto sum = add(whole, linear_constant(*value))) return *sum;
    }
    const int64_t common = common_divisor(parts.rest, *divisor);
    Linear rest = exact_quotient(parts.rest, common);
    int64_t remaining = *divisor / common;
    if (remaining == 1) return add(whole, rest).value_or(division(a, b));
    // floordiv(floordiv(x, d) + k, c) is floordiv(x + k*d, c*d).
    if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1 &&
        rest.terms[0].product.degree() == 1) {
      const AtomId inner = rest.terms[0].product[0];
      if (operator_of(atoms_.expr(inner)) == Operator::FloorDiv) {
        const Atoms::Operands operands = atoms_.operands(inner);
        const std::optional<int64_t> d = positive_constant(operands.b);
        int64_t product = 0;
        if (d && !__builtin_mul_overflow(*d, remaining, &product)) {
          const auto shifted = add(operands.a, linear_constant(rest.constant), *d);
          const auto nested =
              shifted ? add(whole, quotient(*shifted, linear_constant(product))) : std::nullopt;
          if (nested) return *nested;
        }
      }
    }
    return add(whole, division(rest, linear_constant(remaining))).value_or(division(a, b));
  }
  if (const Term* divisor = as_term(b)) {
    if (const auto nested = nested_quotient(a, b)) return *nested;
    const Divided parts = divide(a, divisor->coefficient, divisor->product);
    if (is_below(parts.rest, b)) return parts.whole;
    if (const auto wrapped = add(parts.rest, b); wrapped && is_below(*wrapped, b)) {
      if (const auto result = add(parts.whole, linear_constant(-1))) return *result;
    }
    // Dividing by zero gives zero, so nothing may be taken out of that.
    if (parts.whole.is_constant() && parts.whole.constant == 0) return division(a, b);
    if (!Refuter(knowledge_).positive(b)) return division(a, b);
    return add(parts.whole, division(parts.rest, b)).value_or(division(a, b));
  }
  return is_below(a, b) ? Linear{} : division(a, b);
}

// What the divisor divides goes: (i*32 + j)%32 is j%32, and that is j where j < 32.
Linear Simplifier::remainder(const Linear& a, const Linear& b) {
  const auto modulus = [&](const Linear& x, const Linear& y) {
    return atom(Binary::make(Operator::FloorMod, atoms_.write(x), atoms_.write(y)));
  };
  if (atoms_.trust(a) == Trust::Wild) return modulus(a, b);
  if (const std::optional<int64_t> divisor = positive_constant(b)) {
    // Inside, floormod(x, d) is as good as x when d is a multiple of the divisor.
    Linear unwrapped = linear_constant(a.constant);
    for (const Term& term : a.terms) {
      Linear part{{term}, 0};
      if (term.product.degree() == 1 &&
          operator_of(atoms_.expr(term.product[0])) == Operator::FloorMod) {
        const Atoms::Operands operands = atoms_.operands(term.product[0]);
        const std::optional<int64_t> d = positive_constant(operands.b);
        if (d && *d % *divisor == 0) part = scaled(operands.a, term.coefficient).value_or(part);
      }
      const std::optional<Linear> sum = add(unwrapped, part);
      if (!sum) return modulus(a, b);
      unwrapped = *sum;
    }
    const Linear rest = divide(unwrapped, *divisor).rest;
    if (rest.is_constant()) return rest;
    if (const std::optional<int64_t> value = constant_quotient(rest, *divisor)) {
      const auto offset = add(rest, linear_constant(*divisor), -*value);
      if (offset) return *offset;
    }
    // floormod(g*x + r, g*c) is g*floormod(x + floordiv(r, g), c) + floormod(r, g).
    const int64_t common = common_divisor(rest, *divisor);
    if (common == 1) return modulus(rest, b);
    const Linear inner = modulus(exact_quotient(rest, common), linear_constant(*divisor / common));
    const int64_t left = floor_mod(rest.constant, common);
    if (*divisor == common) return linear_constant(left);
    return add(linear_constant(left), inner, common).value_or(modulus(a, b));
  }
  if (const Term* divisor = as_term(b)) {
    const Linear rest = divide(a, divisor->coefficient, divisor->product).rest;
    if (rest.is_constant() && rest.constant == 0) return rest;
    if (is_below(rest, b)) return rest;
    if (const auto wrapped = add(rest, b); wrapped && is_below(*wrapped, b)) return *wrapped;
    return modulus(rest, b);
  }
  return is_below(a, b) ? a : modulus(a, b);
}

}  // namespace kiln::analysis
