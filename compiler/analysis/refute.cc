// A bounded search in the manner of Fourier and Motzkin: the negated claim is a sum that would be
// at least 0, and facts are added to it until its highest possible value is below 0. As in Pugh's
// Omega test (1991) sums are divided by the gcd of their coefficients and rounded down; unlike
// there, products of sizes count as unknowns, by multiplying facts with what is not negative.
#include "compiler/analysis/refute.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

using ir::Call;
using ir::Expr;
using ir::Operator;

// What a search may cost, since each step tries all facts. Proofs of index arithmetic are short.
constexpr int kSteps = 64;        // of one proof
constexpr int kSignSteps = 40;    // of the proof that one atom is not negative
constexpr int kMaxDepth = 12;     // cancellations one after the other
constexpr int kMaxLifts = 2;      // multiplications by a size: each raises all degrees
constexpr int kMaxFactors = 4;    // of sums that are products of extents
constexpr size_t kMaxTerms = 24;  // sums that grow longer do not come to an end

/// sum / gcd of its coefficients; what is left of the constant is rounded down, which integers
/// allow.
void tighten(Linear& sum) {
  int64_t divisor = 0;
  for (const Term& term : sum.terms)
    divisor = std::gcd(divisor, term.coefficient);
  if (divisor <= 1) return;  // also when a coefficient is the least int64
  for (Term& term : sum.terms)
    term.coefficient /= divisor;
  sum.constant = floor_div(sum.constant, divisor);
}

/// The sum with every factor `atom` replaced.
std::optional<Linear> replaced(const Linear& sum, AtomId atom, const Linear& value) {
  std::optional<Linear> result = linear_constant(sum.constant);
  for (const Term& term : sum.terms) {
    std::optional<Linear> part = linear_constant(term.coefficient);
    for (int i = 0; i < term.product.degree() && part; ++i) {
      const AtomId factor = term.product[i];
      part = multiplied(*part, factor == atom ? value : linear_atom(factor));
    }
    result = part ? add(*result, *part) : std::nullopt;
    if (!result) return std::nullopt;
  }
  return result;
}

}  // namespace

bool Refuter::nonnegative(const Linear& sum) {
  const Range64 range = knowledge_.range(sum);
  if (range.low >= 0) return true;
  if (range.low == range.high || knowledge_.models.refutes(sum)) return false;
  std::optional<Linear> opposite = add(linear_constant(-1), sum, -1);
  if (!opposite) return false;
  if (const std::optional<bool> known = knowledge_.recall(sum)) return *known;
  budget_ = kSteps;
  const bool result = is_refuted_by_product(*opposite) || refute(std::move(*opposite), {});
  knowledge_.remember(sum, result);
  return result;
}

bool Refuter::positive(const Linear& sum) {
  const std::optional<Linear> less = add(sum, linear_constant(-1));
  if (!less || knowledge_.models.refutes(*less)) return false;
  return is_positive_product(sum, kMaxFactors) || nonnegative(*less);
}

/// Whether facts say of factors of the sum that they are at least 1: m*n + m*l - m is m times
/// n + l - 1. Fused axes are divided by products of extents like that.
bool Refuter::is_positive_product(const Linear& sum, int factors) {
  if (sum.terms.size() < 2 || factors == 0) return false;
  // By position, here and below: a split may push facts, and pops them before it returns.
  for (size_t i = 0; i < knowledge_.nonnegative().size(); ++i) {
    const std::optional<Linear> factor = add(knowledge_.nonnegative()[i], linear_constant(1));
    if (!factor || factor->is_constant()) continue;
    if (*factor == sum) return true;
    const std::optional<Linear> rest = exact_quotient(sum, *factor);
    if (!rest) continue;
    const bool is_number = rest->is_constant() && rest->constant > 0;
    if (is_number || is_positive_term(*rest) || is_positive_product(*rest, factors - 1))
      return true;
  }
  return false;
}

bool Refuter::ordered(const Linear& a, const Linear& b) {
  const std::optional<Linear> difference = add(b, a, -1);
  return difference && nonnegative(*difference);
}

// The innermost product goes first: facts bound inner variables by outer ones, never the other way
// round, so that cancelling moves outwards until only sizes are left.
bool Refuter::refute(Linear sum, Place place) {
  tighten(sum);
  if (knowledge_.range(sum).high < 0) return true;
  if (sum.terms.empty() || sum.terms.size() > kMaxTerms) return false;
  if (place.depth >= kMaxDepth || --budget_ < 0) return false;

  const Term* innermost = &sum.terms[0];
  int innermost_rank = knowledge_.rank(innermost->product);
  for (const Term& term : sum.terms) {
    const int rank = knowledge_.rank(term.product);
    if (rank > innermost_rank) innermost = &term;
    innermost_rank = std::max(rank, innermost_rank);
  }
  const Term target = *innermost;
  if (use_facts(sum, target, place)) return true;
  for (int i = 0; i < target.product.degree(); ++i) {
    if (use_atom(sum, target, target.product[i], place)) return true;
  }
  return lift(sum, target, place);
}

/// Adds the fact as often as it takes to cancel the target, and goes on: with -i + n - 1 >= 0
/// known, 4*i - 4*n + j >= 0 becomes j - 4 >= 0 by adding the fact four times.
bool Refuter::cancel(const Linear& sum, const Term& target, const Linear& fact, Place place) {
  const Term* match = fact.find(target.product);
  if (match == nullptr || (match->coefficient < 0) == (target.coefficient < 0)) return false;
  const int64_t divisor = std::gcd(match->coefficient, target.coefficient);
  if (divisor <= 0) return false;
  const std::optional<Linear> left = scaled(sum, std::abs(match->coefficient / divisor));
  if (!left) return false;
  std::optional<Linear> next = add(*left, fact, std::abs(target.coefficient / divisor));
  return next && refute(std::move(*next), place.deeper());
}

// Last pushed first: what is known of the innermost loop is about the innermost variable.
bool Refuter::use_facts(const Linear& sum, const Term& target, Place place) {
  // By position: a split may push facts, and pops them before it returns.
  for (size_t i = knowledge_.nonnegative().size(); i-- > 0;) {
    if (cancel(sum, target, knowledge_.nonnegative()[i], place)) return true;
  }
  if (target.product.degree() == 1) return false;
  // A bound of one factor times the others.
  for (int k = 0; k < target.product.degree(); ++k) {
    const Product factor(target.product[k]);
    const Product rest = *target.product.without(factor);
    if (!nonnegative(rest)) continue;
    for (size_t i = knowledge_.nonnegative().size(); i-- > 0;) {
      const Linear& fact = knowledge_.nonnegative()[i];
      const Term* match = fact.find(factor);
      if (match == nullptr || (match->coefficient < 0) == (target.coefficient < 0)) continue;
      const std::optional<Linear> scaled_fact = multiplied(fact, rest);
      if (scaled_fact && cancel(sum, target, *scaled_fact, place)) return true;
    }
  }
  return false;
}

// What an atom promises by itself: a division its multiples, others a constant range, min, max and
// select that they are one of their operands.
bool Refuter::use_atom(const Linear& sum, const Term& target, AtomId atom, Place place) {
  const Expr expr = atoms_.expr(atom);
  if (ir::as<ir::Var>(expr)) return false;
  const Product rest = *target.product.without(Product(atom));
  if (rest.degree() > 0 && !nonnegative(rest)) return false;

  const std::optional<Operator> op = operator_of(expr);
  if (op == Operator::FloorDiv || op == Operator::FloorMod) {
    return use_division(sum, target, atom, place);
  }
  const Range64 range = knowledge_.range(atom);
  const int64_t end = target.coefficient > 0 ? range.high : range.low;
  if (end != Range64::kNone && end != -Range64::kNone) {
    std::optional<Linear> fact = linear_atom(atom);
    fact = target.coefficient > 0 ? add(linear_constant(end), *fact, -1)
                                  : add(*fact, linear_constant(end), -1);
    if (fact && rest.degree() > 0) fact = multiplied(*fact, rest);
    if (fact && cancel(sum, target, *fact, place)) return true;
  }
  return use_choice(sum, target, atom, place);
}

/// With q = floordiv(a, b) and b > 0: b*q <= a <= b*q + b - 1. floormod(a, b) is a - b*q.
bool Refuter::use_division(const Linear& sum, const Term& target, AtomId atom, Place place) {
  const Atoms::Operands operands = atoms_.operands(atom);
  const Linear& b = operands.b;
  if (b.is_constant() ? b.constant <= 0 : !is_positive_term(b)) return false;
  const Product rest = *target.product.without(Product(atom));
  const auto use = [&](std::optional<Linear> fact) {
    if (fact && rest.degree() > 0) fact = multiplied(*fact, rest);
    return fact && cancel(sum, target, *fact, place);
  };

  const Expr expr = atoms_.expr(atom);
  const ir::Binary& division = *ir::as<ir::Binary>(expr);
  if (division.op == Operator::FloorMod) {
    if (target.coefficient < 0 && use(linear_atom(atom))) return true;
    const std::optional<Linear> largest = add(b, linear_constant(-1));
    if (target.coefficient > 0 && largest && use(add(*largest, linear_atom(atom), -1))) return true;
    const Linear quotient =
        atoms_.read(ir::Binary::make(Operator::FloorDiv, division.a, division.b));
    const std::optional<Linear> multiple = multiplied(quotient, b);
    const std::optional<Linear> value = multiple ? add(operands.a, *multiple, -1) : std::nullopt;
    std::optional<Linear> next = value ? replaced(sum, atom, *value) : std::nullopt;
    return next && refute(std::move(*next), place.deeper());
  }

  const std::optional<Linear> multiple = multiplied(linear_atom(atom), b);
  if (!multiple) return false;
  const std::optional<Linear> at_least = add(operands.a, *multiple, -1);
  std::optional<Linear> at_most = add(*multiple, b);
  if (at_most) at_most = add(*at_most, operands.a, -1);
  if (at_most) at_most = add(*at_most, linear_constant(-1));
  if (b.is_constant()) {
    const std::optional<Linear> rounded = rounded_end(atom, operands, target.coefficient > 0);
    return (rounded && use(rounded)) || use(at_least) || use(at_most);
  }

  // The facts speak of q*n: they fit when n is among the other factors, else the sum is lifted by
  // n.
  const Product divisor = b.terms[0].product;
  const std::optional<Product> others = rest.without(divisor);
  if (others) {
    const auto use_times = [&](std::optional<Linear> fact) {
      if (fact && others->degree() > 0) fact = multiplied(*fact, *others);
      return fact && cancel(sum, target, *fact, place);
    };
    return use_times(at_least) || use_times(at_most);
  }
  if (use_end_of_dividend(sum, target, atom, operands, place)) return true;
  if (place.lifts >= kMaxLifts) return false;
  std::optional<Linear> lifted = multiplied(sum, divisor);
  return lifted && refute(std::move(*lifted), place.lifted());
}

/// With x*16 + y <= 143 known and y >= 0, x <= 8 and floordiv(x, 3) <= 2: adding 3*floordiv(x, 3)
/// <= x to that in a sum of several quotients would round none of them. As a fact about the
/// quotient alone, of which rounding says most.
std::optional<Linear> Refuter::rounded_end(AtomId quotient, const Atoms::Operands& operands,
                                           bool is_highest) {
  const Linear& dividend = operands.a;
  if (dividend.terms.empty()) return std::nullopt;
  const Term& first = dividend.terms[0];
  std::optional<int64_t> end;
  for (size_t i = knowledge_.nonnegative().size(); i-- > 0;) {
    const Linear& fact = knowledge_.nonnegative()[i];
    const Term* match = fact.find(first.product);
    if (match == nullptr || match->coefficient % first.coefficient != 0) continue;
    // fact = rest - times * dividend
    const int64_t times = -match->coefficient / first.coefficient;
    if (times == 0 || (times > 0) != is_highest) continue;
    const std::optional<Linear> rest = add(fact, dividend, times);
    if (!rest || std::ranges::any_of(rest->terms, [&](const Term& term) {
          return dividend.find(term.product) != nullptr;
        }))
      continue;
    const int64_t most = knowledge_.range(*rest).high;
    if (most == Range64::kNone) continue;
    const int64_t own = floor_div(most, std::abs(times));
    const int64_t rounded =
        is_highest ? floor_div(own, operands.b.constant) : -floor_div(-own, operands.b.constant);
    end = std::min(end.value_or(rounded), rounded);
  }
  if (!end) return std::nullopt;
  const Linear value = linear_atom(quotient);
  return is_highest ? add(linear_constant(*end), value, -1) : add(value, linear_constant(*end));
}

/// With x <= c*n - 1 known, floordiv(x, n) <= c - 1: closer than what cancelling alone finds.
bool Refuter::use_end_of_dividend(const Linear& sum, const Term& target, AtomId quotient,
                                  const Atoms::Operands& operands, Place place) {
  const std::optional<AtomId> dividend = operands.a.as_atom();
  if (!dividend || target.coefficient < 0 || target.product.degree() != 1) return false;
  const Term& divisor = operands.b.terms[0];
  for (size_t i = knowledge_.nonnegative().size(); i-- > 0;) {
    const Linear& fact = knowledge_.nonnegative()[i];
    const Term* match = fact.find(Product(*dividend));
    if (match == nullptr || match->coefficient != -1) continue;
    // dividend <= limit, where limit = whole * divisor + (a constant).
    const std::optional<Linear> limit = add(fact, linear_atom(*dividend));
    if (!limit) continue;
    Linear whole = linear_constant(limit->constant < 0 ? -1 : limit->constant);
    bool divides = true;
    for (const Term& term : limit->terms) {
      const std::optional<Product> rest = term.product.without(divisor.product);
      divides = divides && rest && term.coefficient % divisor.coefficient == 0;
      if (!divides) break;
      const int64_t times = term.coefficient / divisor.coefficient;
      const Linear part =
          rest->degree() == 0 ? linear_constant(times) : Linear{{{times, *rest}}, 0};
      const std::optional<Linear> total = add(whole, part);
      divides = total.has_value();
      if (total) whole = *total;
    }
    const std::optional<Linear> bound =
        divides ? add(whole, linear_atom(quotient), -1) : std::nullopt;
    if (bound && cancel(sum, target, *bound, place)) return true;
  }
  return false;
}

/// min, max and select are one of their operands: where that bounds the wrong way, both are tried.
bool Refuter::use_choice(const Linear& sum, const Term& target, AtomId atom, Place place) {
  const Expr expr = atoms_.expr(atom);
  const std::optional<Operator> op = operator_of(expr);
  if (op == Operator::Min || op == Operator::Max) {
    const Atoms::Operands operands = atoms_.operands(atom);
    const bool is_min = op == Operator::Min;
    if (is_min == (target.coefficient > 0)) {
      // min <= a, and max >= a: a stands for it.
      for (const Linear& operand : {operands.a, operands.b}) {
        std::optional<Linear> fact =
            is_min ? add(operand, linear_atom(atom), -1) : add(linear_atom(atom), operand, -1);
        const Product rest = *target.product.without(Product(atom));
        if (fact && rest.degree() > 0) fact = multiplied(*fact, rest);
        if (fact && cancel(sum, target, *fact, place)) return true;
      }
      return false;
    }
    const Linear& a = operands.a;
    const Linear& b = operands.b;
    const std::optional<Linear> rising = add(b, a, -1);
    const std::optional<Linear> falling = add(a, b, -1);
    return rising && falling && split(sum, atom, a, is_min ? *rising : *falling, nullptr, place) &&
           split(sum, atom, b, is_min ? *falling : *rising, nullptr, place);
  }
  const Call* call = ir::as<Call>(expr);
  if (call == nullptr || (call->op != Operator::Select && call->op != Operator::IfThenElse)) {
    return false;
  }
  return split(sum, atom, atoms_.read(call->args[1]), {}, call->args[0], place) &&
         split(sum, atom, atoms_.read(call->args[2]), {}, negated(call->args[0]), place);
}

/// The sum where the atom is `value`, which it is when the condition holds, or when `order` >= 0.
bool Refuter::split(const Linear& sum, AtomId atom, const Linear& value, const Linear& order,
                    const Expr& condition, Place place) {
  std::optional<Linear> next = replaced(sum, atom, value);
  if (!next) return false;
  const auto signs = known_signs_;  // those found inside hold only there
  bool refuted = false;
  if (condition) {
    const Assume assume(knowledge_, condition);
    refuted = refute(std::move(*next), place.deeper());
  } else {
    const Assume assume(knowledge_, order);
    refuted = refute(std::move(*next), place.deeper());
  }
  known_signs_ = signs;
  return refuted;
}

/// Multiplies by sizes when a fact has the target times those sizes: i of a sum meets i*n of a fact
/// once the sum is multiplied by n, which keeps its sign.
bool Refuter::lift(const Linear& sum, const Term& target, Place place) {
  if (place.lifts >= kMaxLifts) return false;
  for (size_t i = knowledge_.nonnegative().size(); i-- > 0;) {
    const Linear fact = knowledge_.nonnegative()[i];
    for (const Term& term : fact.terms) {
      if (term.product.degree() <= target.product.degree() ||
          (term.coefficient < 0) == (target.coefficient < 0)) {
        continue;
      }
      const std::optional<Product> factor = term.product.without(target.product);
      if (!factor || !nonnegative(*factor)) continue;
      std::optional<Linear> lifted = multiplied(sum, *factor);
      if (lifted && refute(std::move(*lifted), place.lifted())) return true;
    }
  }
  return false;
}

/// A product that is not empty has no empty factor: with f < (m + l)*(n - 1) and 0 <= m + l, no
/// n - 1 <= 0, since f would be below 0. One multiplication and one fact, before any search.
bool Refuter::is_refuted_by_product(const Linear& sum) {
  if (sum.terms.empty()) return false;
  const Product& target = sum.terms[0].product;
  const auto is_refuted_times = [&](const std::optional<Linear>& lifted, const Linear& fact) {
    const auto shared = [&](const Term& term) { return fact.find(term.product) != nullptr; };
    if (!lifted) return false;
    const auto term = std::ranges::find_if(lifted->terms, shared);
    if (term == lifted->terms.end()) return false;
    const int64_t of_fact = fact.find(term->product)->coefficient;
    if (of_fact != -term->coefficient) return false;
    const std::optional<Linear> both = add(*lifted, fact);
    return both && knowledge_.range(*both).high < 0;
  };
  for (size_t i = 0; i < knowledge_.nonnegative().size(); ++i) {
    const Linear fact = knowledge_.nonnegative()[i];
    const bool has_products =
        std::ranges::any_of(fact.terms, [](const Term& term) { return term.product.degree() > 1; });
    if (!has_products) continue;
    for (const Term& term : fact.terms) {
      const std::optional<Product> factor = term.product.without(target);
      if (!factor || factor->degree() == 0 || !nonnegative(*factor)) continue;
      if (is_refuted_times(multiplied(sum, *factor), fact)) return true;
    }
    for (const Linear& factor : knowledge_.nonnegative()) {
      if (factor.terms.size() > 1 && is_refuted_times(multiplied(sum, factor), fact)) return true;
    }
  }
  return false;
}

/// atom >= least, where least is 0 or 1.
bool Refuter::at_least(AtomId atom, int64_t least) {
  if (knowledge_.range(atom).low >= least) return true;
  std::unordered_map<AtomId, bool>& known = known_signs_[least];
  const auto [entry, is_new] = known.emplace(atom, false);  // false while it is looked at
  if (!is_new) return entry->second;
  if (knowledge_.models.refutes(*add(linear_atom(atom), linear_constant(-least)))) return false;
  const int budget = std::exchange(budget_, std::min(budget_, kSignSteps));
  const int before = budget_;
  std::optional<Linear> opposite = add(linear_constant(least - 1), linear_atom(atom), -1);
  const bool result = opposite && refute(std::move(*opposite), {kMaxDepth / 2, kMaxLifts - 1});
  budget_ = budget - (before - budget_);
  known_signs_[least][atom] = result;
  return result;
}

// Sizes and loop variables, mostly: all factors at least 0.
bool Refuter::nonnegative(const Product& product) {
  for (int i = 0; i < product.degree(); ++i) {
    if (!at_least(product[i], 0)) return false;
  }
  return true;
}

/// Whether the sum is one product such as 4*n and at least 1. Dividing by zero gives zero, so what
/// divisions promise needs a proof of this.
bool Refuter::is_positive_term(const Linear& sum) {
  if (sum.terms.size() != 1 || sum.constant != 0 || sum.terms[0].coefficient < 0) return false;
  const Product& product = sum.terms[0].product;
  for (int i = 0; i < product.degree(); ++i) {
    if (!at_least(product[i], 1)) return false;
  }
  return true;
}

}  // namespace kiln::analysis
