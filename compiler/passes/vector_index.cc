// Keeps index arithmetic over lanes in the form base + stride*lane: `i*4 + k` over eight lanes of i
// is ramp(b*4 + k, 4, 8), not a vector of eight sums. Codegen tells contiguous loads and stores
// from gathers by that form. Division stays a ramp where no lane crosses a multiple of the divisor.
#include "compiler/passes/vector_index.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"

namespace kiln::passes {

using namespace ir;

namespace {

/// An index as base + stride * lane.
struct Affine {
  Expr base;
  Expr stride;
};

Affine affine_of(const Expr& expr) {
  if (const Ramp* ramp = as<Ramp>(expr)) return {ramp->base, ramp->stride};
  return {expr, index(0)};
}

bool is_affine(const Expr& expr) {
  return expr->type.element == DType::Int64 && (expr->type.lanes == 1 || as<Ramp>(expr) != nullptr);
}

Expr from(const Affine& value, int lanes) {
  return is_const(value.stride, 0) ? value.base : Ramp::make(value.base, value.stride, lanes);
}

/// floordiv or floormod of a ramp by a constant, where all lanes lie between two multiples of it or
/// the stride is a multiple.
Expr divided(Operator op, const Affine& a, const Expr& b, int lanes) {
  const std::optional<int64_t> divisor = as_const_int(b);
  const std::optional<int64_t> stride = as_const_int(a.stride);
  if (!divisor || *divisor <= 0 || !stride) return nullptr;

  const bool is_div = op == Operator::FloorDiv;
  if (*stride % *divisor == 0) {
    if (!is_div) return floormod(a.base, b);
    return from({floordiv(a.base, b), index(*stride / *divisor)}, lanes);
  }
  const std::optional<int64_t> first = as_const_int(analysis::simplify(floormod(a.base, b)));
  if (!first || *stride < 0 || *stride > *divisor) return nullptr;
  if (*first + *stride * (lanes - 1) >= *divisor) return nullptr;
  return is_div ? floordiv(a.base, b) : from({index(*first), a.stride}, lanes);
}

/// The result as a ramp or scalar; null when it is neither.
Expr affine_binary(Operator op, const Expr& x, const Expr& y, int lanes) {
  const Affine a = affine_of(x);
  const Affine b = affine_of(y);
  switch (op) {
    case Operator::Add: return from({a.base + b.base, a.stride + b.stride}, lanes);
    case Operator::Sub: return from({a.base - b.base, a.stride - b.stride}, lanes);
    case Operator::Mul:
      if (y->type.lanes == 1) return from({a.base * b.base, a.stride * b.base}, lanes);
      if (x->type.lanes == 1) return from({a.base * b.base, a.base * b.stride}, lanes);
      return nullptr;
    case Operator::FloorDiv:
    case Operator::FloorMod: return y->type.lanes == 1 ? divided(op, a, y, lanes) : Expr();
    default: return nullptr;
  }
}

/// The first lane of a condition that no later lane fulfils unless the first does, as with
/// `ramp < bound` and a stride that is not negative; null for any other.
Expr first_lane(const Expr& mask) {
  if (const Broadcast* same = as<Broadcast>(mask)) return same->value;
  const Binary* node = as<Binary>(mask);
  if (node == nullptr) return nullptr;
  if (node->op == Operator::And) {
    const Expr a = first_lane(node->a);
    const Expr b = a ? first_lane(node->b) : Expr();
    return b ? logical_and(a, b) : Expr();
  }
  if (node->op != Operator::Less && node->op != Operator::LessEqual) return nullptr;
  const Ramp* ramp = as<Ramp>(node->a);
  const Broadcast* bound = as<Broadcast>(node->b);
  if (ramp == nullptr || bound == nullptr || as_const_int(ramp->stride).value_or(-1) < 0) {
    return nullptr;
  }
  return Binary::make(node->op, ramp->base, bound->value);
}

}  // namespace

Expr widened(const Expr& expr, int lanes) {
  return expr->type.lanes == lanes ? expr : Broadcast::make(expr, lanes);
}

Expr vector_binary(Operator op, const Expr& a, const Expr& b) {
  const int lanes = std::max(a->type.lanes, b->type.lanes);
  if (is_affine(a) && is_affine(b)) {
    if (Expr result = affine_binary(op, a, b, lanes)) return result;
  }
  return Binary::make(op, widened(a, lanes), widened(b, lanes));
}

Expr any_lane(const Expr& mask) {
  if (Expr first = first_lane(mask)) return first;
  return VectorReduce::make(Combiner::Any, boolean(false), mask, true);
}

}  // namespace kiln::passes
