// The steps from values of an element to simpler ones: two digits of a sum, a sum of the two parts
// of a division, and one value less what another one is.
//
//   i*8 + j, j < 8                     ->  i, j
//   floordiv(f, n), floormod(f, n)     ->  floordiv(f, n), f
//   i*3 + j, j                         ->  i*3, j
#include <algorithm>
#include <numeric>

#include "compiler/analysis/element_values.h"
#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

using ir::Operator;

constexpr int kMaxNesting = 4;  // of divisions in one another

}  // namespace

Linear ElementValues::Divisor::sum() const {
  return product.degree() == 0 ? linear_constant(coefficient) : Linear{{{coefficient, product}}, 0};
}

/// What the digits of a value may be multiplied with: the factors in it that stand still.
std::vector<ElementValues::Divisor> ElementValues::divisors_of(const Value& value) const {
  std::vector<Divisor> found;
  const auto note = [&](int64_t coefficient, const Product& product) {
    if (coefficient == 1 && product.degree() == 0) return;
    const bool is_known = std::ranges::any_of(found, [&](const Divisor& other) {
      return other.coefficient == coefficient && other.product == product;
    });
    if (!is_known) found.push_back({coefficient, product});
  };
  int64_t common = 0;
  for (const Linear& sum : value) {
    for (const Term& term : sum.terms) {
      common = std::gcd(common, term.coefficient);
      if (is_still(term.product)) continue;
      Product still;
      for (int i = 0; i < term.product.degree(); ++i) {
        if (is_still(term.product[i])) still = *still.times(Product(term.product[i]));
      }
      note(std::abs(term.coefficient), still);
    }
  }
  if (common > 1) note(common, Product());
  return found;
}

/// Takes a value apart into two digits.
bool ElementValues::split(size_t which) {
  for (const Divisor& divisor : divisors_of(values_[which])) {
    Value wholes;
    Value rests;
    for (const Linear& sum : values_[which]) {
      Divided parts = divide(sum, divisor.coefficient, divisor.product);
      wholes.push_back(std::move(parts.whole));
      rests.push_back(std::move(parts.rest));
    }
    const std::optional<Linear> first = first_of(rests, divisor);
    if (!first || !lies_within(rests, *first, divisor)) continue;
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(which));
    keep(std::move(wholes));
    keep(std::move(rests));
    return true;
  }
  return false;
}

/// Where the lower digit may begin; nothing where it has no known end.
std::optional<Linear> ElementValues::first_of(const Value& rests, const Divisor& divisor) {
  int64_t low = Range64::kNone;
  int64_t high = -Range64::kNone;
  at_all_places([&](size_t p) {
    const Range64 range = facts_.knowledge().range(rests[p]);
    low = std::min(low, range.low);
    high = std::max(high, range.high);
    return true;
  });
  if (low != -Range64::kNone) return linear_constant(low);
  if (high == Range64::kNone || divisor.product.degree() == 0) return std::nullopt;
  const std::optional<Linear> end = add(linear_constant(high), linear_constant(1));
  return end ? add(*end, divisor.sum(), -1) : std::nullopt;
}

/// Whether first <= rest < first + divisor at all places; the divisor is positive then.
bool ElementValues::lies_within(const Value& rests, const Linear& first, const Divisor& divisor) {
  return at_all_places([&](size_t p) {
    const std::optional<Linear> digit = add(rests[p], first, -1);
    const std::optional<Linear> above = digit ? add(divisor.sum(), *digit, -1) : std::nullopt;
    Refuter refuter(facts_.knowledge());
    return above && refuter.nonnegative(*digit) && refuter.positive(*above);
  });
}

/// Puts floordiv(x, n) and floormod(x, n) together.
bool ElementValues::recombine(size_t which) {
  for (size_t other = 0; other < values_.size(); ++other) {
    if (other == which) continue;
    if (std::optional<Value> whole = recombined(values_[which], values_[other])) {
      values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(which));
      keep(*std::move(whole));
      return true;
    }
  }
  return false;
}

std::optional<ElementValues::Value> ElementValues::recombined(const Value& remainder,
                                                              const Value& quotient) {
  Value whole(places_.size());
  std::optional<Linear> divisor;  // the same at all places
  const bool is_whole = at_all_places([&](size_t p) {
    const std::optional<Linear> sum = without_remainder(remainder[p], quotient[p], divisor);
    if (sum) whole[p] = *sum;
    return sum.has_value();
  });
  return is_whole ? std::optional(whole) : std::nullopt;
}

/// floordiv(x, n), which is floordiv(s*d + z, n*d) where x is s + floordiv(z, d): whichever form
/// the other sum has.
std::optional<Linear> ElementValues::quotient_in(const Linear& sum, Linear a, Linear b) {
  Knowledge& knowledge = facts_.knowledge();
  for (int depth = 0; depth < kMaxNesting; ++depth) {
    const Linear quotient = canonical(Simplifier(knowledge).quotient(a, b));
    const auto is_paired = [&](const Term& part) {
      const Term* match = sum.find(part.product);
      return match != nullptr && match->coefficient == part.coefficient;
    };
    for (const Linear& form : {quotient, coarser(quotient)})
      if (!form.is_constant() && std::ranges::all_of(form.terms, is_paired)) return form;
    const auto inner = std::ranges::find_if(a.terms, [&](const Term& term) {
      return term.coefficient == 1 && term.product.degree() == 1 &&
             operator_of(atoms_.expr(term.product[0])) == Operator::FloorDiv;
    });
    if (inner == a.terms.end()) return std::nullopt;
    const AtomId atom = inner->product[0];
    const Atoms::Operands operands = atoms_.operands(atom);
    if (!Refuter(knowledge).positive(operands.b)) return std::nullopt;
    std::optional<Linear> flat = add(a, linear_atom(atom), -1);
    if (flat) flat = multiplied(*flat, operands.b);
    if (flat) flat = add(*flat, operands.a);
    const std::optional<Linear> divisor = multiplied(b, operands.b);
    if (!flat || !divisor) return std::nullopt;
    a = *flat;
    b = *divisor;
  }
  return std::nullopt;
}

/// The same with floordiv(i*32 + j, 96) as floordiv(i, 3) where 0 <= j < 32: the form that its
/// partner floormod(i, 3) has been brought to.
Linear ElementValues::coarser(const Linear& sum) {
  Linear result = linear_constant(sum.constant);
  for (const Term& term : sum.terms) {
    std::optional<Linear> quotient;
    if (term.product.degree() == 1 &&
        operator_of(atoms_.expr(term.product[0])) == Operator::FloorDiv) {
      const Atoms::Operands operands = atoms_.operands(term.product[0]);
      if (operands.b.is_constant() && operands.b.constant > 0) {
        quotient = Simplifier(facts_.knowledge()).coarser_quotient(operands.a, operands.b.constant);
      }
    }
    const Linear part = quotient ? canonical(*quotient) : Linear{{{1, term.product}}, 0};
    const std::optional<Linear> more = add(result, part, term.coefficient);
    if (!more) return sum;
    result = *more;
  }
  return result;
}

/// q*floormod(x, n) + rest and floordiv(x, n) + more as  q*x + q*n*more + rest; nothing when there
/// is no such pair.
std::optional<Linear> ElementValues::without_remainder(const Linear& remainder,
                                                       const Linear& quotient,
                                                       std::optional<Linear>& divisor) {
  for (const Term& term : remainder.terms) {
    if (term.product.degree() != 1) continue;
    const AtomId atom = term.product[0];
    if (operator_of(atoms_.expr(atom)) != Operator::FloorMod) continue;
    const Atoms::Operands operands = atoms_.operands(atom);
    const bool is_fixed =
        std::ranges::all_of(operands.b.terms, [&](const Term& t) { return is_still(t.product); });
    if (!is_fixed || (divisor && !(*divisor == operands.b))) continue;
    // Dividing by zero gives zero.
    if (!Refuter(facts_.knowledge()).positive(operands.b)) continue;
    std::optional<Linear> more;
    for (const Linear& form : {quotient, coarser(quotient)}) {
      const std::optional<Linear> own = quotient_in(form, operands.a, operands.b);
      if (own) more = add(form, *own, -1);
      if (more) break;
    }
    std::optional<Linear> sum = more ? multiplied(*more, operands.b) : std::nullopt;
    if (sum) sum = add(operands.a, *sum);
    if (sum) sum = scaled(*sum, term.coefficient);
    if (sum) sum = add(*sum, remainder);
    if (sum) sum = add(*sum, linear_atom(atom), -term.coefficient);
    if (!sum) continue;
    divisor = operands.b;
    return canonical(*sum);
  }
  return std::nullopt;
}

/// The only term that does not stand still.
const Term* ElementValues::only_moving(const Linear& sum) const {
  const Term* found = nullptr;
  for (const Term& term : sum.terms) {
    if (is_still(term.product)) continue;
    if (found != nullptr) return nullptr;
    found = &term;
  }
  return found;
}

/// Takes the one term that moves in a value out of the others.
bool ElementValues::eliminate(size_t pivot) {
  std::vector<Term> moving;
  for (const Linear& sum : values_[pivot]) {
    const Term* term = only_moving(sum);
    if (term == nullptr) return false;
    moving.push_back(*term);
    if (term->coefficient != moving[0].coefficient) return false;
  }
  const int64_t divisor = moving[0].coefficient;
  for (size_t other = 0; other < values_.size(); ++other) {
    const Term* match = values_[other][0].find(moving[0].product);
    if (other == pivot || match == nullptr || match->coefficient % divisor != 0) continue;
    const int64_t times = match->coefficient / divisor;
    Value left = values_[other];
    bool is_in_all = true;
    for (size_t p = 0; p < left.size() && is_in_all; ++p) {
      const Term* part = left[p].find(moving[p].product);
      is_in_all = part != nullptr && part->coefficient == match->coefficient;
      const auto sum = is_in_all ? add(left[p], values_[pivot][p], -times) : std::nullopt;
      is_in_all = sum.has_value();
      if (sum) left[p] = *sum;
    }
    if (!is_in_all) continue;
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(other));
    keep(std::move(left));
    return true;
  }
  return false;
}

}  // namespace kiln::analysis
