// What is known of an index: its polynomial, and whether that is never negative, by putting in the
// ends of axes, inner ones first (their bounds may use outer ones), and then sizes, which are 0 or
// more, or 1 or more where an axis that runs over them is used.
//
//   m - 1 - i with i < m  ->  at i = m - 1: 0, so it is never negative
#include <algorithm>

#include "compiler/autodiff/builder.h"

namespace kiln::autodiff {

using namespace language;

Polynomial Builder::polynomial(ExprId expr) {
  const auto known = polynomials_.find(expr);
  if (known != polynomials_.end()) return known->second;
  std::optional<Polynomial> result;
  if (const auto* constant = as<IntegerConstant>(expr)) {
    result = Polynomial::constant(constant->value);
  } else if (const Operation* found = as<Operation>(expr); found != nullptr) {
    const Operation operation = *found;
    const auto part = [&](size_t i) { return polynomial(operation.operands[i]); };
    switch (operation.op) {
      case Operator::Add: result = autodiff::add(part(0), part(1)); break;
      case Operator::Sub: result = autodiff::add(part(0), part(1), -1); break;
      case Operator::Mul: result = multiply(part(0), part(1)); break;
      case Operator::Negative: result = autodiff::add(Polynomial{}, part(0), -1); break;
      default: break;
    }
  }
  // The first of equal expressions stands for all of them.
  if (!result) result = Polynomial::atom(intern(Expression(definition().expressions[expr])));
  return polynomials_[expr] = *result;
}

ExprId Builder::expression(const Polynomial& p) {
  const auto plain = [&](Operator op, ExprId a, ExprId b) {
    return intern({DType::Int64, Operation{op, {a, b}}});
  };
  std::optional<ExprId> total;
  const auto append = [&](const Monomial& monomial, int64_t factor) {
    std::optional<ExprId> product;
    for (const ExprId atom : monomial)
      product = product ? plain(Operator::Mul, *product, atom) : atom;
    const bool is_first = !total;
    const int64_t size = factor < 0 && !is_first ? -factor : factor;
    if (!product) {
      product = integer(size);
    } else if (size != 1) {
      product = plain(Operator::Mul, *product, integer(size));
    }
    if (is_first) {
      total = product;
    } else {
      total = plain(factor < 0 ? Operator::Sub : Operator::Add, *total, *product);
    }
  };
  // What is added before what is subtracted, and the constant last: i + n - 1.
  for (const bool wanted : {true, false}) {
    for (const auto& [monomial, factor] : p.terms) {
      if (!monomial.empty() && (factor > 0) == wanted) append(monomial, factor);
    }
  }
  const auto constant = p.terms.find({});
  if (constant != p.terms.end()) append({}, constant->second);
  const ExprId result = total ? *total : integer(0);
  polynomials_.try_emplace(result, p);
  return result;
}

/// Of an axis its first and last value; of a remainder 0 and the divisor less one; of the quotient
/// of something that is 0 or more, 0.
Builder::Range Builder::range_of(ExprId atom) {
  const auto less_one = [](const Polynomial& p) {
    return autodiff::add(p, Polynomial::constant(-1));
  };
  if (const auto* use = as<AxisUse>(atom)) {
    const Axis axis = bounds_of(use->axis);
    const Polynomial minimum = polynomial(axis.minimum);
    const std::optional<Polynomial> end = autodiff::add(minimum, polynomial(axis.extent));
    return {minimum, end ? less_one(*end) : std::nullopt};
  }
  const auto* found = as<Operation>(atom);
  if (found == nullptr || (found->op != Operator::FloorMod && found->op != Operator::FloorDiv))
    return {};
  const Operation operation = *found;
  const Polynomial by = polynomial(operation.operands[1]);
  if (by.as_constant().value_or(0) < 1) return {};
  if (operation.op == Operator::FloorMod) return {Polynomial{}, less_one(by)};
  if (!is_nonnegative(polynomial(operation.operands[0]))) return {};
  return {Polynomial{}, std::nullopt};
}

namespace {

/// The atom to replace next by what bounds it: a quotient or remainder first, since these hold
/// axes; else the innermost axis; nothing where only sizes are left.
std::optional<ExprId> innermost(const Builder& builder, const Polynomial& p) {
  std::optional<ExprId> inner;
  AxisId inner_axis = 0;
  for (const ExprId atom : p.atoms()) {
    if (builder.as<VariableUse>(atom) != nullptr) continue;
    const auto* use = builder.as<AxisUse>(atom);
    if (use == nullptr) return atom;
    if (!inner || use->axis > inner_axis) {
      inner = atom;
      inner_axis = use->axis;
    }
  }
  return inner;
}

}  // namespace

bool Builder::is_nonnegative(const Polynomial& polynomial_) {
  count_step();
  Polynomial p = polynomial_;
  std::vector<Polynomial> extents;  // 1 or more, since their axes are used
  // Bounded: each turn replaces an axis by what its bounds use.
  for (int turns = 0; turns < 32; ++turns) {
    const std::optional<ExprId> inner = innermost(*this, p);
    if (!inner) break;
    const std::optional<Split> parts = split(p, *inner);
    const Range range = range_of(*inner);
    if (!parts) return false;
    if (const auto* use = as<AxisUse>(*inner)) {
      extents.push_back(polynomial(bounds_of(use->axis).extent));
    }
    const std::optional<Polynomial> negative = autodiff::add(Polynomial{}, parts->factor, -1);
    std::optional<Polynomial> end;
    if (is_nonnegative(parts->factor)) {
      end = range.least;
    } else if (negative && is_nonnegative(*negative)) {
      end = range.most;
    }
    const auto product = end ? multiply(parts->factor, *end) : std::nullopt;
    const auto next = product ? autodiff::add(parts->rest, *product) : std::nullopt;
    if (!next) return false;
    p = *next;
  }

  // A size that an axis runs over is written as 1 + what it is more than 1.
  Polynomial shifted = p;
  for (const ExprId atom : p.atoms()) {
    const auto* use = as<VariableUse>(atom);
    if (use == nullptr || !is_dimension_[use->variable]) return false;
    const bool is_positive = std::ranges::any_of(extents, [&](const Polynomial& extent) {
      return extent.terms.size() == 1 && extent.contains(atom);
    });
    if (!is_positive) continue;
    const std::optional<Split> parts = split(shifted, atom);
    const auto more = parts ? autodiff::add(shifted, parts->factor) : std::nullopt;
    if (!more) return false;
    shifted = *more;
  }
  return std::ranges::all_of(shifted.terms, [](const auto& term) { return term.second > 0; });
}

bool Builder::is_equal(ExprId a, ExprId b) { return polynomial(a) == polynomial(b); }

}  // namespace kiln::autodiff
