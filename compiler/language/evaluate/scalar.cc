// What each operator computes, for one element of any type. Floats are computed in double and
// rounded once to their type, which for + - * / and sqrt is the correctly rounded result (Figueroa,
// When is double rounding innocuous?, 1995); integers wrap, and division by zero gives 0.
//
//   float16: 1 + 2^-11  ->  1     int8: 127 + 1  ->  -128     int32: -7 // 2  ->  -4
#include "compiler/language/evaluate/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/error.h"
#include "runtime/core/small_float.h"

namespace kiln::language {
namespace {

int64_t wrap(DType type, int64_t value) {
  switch (type) {
    case DType::Bool: return value != 0 ? 1 : 0;
    case DType::Int8: return static_cast<int8_t>(value);
    case DType::Int16: return static_cast<int16_t>(value);
    case DType::Int32: return static_cast<int32_t>(value);
    case DType::UInt8: return static_cast<uint8_t>(value);
    case DType::UInt16: return static_cast<uint16_t>(value);
    case DType::UInt32: return static_cast<uint32_t>(value);
    default: return value;
  }
}

/// Arithmetic that may pass the range of int64 goes through uint64, which wraps.
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

int64_t smallest(DType type) {
  if (!is_signed_int(type)) return 0;
  // In two steps: 1 << 63 is no int64.
  return -(int64_t{1} << (bits_of(type) - 2)) * 2;
}

/// As bits: the largest uint64 reads as -1.
int64_t largest(DType type) {
  if (type == DType::Bool) return 1;
  const int width = bits_of(type) - (is_signed_int(type) ? 1 : 0);
  return static_cast<int64_t>(~uint64_t{0} >> (64 - width));
}

/// Division by zero is 0, as numpy has it; the smallest number divided by -1 wraps to itself.
int64_t divide(DType type, int64_t a, int64_t b, bool floor, bool want_remainder) {
  if (b == 0) return 0;
  if (is_unsigned_int(type)) {
    return static_cast<int64_t>(want_remainder ? bits(a) % bits(b) : bits(a) / bits(b));
  }
  // The smallest number divided by -1 traps on x86.
  if (b == -1) return want_remainder ? 0 : static_cast<int64_t>(0 - bits(a));
  const int64_t quotient = a / b;
  const int64_t remainder = a % b;
  const bool lower = floor && remainder != 0 && (remainder < 0) != (b < 0);
  if (want_remainder) return lower ? remainder + b : remainder;
  return lower ? quotient - 1 : quotient;
}

int64_t shift(DType type, int64_t a, int64_t count, bool left) {
  const bool in_range = count >= 0 && count < bits_of(type);
  if (left) return in_range ? static_cast<int64_t>(bits(a) << count) : 0;
  if (is_unsigned_int(type)) return in_range ? static_cast<int64_t>(bits(a) >> count) : 0;
  return in_range ? a >> count : (a < 0 ? -1 : 0);
}

int64_t leading_zeros(DType type, int64_t value) {
  const uint64_t mask = ~uint64_t{0} >> (64 - bits_of(type));
  return std::countl_zero(bits(value) & mask) - (64 - bits_of(type));
}

bool less(const Scalar& a, const Scalar& b) {
  if (is_float(a.type)) return a.floating < b.floating;
  if (a.type == DType::UInt64) return bits(a.integer) < bits(b.integer);
  return a.integer < b.integer;
}

bool same(const Scalar& a, const Scalar& b) {
  return is_float(a.type) ? a.floating == b.floating : a.integer == b.integer;
}

bool is_nan(const Scalar& a) { return is_float(a.type) && std::isnan(a.floating); }

Scalar smaller(const Scalar& a, const Scalar& b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return less(b, a) ? b : a;
}

Scalar greater(const Scalar& a, const Scalar& b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return less(a, b) ? b : a;
}

double round_half_even(double value) { return std::nearbyint(value); }

/// As numpy.floor_divide and numpy.remainder, in the precision they work in.
template <typename T>
struct FloorDivision {
  T quotient;
  T remainder;

  FloorDivision(T a, T b) : quotient(a / b), remainder(std::fmod(a, b)) {
    if (b == 0) return;
    T whole = (a - remainder) / b;
    if (remainder != 0) {
      if ((remainder < 0) != (b < 0)) {
        remainder += b;
        whole -= 1;
      }
    } else {
      remainder = std::copysign(T{0}, b);
    }
    if (whole == 0) {
      quotient = std::copysign(T{0}, quotient);
      return;
    }
    quotient = std::floor(whole);
    if (whole - quotient > T{0.5}) quotient += 1;
  }
};

template <typename T>
double floor_division(Operator op, double a, double b) {
  const FloorDivision<T> result(static_cast<T>(a), static_cast<T>(b));
  return op == Operator::FloorDiv ? result.quotient : result.remainder;
}

/// Wraps as products do.
int64_t integer_power(DType type, int64_t a, int64_t b) {
  if (is_signed_int(type) && b < 0) {
    if (a == 1 || a == -1) return b % 2 == 0 ? 1 : a;
    return 0;
  }
  uint64_t result = 1;
  uint64_t base = bits(a);
  for (uint64_t rest = bits(b); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= base;
    base *= base;
  }
  return static_cast<int64_t>(result);
}

Scalar apply_int(Operator op, std::span<const Scalar> args) {
  const DType type = args[0].type;
  const int64_t a = args[0].integer;
  const int64_t b = args.size() > 1 ? args[1].integer : 0;
  const auto result = [&](int64_t value) { return Scalar::of_int(type, value); };
  switch (op) {
    case Operator::Pow: return result(integer_power(type, a, b));
    case Operator::Add: return result(static_cast<int64_t>(bits(a) + bits(b)));
    case Operator::Sub: return result(static_cast<int64_t>(bits(a) - bits(b)));
    case Operator::Mul: return result(static_cast<int64_t>(bits(a) * bits(b)));
    case Operator::FloorDiv: return result(divide(type, a, b, true, false));
    case Operator::FloorMod: return result(divide(type, a, b, true, true));
    case Operator::TruncDiv: return result(divide(type, a, b, false, false));
    case Operator::TruncMod: return result(divide(type, a, b, false, true));
    case Operator::Negative: return result(static_cast<int64_t>(0 - bits(a)));
    case Operator::Abs:
      return result(is_signed_int(type) && a < 0 ? static_cast<int64_t>(0 - bits(a)) : a);
    case Operator::BitAnd: return result(a & b);
    case Operator::BitOr: return result(a | b);
    case Operator::BitXor: return result(a ^ b);
    case Operator::BitNot: return result(type == DType::Bool ? 1 - a : ~a);
    case Operator::ShiftLeft: return result(shift(type, a, b, true));
    case Operator::ShiftRight: return result(shift(type, a, b, false));
    case Operator::PopCount:
      return result(std::popcount(bits(a) & (~uint64_t{0} >> (64 - bits_of(type)))));
    case Operator::Clz: return result(leading_zeros(type, a));
    case Operator::And: return result(a & b);
    case Operator::Or: return result(a | b);
    case Operator::Not: return result(1 - a);
    default: break;
  }
  check_failed("an operator of integers", __FILE__, __LINE__);
}

int64_t saturate(DType type, double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  const int width = bits_of(type) - (is_signed_int(type) ? 1 : 0);
  if (truncated >= std::ldexp(1.0, width)) return largest(type);
  if (truncated < static_cast<double>(smallest(type))) return smallest(type);
  return is_unsigned_int(type) ? static_cast<int64_t>(static_cast<uint64_t>(truncated))
                               : static_cast<int64_t>(truncated);
}

/// The number of another type with the same bits.
Scalar reinterpret(DType type, const Scalar& value) {
  HostTensor memory{value.type, {}, {}};
  memory.bytes.resize(sizeof(uint64_t));
  write_element(memory, 0, value);
  memory.type = type;
  return read_element(memory, 0);
}

/// One step in the bits, which are in the order of the magnitudes.
Scalar next_after(const Scalar& from, const Scalar& to) {
  const double a = from.floating;
  const double b = to.floating;
  if (std::isnan(a)) return from;
  if (std::isnan(b) || a == b) return to;
  const DType raw = bits_type(from.type);
  uint64_t step = bits(reinterpret(raw, from).integer);
  if (a == 0) {
    const uint64_t sign = uint64_t{std::signbit(b)} << (bits_of(from.type) - 1);
    step = sign | 1;
  } else {
    step += (a < b) == (a > 0) ? 1 : ~uint64_t{0};
  }
  return reinterpret(from.type, Scalar::of_int(raw, static_cast<int64_t>(step)));
}

/// The 13 lower bits of the mantissa are 0; nan stays one.
double tensor_float(DType type, double a) {
  if (type != DType::Float32 || std::isnan(a)) return a;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(a));
  return std::bit_cast<float>(bits & ~uint32_t{0x1fff});
}

double function_of(Operator op, double a) {
  switch (op) {
    case Operator::Negative: return -a;
    case Operator::Abs: return std::fabs(a);
    case Operator::Exp: return std::exp(a);
    case Operator::Exp2: return std::exp2(a);
    case Operator::Exp10: return ::exp10(a);
    case Operator::Expm1: return std::expm1(a);
    case Operator::Log: return std::log(a);
    case Operator::Log2: return std::log2(a);
    case Operator::Log10: return std::log10(a);
    case Operator::Log1p: return std::log1p(a);
    case Operator::Sqrt: return std::sqrt(a);
    case Operator::Rsqrt: return 1 / std::sqrt(a);
    case Operator::Cbrt: return std::cbrt(a);
    case Operator::Sin: return std::sin(a);
    case Operator::Cos: return std::cos(a);
    case Operator::Tan: return std::tan(a);
    case Operator::Asin: return std::asin(a);
    case Operator::Acos: return std::acos(a);
    case Operator::Atan: return std::atan(a);
    case Operator::Sinh: return std::sinh(a);
    case Operator::Cosh: return std::cosh(a);
    case Operator::Tanh: return std::tanh(a);
    case Operator::Asinh: return std::asinh(a);
    case Operator::Acosh: return std::acosh(a);
    case Operator::Atanh: return std::atanh(a);
    case Operator::Erf: return std::erf(a);
    case Operator::Sigmoid: return 1 / (1 + std::exp(-a));
    case Operator::Floor: return std::floor(a);
    case Operator::Ceil: return std::ceil(a);
    case Operator::Trunc: return std::trunc(a);
    case Operator::Round: return round_half_even(a);
    default: break;
  }
  check_failed("a function of one floating number", __FILE__, __LINE__);
}

double function_of(Operator op, double a, double b) {
  switch (op) {
    case Operator::Add: return a + b;
    case Operator::Sub: return a - b;
    case Operator::Mul: return a * b;
    case Operator::Div: return a / b;
    case Operator::Ldexp: return std::ldexp(a, static_cast<int>(saturate(DType::Int32, b)));
    case Operator::Atan2: return std::atan2(a, b);
    case Operator::Pow: return std::pow(a, b);
    case Operator::Fmod: return std::fmod(a, b);
    case Operator::Hypot: return std::hypot(a, b);
    case Operator::CopySign: return std::copysign(a, b);
    default: break;
  }
  check_failed("a function of two floating numbers", __FILE__, __LINE__);
}

Scalar apply_float(Operator op, std::span<const Scalar> args) {
  const DType type = args[0].type;
  const double a = args[0].floating;
  if (op == Operator::IsNan) return Scalar::of_bool(std::isnan(a));
  if (op == Operator::IsInf) return Scalar::of_bool(std::isinf(a));
  if (op == Operator::IsFinite) return Scalar::of_bool(std::isfinite(a));
  if (op == Operator::Tf32) return Scalar::of_float(type, tensor_float(type, a));
  if (op == Operator::BitsOf) return reinterpret(bits_type(type), args[0]);
  if (op == Operator::NextAfter) return next_after(args[0], args[1]);
  if (op == Operator::FloorDiv || op == Operator::FloorMod) {
    const double b = args[1].floating;
    return Scalar::of_float(type, type == DType::Float64 ? floor_division<double>(op, a, b)
                                                         : floor_division<float>(op, a, b));
  }
  if (args.size() == 1) return Scalar::of_float(type, function_of(op, a));
  if (args.size() == 2) return Scalar::of_float(type, function_of(op, a, args[1].floating));
  KILN_CHECK(op == Operator::Fma);
  const double b = args[1].floating;
  const double c = args[2].floating;
  // A product and a sum in double are rounded twice; fmaf once, as the hardware.
  if (type == DType::Float32) {
    return Scalar::of_float(
        type, std::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
  }
  return Scalar::of_float(type, std::fma(a, b, c));
}

/// An element's bytes as the bits of an unsigned number.
uint64_t load_bits(const HostTensor& tensor, int64_t position) {
  const int bytes = size_of(tensor.type);
  uint64_t raw = 0;
  std::memcpy(&raw, tensor.bytes.data() + position * bytes, static_cast<size_t>(bytes));
  return raw;
}

}  // namespace

Scalar Scalar::of_int(DType type, int64_t value) { return {type, wrap(type, value), 0}; }
Scalar Scalar::of_float(DType type, double value) { return {type, 0, round_to(type, value)}; }

Scalar apply_operator(Operator op, std::span<const Scalar> args) {
  switch (op) {
    case Operator::Equal: return Scalar::of_bool(same(args[0], args[1]));
    case Operator::NotEqual: return Scalar::of_bool(!same(args[0], args[1]));
    case Operator::Less: return Scalar::of_bool(less(args[0], args[1]));
    case Operator::Greater: return Scalar::of_bool(less(args[1], args[0]));
    case Operator::LessEqual:
      return Scalar::of_bool(less(args[0], args[1]) || same(args[0], args[1]));
    case Operator::GreaterEqual:
      return Scalar::of_bool(less(args[1], args[0]) || same(args[0], args[1]));
    case Operator::Min: return smaller(args[0], args[1]);
    case Operator::Max: return greater(args[0], args[1]);
    case Operator::Select:
    case Operator::IfThenElse: return args[0].integer != 0 ? args[1] : args[2];
    default: break;
  }
  if (const auto type = type_of_bits(op)) return reinterpret(*type, args[0]);
  return is_float(args[0].type) ? apply_float(op, args) : apply_int(op, args);
}

Scalar convert(DType type, const Scalar& value) {
  const bool from_float = is_float(value.type);
  if (type == DType::Bool) {
    return Scalar::of_bool(from_float ? value.floating != 0 : value.integer != 0);
  }
  if (!is_float(type)) {
    return Scalar::of_int(type, from_float ? saturate(type, value.floating) : value.integer);
  }
  if (from_float) return Scalar::of_float(type, value.floating);
  // Straight from the integer, so that it is rounded once.
  const bool is_unsigned = value.type == DType::UInt64;
  if (type == DType::Float32) {
    return Scalar::of_float(type, is_unsigned ? static_cast<float>(bits(value.integer))
                                              : static_cast<float>(value.integer));
  }
  return Scalar::of_float(type, is_unsigned ? static_cast<double>(bits(value.integer))
                                            : static_cast<double>(value.integer));
}

Scalar identity_of(Combiner combiner, DType type) {
  // float8_e4m3fn has no infinity.
  const double infinity =
      type == DType::Float8E4M3FN ? 448 : std::numeric_limits<double>::infinity();
  switch (combiner) {
    case Combiner::Sum: return convert(type, Scalar::of_int(DType::Int64, 0));
    case Combiner::Prod: return convert(type, Scalar::of_int(DType::Int64, 1));
    case Combiner::Min:
      return is_float(type) ? Scalar::of_float(type, infinity)
                            : Scalar::of_int(type, largest(type));
    case Combiner::Max:
      return is_float(type) ? Scalar::of_float(type, -infinity)
                            : Scalar::of_int(type, smallest(type));
    case Combiner::Any: return Scalar::of_bool(false);
    case Combiner::All: return Scalar::of_bool(true);
  }
  check_failed("a combiner", __FILE__, __LINE__);
}

Scalar read_element(const HostTensor& tensor, int64_t position) {
  // Most are of these two types, whose bytes are read without a call.
  if (tensor.type == DType::Float32) {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data() + position * 4, 4);
    return {tensor.type, 0, value};
  }
  if (tensor.type == DType::Float64) {
    double value = 0;
    std::memcpy(&value, tensor.bytes.data() + position * 8, 8);
    return {tensor.type, 0, value};
  }
  const uint64_t raw = load_bits(tensor, position);
  if (is_float(tensor.type)) {
    return {tensor.type, 0, from_small_float(tensor.type, static_cast<uint16_t>(raw))};
  }
  return Scalar::of_int(tensor.type, static_cast<int64_t>(raw));
}

void write_element(HostTensor& tensor, int64_t position, const Scalar& value) {
  uint64_t raw = bits(value.integer);
  if (tensor.type == DType::Float64) {
    raw = std::bit_cast<uint64_t>(value.floating);
  } else if (tensor.type == DType::Float32) {
    raw = std::bit_cast<uint32_t>(static_cast<float>(value.floating));
  } else if (is_float(tensor.type)) {
    raw = to_small_float(tensor.type, value.floating);
  }
  const int bytes = size_of(tensor.type);
  std::memcpy(tensor.bytes.data() + position * bytes, &raw, static_cast<size_t>(bytes));
}

}  // namespace kiln::language
