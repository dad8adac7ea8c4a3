#include "compiler/ir/fold.h"

#include <bit>
#include <limits>

namespace kiln::ir {
namespace {

uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }
int64_t from_bits(uint64_t value) { return static_cast<int64_t>(value); }

/// The quotient rounded to zero, and the one rounded down. b is not 0.
int64_t truncated(int64_t a, int64_t b) {
  return b == -1 ? from_bits(0 - bits(a)) : a / b;  // the least int64 / -1 wraps
}
int64_t floored(int64_t a, int64_t b) {
  if (b == -1) return truncated(a, b);
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::optional<int64_t> divide(Operator op, DType type, int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (is_unsigned_int(type)) {
    const bool quotient = op == Operator::FloorDiv || op == Operator::TruncDiv;
    return from_bits(quotient ? bits(a) / bits(b) : bits(a) % bits(b));
  }
  switch (op) {
    case Operator::FloorDiv: return floored(a, b);
    case Operator::TruncDiv: return truncated(a, b);
    case Operator::FloorMod: return from_bits(bits(a) - bits(floored(a, b)) * bits(b));
    default: return from_bits(bits(a) - bits(truncated(a, b)) * bits(b));
  }
}

bool less(DType type, int64_t a, int64_t b) {
  return is_unsigned_int(type) ? bits(a) < bits(b) : a < b;
}

int64_t shifted(Operator op, DType type, int64_t a, int64_t b) {
  const bool out_of_range = b < 0 || b >= bits_of(type);
  if (op == Operator::ShiftLeft) return out_of_range ? 0 : from_bits(bits(a) << b);
  if (is_unsigned_int(type)) return out_of_range ? 0 : from_bits(bits(a) >> b);
  return out_of_range ? (a < 0 ? -1 : 0) : a >> b;
}

std::optional<int64_t> compute(Operator op, DType type, int64_t a, int64_t b) {
  switch (op) {
    case Operator::Add: return from_bits(bits(a) + bits(b));
    case Operator::Sub: return from_bits(bits(a) - bits(b));
    case Operator::Mul: return from_bits(bits(a) * bits(b));
    case Operator::FloorDiv:
    case Operator::FloorMod:
    case Operator::TruncDiv:
    case Operator::TruncMod: return divide(op, type, a, b);
    case Operator::Min: return less(type, b, a) ? b : a;
    case Operator::Max: return less(type, a, b) ? b : a;
    case Operator::Equal: return a == b;
    case Operator::NotEqual: return a != b;
    case Operator::Less: return less(type, a, b);
    case Operator::LessEqual: return !less(type, b, a);
    case Operator::Greater: return less(type, b, a);
    case Operator::GreaterEqual: return !less(type, a, b);
    case Operator::And:
    case Operator::BitAnd: return a & b;
    case Operator::Or:
    case Operator::BitOr: return a | b;
    case Operator::BitXor: return a ^ b;
    case Operator::ShiftLeft:
    case Operator::ShiftRight: return shifted(op, type, a, b);
    default: return std::nullopt;
  }
}

bool is_comparison(Operator op) {
  return language::row_of(op).type_rule == language::TypeRule::Compare;
}

}  // namespace

int64_t wrapped(DType type, int64_t value) {
  if (type == DType::Bool) return value != 0;
  const int unused = 64 - bits_of(type);
  if (is_unsigned_int(type)) return from_bits(bits(value) << unused >> unused);
  return from_bits(bits(value) << unused) >> unused;
}

std::optional<int64_t> fold_int(Operator op, DType type, int64_t a, int64_t b) {
  const std::optional<int64_t> value = compute(op, type, a, b);
  if (!value) return std::nullopt;
  return is_comparison(op) ? *value : wrapped(type, *value);
}

std::optional<int64_t> fold_int(Operator op, DType type, int64_t a) {
  switch (op) {
    case Operator::Negative: return wrapped(type, from_bits(0 - bits(a)));
    case Operator::Abs:
      return wrapped(type, !is_unsigned_int(type) && a < 0 ? from_bits(0 - bits(a)) : a);
    case Operator::Not: return a == 0;
    case Operator::BitNot: return type == DType::Bool ? int64_t{a == 0} : wrapped(type, ~a);
    case Operator::PopCount:
    case Operator::Clz: {
      const int unused = 64 - bits_of(type);
      const uint64_t own = bits(a) << unused;
      if (op == Operator::PopCount) return std::popcount(own);
      return own == 0 ? bits_of(type) : std::countl_zero(own);
    }
    default: return std::nullopt;
  }
}

}  // namespace kiln::ir
