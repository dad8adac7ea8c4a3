#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"

/// Index expressions as sums: what simplify, can_prove and bounds_of compute with.
namespace kiln::analysis {

/// A factor that is not a sum or a product itself: a variable, floordiv(n, 32), min(i, n), a load.
/// The number is that of the first appearance, so it is the same in every run.
using AtomId = int32_t;

/// One to kMaxDegree atoms multiplied, in the order they were written. As a product the order does
/// not matter: i*n and n*i are equal.
class Product {
 public:
  static constexpr int kMaxDegree = 6;

  Product() = default;
  explicit Product(AtomId atom) : factors_{atom}, signature_(signature_of(atom)), degree_(1) {}

  int degree() const { return degree_; }
  AtomId operator[](int i) const { return factors_[i]; }
  bool contains(AtomId atom) const;
  /// The product times another; nothing when the degree would pass kMaxDegree.
  std::optional<Product> times(const Product& other) const;
  /// The product with these factors left out; nothing when it does not have them all.
  std::optional<Product> without(const Product& other) const;
  bool operator==(const Product& other) const;

 private:
  static uint32_t signature_of(AtomId atom) {
    return (static_cast<uint32_t>(atom) + 1) * 0x9E3779B9u;
  }

  std::array<AtomId, kMaxDegree> factors_{};
  uint32_t signature_ = 0;  // the sum over the factors: equal for equal products
  int8_t degree_ = 0;
};

struct Term {
  int64_t coefficient;  // never 0
  Product product;      // never empty
};

/// terms + constant, each product once, in order of first appearance.
struct Linear {
  std::vector<Term> terms;
  int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  /// The atom when this is 1 * atom.
  std::optional<AtomId> as_atom() const;
  const Term* find(const Product& product) const;
  bool operator==(const Linear& other) const;  // as sums: the order of the terms does not matter
};

Linear linear_constant(int64_t value);
Linear linear_atom(AtomId atom);

/// a + b * factor. Nothing when a number leaves the range of int64; so for all of these.
std::optional<Linear> add(const Linear& a, const Linear& b, int64_t factor = 1);
std::optional<Linear> scaled(const Linear& a, int64_t factor);
std::optional<Linear> multiplied(const Linear& a, const Product& product);
std::optional<Linear> multiplied(const Linear& a, const Linear& b);

/// a = whole * divisor + rest, term by term; the divisor is coefficient * product, and with an
/// empty product the constant of `rest` is at least 0.
struct Divided {
  Linear whole;
  Linear rest;
};
Divided divide(const Linear& a, int64_t coefficient, const Product& product = {});

/// The sum that times `divisor` is `a`, a polynomial of the atoms; nothing where there is none.
std::optional<Linear> exact_quotient(const Linear& a, const Linear& divisor);

/// How much a value may be computed with as if integers had no end.
enum class Trust : uint8_t {
  Index,  // made of variables: does not overflow (sizes are bounded at each call)
  Small,  // read from memory, at most 32 bits wide: sums of it do not overflow
  Wild,   // any int64 at all: comparing is fine, but arithmetic on it may wrap
};

/// Gives equal atoms one number, and keeps what an atom means.
class Atoms {
 public:
  AtomId id_of(const ir::Expr& expr);
  const ir::Expr& expr(AtomId atom) const { return entries_[atom].expr; }
  Trust trust(AtomId atom) const { return entries_[atom].trust; }
  Trust trust(const Linear& linear) const;
  int size() const { return static_cast<int>(entries_.size()); }

  /// The operands of a floordiv, floormod, min or max as sums.
  struct Operands {
    Linear a;
    Linear b;
  };
  const Operands& operands(AtomId atom);
  /// Variables inside the atom (itself, if it is one).
  const std::vector<AtomId>& variables(AtomId atom);

  /// The expression as a sum. Nothing inside of it is simplified, but for multiples of a constant
  /// divisor, which leave a floordiv: the sizes of a kernel come written either way.
  Linear read(const ir::Expr& expr);

  /// The sum as a person would write it: in order, constant last, common factors taken out.
  ir::Expr write(const Linear& linear);

 private:
  struct Entry {
    ir::Expr expr;
    Trust trust;
    std::optional<Operands> operands;
    std::optional<std::vector<AtomId>> variables;
  };
  Trust trust_of(const ir::Expr& expr);
  std::optional<Linear> with_multiples_outside(const ir::Binary& division);

  std::deque<Entry> entries_;  // references into it stay good
  std::unordered_multimap<size_t, AtomId> by_hash_;
};

/// The operator of an atom, when it is a Binary.
std::optional<ir::Operator> operator_of(const ir::Expr& atom);

/// a + b (or a - b), a * b: nothing when it may wrap at run time or when numbers get too large
/// here.
std::optional<Linear> trusted_sum(const Atoms& atoms, const Linear& a, const Linear& b,
                                  int64_t sign);
std::optional<Linear> trusted_product(const Atoms& atoms, const Linear& a, const Linear& b);

/// Rounded down, and the rest, which has the sign of b. b is not 0.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

}  // namespace kiln::analysis
