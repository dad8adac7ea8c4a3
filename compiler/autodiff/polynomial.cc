// Index arithmetic in a normal form: sums of products of what is not taken apart.
//
//   (i + 1)*m + j - m  ->  i*m + j
#include "compiler/autodiff/polynomial.h"

#include <algorithm>

namespace kiln::autodiff {

using language::ExprId;

Polynomial Polynomial::constant(int64_t value) {
  Polynomial result;
  if (value != 0) result.terms[{}] = value;
  return result;
}

Polynomial Polynomial::atom(ExprId id) { return {{{{id}, 1}}}; }

std::optional<int64_t> Polynomial::as_constant() const {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms.begin()->first.empty()) return terms.begin()->second;
  return std::nullopt;
}

std::optional<ExprId> Polynomial::as_atom() const {
  if (terms.size() != 1 || terms.begin()->second != 1) return std::nullopt;
  const Monomial& only = terms.begin()->first;
  return only.size() == 1 ? std::optional(only[0]) : std::nullopt;
}

bool Polynomial::contains(ExprId atom) const {
  return std::ranges::any_of(terms, [&](const auto& term) {
    return std::ranges::find(term.first, atom) != term.first.end();
  });
}

std::vector<ExprId> Polynomial::atoms() const {
  std::vector<ExprId> found;
  for (const auto& [monomial, factor] : terms)
    found.insert(found.end(), monomial.begin(), monomial.end());
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<Polynomial> add(const Polynomial& a, const Polynomial& b, int64_t factor) {
  Polynomial result = a;
  for (const auto& [monomial, value] : b.terms) {
    int64_t scaled = 0;
    int64_t& total = result.terms[monomial];
    if (__builtin_mul_overflow(value, factor, &scaled) ||
        __builtin_add_overflow(total, scaled, &total)) {
      return std::nullopt;
    }
    if (total == 0) result.terms.erase(monomial);
  }
  return result;
}

std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b) {
  constexpr size_t kMostTerms = 64;
  if (a.terms.size() * b.terms.size() > kMostTerms) return std::nullopt;
  Polynomial result;
  for (const auto& [left, x] : a.terms) {
    for (const auto& [right, y] : b.terms) {
      Monomial product;
      std::ranges::merge(left, right, std::back_inserter(product));
      int64_t value = 0;
      int64_t& total = result.terms[product];
      if (__builtin_mul_overflow(x, y, &value) || __builtin_add_overflow(total, value, &total)) {
        return std::nullopt;
      }
      if (total == 0) result.terms.erase(product);
    }
  }
  return result;
}

std::optional<Split> split(const Polynomial& p, ExprId atom) {
  Split result;
  for (const auto& [monomial, value] : p.terms) {
    const auto at = std::ranges::find(monomial, atom);
    if (at == monomial.end()) {
      result.rest.terms[monomial] = value;
      continue;
    }
    Monomial others = monomial;
    others.erase(others.begin() + (at - monomial.begin()));
    if (std::ranges::find(others, atom) != others.end()) return std::nullopt;
    result.factor.terms[others] = value;
  }
  return result;
}

std::optional<Quotient> divide(const Polynomial& p, const Polynomial& by) {
  if (by.terms.size() != 1) return std::nullopt;
  const auto& [divisor, number] = *by.terms.begin();
  Quotient result;
  for (const auto& [monomial, value] : p.terms) {
    if (monomial.empty() && divisor.empty() && number > 1) {
      const int64_t rest = (value % number + number) % number;
      if (rest != 0) result.rest.terms[monomial] = rest;
      if (value != rest) result.quotient.terms[monomial] = (value - rest) / number;
      continue;
    }
    const bool has_number = number == 1 || (number != -1 && value % number == 0);
    if (!has_number || !std::ranges::includes(monomial, divisor)) {
      result.rest.terms[monomial] = value;
      continue;
    }
    Monomial others;
    std::ranges::set_difference(monomial, divisor, std::back_inserter(others));
    result.quotient.terms[others] = value / number;
  }
  return result;
}

}  // namespace kiln::autodiff
