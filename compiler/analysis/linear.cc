// Arithmetic on sums of products of atoms, checked for overflow here and, by the trust of their
// atoms, for overflow at run time. Coefficients are int64 and products unordered, so that equal
// sums are equal whatever way they were written; terms keep the order in which they were met, so
// that results read as the user wrote them.
#include "compiler/analysis/linear.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Call;
using ir::Cast;
using ir::Expr;
using ir::IntImm;
using ir::Operator;
using ir::Var;

bool mul_to(int64_t a, int64_t b, int64_t& result) {
  return !__builtin_mul_overflow(a, b, &result);
}
bool add_to(int64_t a, int64_t b, int64_t& result) {
  return !__builtin_add_overflow(a, b, &result);
}

/// Adds coefficient * product to the terms; false on overflow. The least int64 counts as overflow,
/// so that coefficients can be negated.
bool accumulate(std::vector<Term>& terms, int64_t coefficient, const Product& product) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  if (coefficient == 0) return true;
  if (coefficient == kLeast) return false;
  for (auto term = terms.begin(); term != terms.end(); ++term) {
    if (!(term->product == product)) continue;
    if (!add_to(term->coefficient, coefficient, term->coefficient)) return false;
    if (term->coefficient == kLeast) return false;
    if (term->coefficient == 0) terms.erase(term);
    return true;
  }
  terms.push_back({coefficient, product});
  return true;
}

/// Factors in the order of their numbers, greatest first.
std::array<AtomId, Product::kMaxDegree> sorted(const Product& product) {
  std::array<AtomId, Product::kMaxDegree> factors;
  factors.fill(-1);
  for (int i = 0; i < product.degree(); ++i)
    factors[i] = product[i];
  std::ranges::sort(factors, std::greater<>());
  return factors;
}

/// The greatest term in an order that multiplying keeps: by degree, then by the factors.
const Term& leading(const Linear& sum) {
  return *std::ranges::max_element(sum.terms, [](const Term& a, const Term& b) {
    if (a.product.degree() != b.product.degree()) return a.product.degree() < b.product.degree();
    return sorted(a.product) < sorted(b.product);
  });
}

/// The variables of an expression, once each, in the order met.
class CollectVars : public ir::Visitor {
 public:
  explicit CollectVars(Atoms& atoms) : atoms_(atoms) {}
  std::vector<AtomId> vars;

 private:
  using Visitor::visit;
  void visit(const Var& var) override {
    const AtomId id = atoms_.id_of(Expr(&var));
    if (std::find(vars.begin(), vars.end(), id) == vars.end()) vars.push_back(id);
  }
  Atoms& atoms_;
};

}  // namespace

bool Product::contains(AtomId atom) const {
  return std::find(factors_.begin(), factors_.begin() + degree_, atom) !=
         factors_.begin() + degree_;
}

std::optional<Product> Product::times(const Product& other) const {
  if (degree_ + other.degree_ > kMaxDegree) return std::nullopt;
  Product result = *this;
  for (int i = 0; i < other.degree_; ++i)
    result.factors_[result.degree_++] = other.factors_[i];
  result.signature_ += other.signature_;
  return result;
}

// Factors keep their order, so that what is left is written as the user wrote it.
std::optional<Product> Product::without(const Product& other) const {
  Product result = *this;
  for (int i = 0; i < other.degree_; ++i) {
    const auto end = result.factors_.begin() + result.degree_;
    const auto found = std::find(result.factors_.begin(), end, other.factors_[i]);
    if (found == end) return std::nullopt;
    std::copy(found + 1, end, found);
    --result.degree_;
    result.signature_ -= signature_of(other.factors_[i]);
  }
  return result;
}

bool Product::operator==(const Product& other) const {
  if (degree_ != other.degree_ || signature_ != other.signature_) return false;
  if (degree_ == 1) return factors_[0] == other.factors_[0];
  return without(other).has_value();
}

std::optional<AtomId> Linear::as_atom() const {
  if (constant != 0 || terms.size() != 1) return std::nullopt;
  const Term& term = terms[0];
  if (term.coefficient != 1 || term.product.degree() != 1) return std::nullopt;
  return term.product[0];
}

const Term* Linear::find(const Product& product) const {
  for (const Term& term : terms) {
    if (term.product == product) return &term;
  }
  return nullptr;
}

bool Linear::operator==(const Linear& other) const {
  if (constant != other.constant || terms.size() != other.terms.size()) return false;
  return std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
    const Term* match = other.find(term.product);
    return match != nullptr && match->coefficient == term.coefficient;
  });
}

Linear linear_constant(int64_t value) { return {{}, value}; }
Linear linear_atom(AtomId atom) { return {{{1, Product(atom)}}, 0}; }

std::optional<Linear> add(const Linear& a, const Linear& b, int64_t factor) {
  Linear result = a;
  int64_t value = 0;
  for (const Term& term : b.terms) {
    if (!mul_to(term.coefficient, factor, value)) return std::nullopt;
    if (!accumulate(result.terms, value, term.product)) return std::nullopt;
  }
  if (!mul_to(b.constant, factor, value) || !add_to(a.constant, value, result.constant)) {
    return std::nullopt;
  }
  return result;
}

std::optional<Linear> scaled(const Linear& a, int64_t factor) { return add({}, a, factor); }

std::optional<Linear> multiplied(const Linear& a, const Product& product) {
  Linear result;
  for (const Term& term : a.terms) {
    const std::optional<Product> longer = term.product.times(product);
    if (!longer || !accumulate(result.terms, term.coefficient, *longer)) return std::nullopt;
  }
  if (!accumulate(result.terms, a.constant, product)) return std::nullopt;
  return result;
}

std::optional<Linear> multiplied(const Linear& a, const Linear& b) {
  if (b.is_constant()) return scaled(a, b.constant);
  std::optional<Linear> result = Linear{};
  // In the order of a's terms, so that (i + 1)*n gives i*n + n.
  for (const Term& term : a.terms) {
    for (const Term& other : b.terms) {
      int64_t coefficient = 0;
      const std::optional<Product> product = term.product.times(other.product);
      if (!product || !mul_to(term.coefficient, other.coefficient, coefficient) ||
          !accumulate(result->terms, coefficient, *product)) {
        return std::nullopt;
      }
    }
    int64_t coefficient = 0;
    if (!mul_to(term.coefficient, b.constant, coefficient) ||
        !accumulate(result->terms, coefficient, term.product)) {
      return std::nullopt;
    }
  }
  return add(*result, b, a.constant);
}

Divided divide(const Linear& a, int64_t coefficient, const Product& product) {
  Divided result;
  for (const Term& term : a.terms) {
    const std::optional<Product> left = term.product.without(product);
    if (!left || term.coefficient % coefficient != 0) {
      result.rest.terms.push_back(term);
    } else if (left->degree() == 0) {
      result.whole.constant = term.coefficient / coefficient;
    } else {
      result.whole.terms.push_back({term.coefficient / coefficient, *left});
    }
  }
  if (product.degree() == 0) {
    result.whole.constant = floor_div(a.constant, coefficient);
    result.rest.constant = floor_mod(a.constant, coefficient);
  } else {
    result.rest.constant = a.constant;
  }
  return result;
}

// Long division: the leading term of what is left is a multiple of that of the divisor, or there is
// no such sum.
std::optional<Linear> exact_quotient(const Linear& a, const Linear& divisor) {
  if (divisor.is_constant()) return std::nullopt;
  const Term& lead = leading(divisor);
  Linear left = a;
  std::optional<Linear> result = Linear{};
  while (!left.is_constant()) {
    const Term& next = leading(left);
    const std::optional<Product> product = next.product.without(lead.product);
    if (!product || next.coefficient % lead.coefficient != 0) return std::nullopt;
    const int64_t coefficient = next.coefficient / lead.coefficient;
    const Linear part = product->degree() == 0 ? linear_constant(coefficient)
                                               : Linear{{{coefficient, *product}}, 0};
    const std::optional<Linear> multiple = multiplied(part, divisor);
    const std::optional<Linear> rest = multiple ? add(left, *multiple, -1) : std::nullopt;
    result = rest ? add(*result, part) : std::nullopt;
    if (!result) return std::nullopt;
    left = *rest;
  }
  return left.constant == 0 ? result : std::nullopt;
}

std::optional<Operator> operator_of(const Expr& atom) {
  const Binary* binary = ir::as<Binary>(atom);
  if (binary == nullptr) return std::nullopt;
  return binary->op;
}

std::optional<Linear> trusted_sum(const Atoms& atoms, const Linear& a, const Linear& b,
                                  int64_t sign) {
  if (b.is_constant() && b.constant == 0) return a;
  if (a.is_constant() && a.constant == 0 && sign == 1) return b;
  if (atoms.trust(a) == Trust::Wild || atoms.trust(b) == Trust::Wild) return std::nullopt;
  return add(a, b, sign);
}

std::optional<Linear> trusted_product(const Atoms& atoms, const Linear& a, const Linear& b) {
  if (b.is_constant() && b.constant == 1) return a;
  if (a.is_constant() && a.constant == 1) return b;
  const Trust trust = std::max(atoms.trust(a), atoms.trust(b));
  if (trust == Trust::Wild) return std::nullopt;
  // 32 bits of data times a small number stay far below 63 bits; times a size they may not.
  const auto is_little = [](const Linear& x) {
    return x.is_constant() && x.constant > -(1 << 24) && x.constant < (1 << 24);
  };
  if (trust == Trust::Small && !is_little(a) && !is_little(b)) return std::nullopt;
  return multiplied(a, b);
}

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

Trust Atoms::trust(const Linear& linear) const {
  Trust result = Trust::Index;
  for (const Term& term : linear.terms) {
    for (int i = 0; i < term.product.degree(); ++i) {
      result = std::max(result, trust(term.product[i]));
    }
  }
  return result;
}

// A remainder is as small as its divisor, whatever the dividend; other operators pass on the worse
// of their operands.
Trust Atoms::trust_of(const Expr& expr) {
  if (ir::as<Var>(expr) || ir::as<IntImm>(expr)) return Trust::Index;
  if (const Cast* cast = ir::as<Cast>(expr)) {
    const DType from = cast->value->type.element;
    return !is_float(from) && bits_of(from) <= 32 ? Trust::Small : Trust::Wild;
  }
  if (const Binary* binary = ir::as<Binary>(expr)) {
    switch (binary->op) {
      case Operator::FloorMod: return trust(read(binary->b));
      case Operator::FloorDiv:
      case Operator::Min:
      case Operator::Max: return std::max(trust(read(binary->a)), trust(read(binary->b)));
      default: return Trust::Wild;
    }
  }
  const Call* call = ir::as<Call>(expr);
  if (call != nullptr && (call->op == Operator::Select || call->op == Operator::IfThenElse)) {
    return std::max(trust(read(call->args[1])), trust(read(call->args[2])));
  }
  return Trust::Wild;
}

AtomId Atoms::id_of(const Expr& expr) {
  const size_t hash = ir::hash_of(expr);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (ir::equal_trees(entries_[it->second].expr, expr)) return it->second;
  }
  const Trust trust = trust_of(expr);  // may add atoms, so before this one gets its number
  const AtomId id = size();
  entries_.push_back({expr, trust, {}, {}});
  by_hash_.emplace(hash, id);
  return id;
}

const Atoms::Operands& Atoms::operands(AtomId atom) {
  if (!entries_[atom].operands) {
    const Expr expr = entries_[atom].expr;
    const Binary* binary = ir::as<Binary>(expr);
    KILN_CHECK(binary != nullptr);
    Operands operands{read(binary->a), read(binary->b)};
    entries_[atom].operands = std::move(operands);
  }
  return *entries_[atom].operands;
}

const std::vector<AtomId>& Atoms::variables(AtomId atom) {
  if (!entries_[atom].variables) {
    CollectVars collect(*this);
    collect(Expr(entries_[atom].expr));
    entries_[atom].variables = std::move(collect.vars);
  }
  return *entries_[atom].variables;
}

// floordiv(n - 1, 2) as floordiv(n + 1, 2) - 1, floordiv(2*p + n, 2) as p + floordiv(n, 2):
// whatever way a division by a constant was written, it is one atom. Nothing without such
// multiples.
std::optional<Linear> Atoms::with_multiples_outside(const Binary& division) {
  const IntImm* divisor = ir::as<IntImm>(division.b);
  if (divisor == nullptr || divisor->value <= 0 || ir::as<Binary>(division.a) == nullptr) return {};
  const Linear dividend = read(division.a);
  if (dividend.is_constant() || trust(dividend) == Trust::Wild) return {};
  const Divided parts = divide(dividend, divisor->value);
  const bool has_multiples = !parts.whole.is_constant() || parts.whole.constant != 0;
  if (!has_multiples || parts.rest.is_constant()) return {};
  const Expr rest = Binary::make(Operator::FloorDiv, write(parts.rest), division.b);
  return add(parts.whole, linear_atom(id_of(rest)));
}

// What may wrap at run time is one atom: computing on with its parts would be computing without
// wrapping.
Linear Atoms::read(const Expr& expr) {
  if (const IntImm* imm = ir::as<IntImm>(expr)) return linear_constant(imm->value);
  std::optional<Linear> result;
  if (const Binary* binary = ir::as<Binary>(expr)) {
    switch (binary->op) {
      case Operator::Add: result = trusted_sum(*this, read(binary->a), read(binary->b), 1); break;
      case Operator::Sub: result = trusted_sum(*this, read(binary->a), read(binary->b), -1); break;
      case Operator::Mul: result = trusted_product(*this, read(binary->a), read(binary->b)); break;
      case Operator::FloorDiv: result = with_multiples_outside(*binary); break;
      default: break;
    }
  }
  if (const Call* call = ir::as<Call>(expr); call != nullptr && call->op == Operator::Negative) {
    result = trusted_sum(*this, {}, read(call->args[0]), -1);
  }
  return result ? *result : linear_atom(id_of(expr));
}

}  // namespace kiln::analysis
