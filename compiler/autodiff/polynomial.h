#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compiler/language/definition.h"

namespace kiln::autodiff {

/// A product of expressions that are not sums themselves, sorted by id; empty is 1.
using Monomial = std::vector<language::ExprId>;

/// An integer as a sum of products: 2*i*m + j - 1 is {{i, m}: 2, {j}: 1, {}: -1}. No factor is 0.
struct Polynomial {
  std::map<Monomial, int64_t> terms;

  static Polynomial constant(int64_t value);
  static Polynomial atom(language::ExprId id);

  bool is_zero() const { return terms.empty(); }
  /// The value, when nothing changes it.
  std::optional<int64_t> as_constant() const;
  /// The only atom of a polynomial that is one atom.
  std::optional<language::ExprId> as_atom() const;
  bool contains(language::ExprId atom) const;
  std::vector<language::ExprId> atoms() const;
  bool operator==(const Polynomial&) const = default;
};

// Nothing when a number leaves the range of int64.
std::optional<Polynomial> add(const Polynomial& a, const Polynomial& b, int64_t factor = 1);
std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b);

/// p as `factor * atom + rest`, where neither has the atom; nothing when it stands squared.
struct Split {
  Polynomial factor;
  Polynomial rest;
};
std::optional<Split> split(const Polynomial& p, language::ExprId atom);

/// p as `by * quotient + rest`, term by term; of a constant by a constant the rest is 0 or more and
/// less than it. `by` has one term, and is not 0.
struct Quotient {
  Polynomial quotient;
  Polynomial rest;
};
std::optional<Quotient> divide(const Polynomial& p, const Polynomial& by);

}  // namespace kiln::autodiff
