// Folds while expressions are made, index arithmetic only: (i + 3) - 3 -> i, n*1 -> n. Each fold
// looks at the operands' own operators and no deeper, so that making a node costs the same whatever
// it is made of. A fold that would overflow is left out.
#include "compiler/ir/build.h"

#include <limits>

#include "compiler/ir/swizzle.h"
#include "runtime/core/error.h"

namespace kiln::ir {
namespace {

bool is_index(const Expr& expr) { return expr->type == kIndexType; }

/// The result, unless it overflows.
std::optional<int64_t> checked(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::Add: overflow = __builtin_add_overflow(a, b, &result); break;
    case Operator::Sub: overflow = __builtin_sub_overflow(a, b, &result); break;
    case Operator::Mul: overflow = __builtin_mul_overflow(a, b, &result); break;
    default: return std::nullopt;
  }
  if (overflow) return std::nullopt;
  return result;
}

/// The constant result of index arithmetic on constants, or null.
Expr folded(Operator op, const Expr& a, const Expr& b) {
  if (!is_index(a) || !is_index(b)) return nullptr;
  const IntImm* x = as<IntImm>(a);
  const IntImm* y = as<IntImm>(b);
  if (x == nullptr || y == nullptr) return nullptr;
  const std::optional<int64_t> value = checked(op, x->value, y->value);
  return value ? index(*value) : Expr();
}

/// a as `base + constant`; base is null when a is the constant.
struct Offset {
  Expr base;
  int64_t constant = 0;
};
Offset offset_of(const Expr& a) {
  if (const IntImm* imm = as<IntImm>(a)) return {nullptr, imm->value};
  const Binary* binary = as<Binary>(a);
  if (binary == nullptr || (binary->op != Operator::Add && binary->op != Operator::Sub))
    return {a, 0};
  const IntImm* imm = as<IntImm>(binary->b);
  if (imm == nullptr || imm->value == std::numeric_limits<int64_t>::min()) return {a, 0};
  return {binary->a, binary->op == Operator::Add ? imm->value : -imm->value};
}

Expr with_offset(const Expr& base, int64_t constant) {
  if (constant == 0) return base;
  if (constant > 0 || constant == std::numeric_limits<int64_t>::min()) {
    return Binary::make(Operator::Add, base, index(constant));
  }
  return Binary::make(Operator::Sub, base, index(-constant));
}

/// a + delta for an index a; gathers a constant a already ends in.
Expr shifted(const Expr& a, int64_t delta) {
  const Offset offset = offset_of(a);
  const std::optional<int64_t> total = checked(Operator::Add, offset.constant, delta);
  if (!total) return Binary::make(Operator::Add, a, index(delta));
  if (!offset.base) return index(*total);
  return with_offset(offset.base, *total);
}

/// By identity: comparing trees would make the cost of a node depend on its operands.
bool same(const Expr& a, const Expr& b) { return a == b; }

std::optional<bool> as_const_bool(const Expr& expr) {
  const IntImm* imm = as<IntImm>(expr);
  if (imm == nullptr || imm->type != kBoolType) return std::nullopt;
  return imm->value != 0;
}

template <typename Test>
Expr compare(Operator op, const Expr& a, const Expr& b, Test test) {
  const std::optional<int64_t> x = as_const_int(a);
  const std::optional<int64_t> y = as_const_int(b);
  if (is_index(a) && x && y) return boolean(test(*x, *y));
  return Binary::make(op, a, b);
}

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Whether a / b is defined and does not overflow.
bool can_divide(int64_t a, int64_t b) {
  return b != 0 && !(b == -1 && a == std::numeric_limits<int64_t>::min());
}

/// The smallest (or largest) value of a type, as a constant: infinity where there is one.
Expr limit_of(DType type, bool smallest) {
  if (type == DType::Bool) return boolean(!smallest);
  if (type == DType::Float8E4M3FN) return FloatImm::make({type, 1}, smallest ? -448.0 : 448.0);
  if (is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return FloatImm::make({type, 1}, smallest ? -infinity : infinity);
  }
  if (is_unsigned_int(type)) {
    if (smallest) return IntImm::make({type, 1}, 0);
    const int bits = bits_of(type);
    return IntImm::make({type, 1}, bits == 64 ? -1 : (int64_t{1} << bits) - 1);
  }
  const int64_t low = std::numeric_limits<int64_t>::min() >> (64 - bits_of(type));
  return IntImm::make({type, 1}, smallest ? low : -(low + 1));
}

/// Those with an infix, and division, min and max.
bool is_binary(Operator op) {
  switch (op) {
    case Operator::FloorDiv:
    case Operator::FloorMod:
    case Operator::TruncDiv:
    case Operator::TruncMod:
    case Operator::Min:
    case Operator::Max: return true;
    default: return !language::row_of(op).infix.empty();
  }
}

}  // namespace

Expr index(int64_t value) { return IntImm::make(kIndexType, value); }

Expr constant(Type type, double value) {
  KILN_CHECK(type.lanes == 1);
  if (is_float(type.element)) return FloatImm::make(type, value);
  return IntImm::make(type, static_cast<int64_t>(value));
}

Expr operation(Operator op, std::vector<Expr> operands) {
  if (is_binary(op)) return Binary::make(op, std::move(operands[0]), std::move(operands[1]));
  return Call::make(op, std::move(operands));
}

Expr boolean(bool value) { return IntImm::make(kBoolType, value ? 1 : 0); }

Expr operator+(const Expr& a, const Expr& b) {
  if (is_index(a) && is_index(b)) {
    if (const auto value = as_const_int(b)) return shifted(a, *value);
    if (is_const(a, 0)) return b;
  }
  return Binary::make(Operator::Add, a, b);
}

Expr operator-(const Expr& a, const Expr& b) {
  if (is_index(a) && is_index(b)) {
    if (same(a, b)) return index(0);
    const auto value = as_const_int(b);
    if (value && *value != std::numeric_limits<int64_t>::min()) return shifted(a, -*value);
  }
  return Binary::make(Operator::Sub, a, b);
}

Expr operator*(const Expr& a, const Expr& b) {
  if (Expr value = folded(Operator::Mul, a, b)) return value;
  if (is_index(a) && is_index(b)) {
    if (is_const(a, 1) || is_const(b, 0)) return b;
    if (is_const(b, 1) || is_const(a, 0)) return a;
  }
  return Binary::make(Operator::Mul, a, b);
}

Expr operator+(const Expr& a, int64_t b) { return a + index(b); }
Expr operator-(const Expr& a, int64_t b) { return a - index(b); }
Expr operator*(const Expr& a, int64_t b) { return a * index(b); }

Expr floordiv(const Expr& a, const Expr& b) {
  const std::optional<int64_t> x = as_const_int(a);
  const std::optional<int64_t> y = as_const_int(b);
  if (is_index(a) && y) {
    if (*y == 1) return a;
    if (x && can_divide(*x, *y)) return index(floor_quotient(*x, *y));
  }
  return Binary::make(Operator::FloorDiv, a, b);
}

Expr floormod(const Expr& a, const Expr& b) {
  const std::optional<int64_t> x = as_const_int(a);
  const std::optional<int64_t> y = as_const_int(b);
  if (is_index(a) && y) {
    if (*y == 1) return index(0);
    if (x && can_divide(*x, *y)) return index(*x - floor_quotient(*x, *y) * *y);
  }
  return Binary::make(Operator::FloorMod, a, b);
}

Expr ceildiv(const Expr& a, const Expr& b) { return floordiv(a + (b - 1), b); }

Expr min(const Expr& a, const Expr& b) {
  if (same(a, b)) return a;
  const std::optional<int64_t> x = as_const_int(a);
  const std::optional<int64_t> y = as_const_int(b);
  if (is_index(a) && x && y) return index(std::min(*x, *y));
  return Binary::make(Operator::Min, a, b);
}

Expr max(const Expr& a, const Expr& b) {
  if (same(a, b)) return a;
  const std::optional<int64_t> x = as_const_int(a);
  const std::optional<int64_t> y = as_const_int(b);
  if (is_index(a) && x && y) return index(std::max(*x, *y));
  return Binary::make(Operator::Max, a, b);
}

Expr less(const Expr& a, const Expr& b) {
  return compare(Operator::Less, a, b, [](int64_t x, int64_t y) { return x < y; });
}

Expr less_equal(const Expr& a, const Expr& b) {
  return compare(Operator::LessEqual, a, b, [](int64_t x, int64_t y) { return x <= y; });
}

Expr equal(const Expr& a, const Expr& b) {
  return compare(Operator::Equal, a, b, [](int64_t x, int64_t y) { return x == y; });
}

Expr logical_and(const Expr& a, const Expr& b) {
  if (const auto x = as_const_bool(a)) return *x ? b : a;
  if (const auto y = as_const_bool(b)) return *y ? a : b;
  return Binary::make(Operator::And, a, b);
}

Expr logical_or(const Expr& a, const Expr& b) {
  if (const auto x = as_const_bool(a)) return *x ? a : b;
  if (const auto y = as_const_bool(b)) return *y ? b : a;
  return Binary::make(Operator::Or, a, b);
}

Expr logical_not(const Expr& a) {
  if (const auto x = as_const_bool(a)) return boolean(!*x);
  const Call* call = as<Call>(a);
  if (call != nullptr && call->op == Operator::Not) return call->args[0];
  return Call::make(Operator::Not, {a});
}

std::optional<int64_t> as_const_int(const Expr& expr) {
  const IntImm* imm = as<IntImm>(expr);
  if (imm == nullptr) return std::nullopt;
  return imm->value;
}

bool is_const(const Expr& expr, int64_t value) {
  const IntImm* imm = as<IntImm>(expr);
  return imm != nullptr && imm->value == value;
}

std::vector<Expr> extents_in_memory(const Buffer& buffer) {
  const std::vector<Expr> extents =
      buffer.strides.empty() ? buffer.shape : std::vector{buffer.shape[0], buffer.strides[0]};
  if (buffer.swizzle == 0) return extents;
  Expr elements = index(1);
  for (const Expr& extent : extents)
    elements = elements * extent;
  const Expr span = index(swizzle_of(buffer).span());
  return {ceildiv(elements, span), span};
}

Expr identity_of(Combiner combiner, DType type) {
  switch (combiner) {
    case Combiner::Sum: return constant({type, 1}, 0);
    case Combiner::Prod: return constant({type, 1}, 1);
    case Combiner::Min: return limit_of(type, false);
    case Combiner::Max: return limit_of(type, true);
    case Combiner::Any: return boolean(false);
    case Combiner::All: return boolean(true);
  }
  return nullptr;
}

Expr identity_of(const Combination& how, DType type) {
  return how.combiner ? identity_of(*how.combiner, type) : how.reducer->identities[how.output];
}

Expr combine(Combiner combiner, const Expr& a, const Expr& b) {
  return Binary::make(language::row_of(combiner).op, a, b);
}

}  // namespace kiln::ir
