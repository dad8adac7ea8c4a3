// Conversions of floats of 8 and 16 bits in exact double arithmetic, one format after the other
// described by its widths; of the bits alone where these are a normal number. The reference for
// what code generators emit: round to nearest, ties to even, subnormal numbers included.
#include "runtime/core/small_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/core/error.h"

namespace kiln {
namespace {

/// The layout of a type: sign, exponent, mantissa from the top. `has_infinity` off: the largest
/// exponent holds numbers too, and only all ones are nan.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int max_exponent() const { return (1 << exponent_bits) - 1; }
};

Layout layout_of(DType type) {
  switch (type) {
    case DType::Float16: return {5, 10, true};
    case DType::BFloat16: return {8, 7, true};
    case DType::Float8E4M3FN: return {4, 3, false};
    case DType::Float8E5M2: return {5, 2, true};
    default: break;
  }
  check_failed("a floating type of 8 or 16 bits", __FILE__, __LINE__);
}

constexpr int kDoubleMantissa = 52;
constexpr int kDoubleBias = 1023;

}  // namespace

uint16_t to_small_float(DType type, double value) {
  const Layout layout = layout_of(type);
  const int bits = layout.exponent_bits + layout.mantissa_bits;
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 1u << bits : 0u);
  // Most are normal numbers, and far from the end of the range: the bits of a double, rounded. A
  // mantissa that carries over into the exponent is the next power of two.
  const uint64_t raw = std::bit_cast<uint64_t>(std::fabs(value));
  const int place = static_cast<int>(raw >> kDoubleMantissa) - kDoubleBias + layout.bias();
  if (place > 0 && place < layout.max_exponent() - 1) {
    const int dropped = kDoubleMantissa - layout.mantissa_bits;
    const uint64_t kept = raw - (uint64_t(kDoubleBias - layout.bias()) << kDoubleMantissa);
    const uint64_t half = (uint64_t{1} << (dropped - 1)) - 1 + (kept >> dropped & 1);
    return sign | static_cast<uint16_t>((kept + half) >> dropped);
  }
  const auto infinity = static_cast<uint16_t>(layout.max_exponent() << layout.mantissa_bits);
  const auto nan = static_cast<uint16_t>(
      layout.has_infinity ? infinity | (1u << (layout.mantissa_bits - 1)) : (1u << bits) - 1);
  if (std::isnan(value)) return sign | nan;
  const uint16_t overflow = layout.has_infinity ? infinity : nan;
  if (std::isinf(value)) return sign | overflow;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;

  // In units of the last place: of the value's own binade, or of the smallest normal one below it.
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent with 0.5 <= f < 1
  const int binade = std::max(exponent - 1, 1 - layout.bias());
  // Scaling by a power of two is exact; nearbyint rounds half to even, the one rounding there is.
  const double units = std::nearbyint(std::ldexp(magnitude, layout.mantissa_bits - binade));
  const auto whole = static_cast<int64_t>(units);
  // A mantissa with its leading one carries over into the exponent by plain addition; a subnormal
  // number has neither.
  const int64_t encoded =
      whole + (static_cast<int64_t>(binade + layout.bias() - 1) << layout.mantissa_bits);
  const int64_t limit = layout.has_infinity ? infinity : nan;
  return sign | (encoded >= limit ? overflow : static_cast<uint16_t>(encoded));
}

double from_small_float(DType type, uint16_t bits) {
  const Layout layout = layout_of(type);
  const int width = layout.exponent_bits + layout.mantissa_bits;
  const int exponent = bits >> layout.mantissa_bits & layout.max_exponent();
  const int mantissa = bits & ((1 << layout.mantissa_bits) - 1);
  if (exponent > 0 && exponent < layout.max_exponent()) {
    const int moved = exponent - layout.bias() + kDoubleBias;
    const auto place = static_cast<uint64_t>(moved);
    const uint64_t raw = bits;
    return std::bit_cast<double>((raw >> width & 1) << 63 | place << kDoubleMantissa |
                                 uint64_t(mantissa) << (kDoubleMantissa - layout.mantissa_bits));
  }
  const double sign = (bits >> width & 1) != 0 ? -1.0 : 1.0;
  if (exponent == layout.max_exponent()) {
    if (layout.has_infinity) {
      return sign * (mantissa == 0 ? std::numeric_limits<double>::infinity()
                                   : std::numeric_limits<double>::quiet_NaN());
    }
    if (mantissa == (1 << layout.mantissa_bits) - 1) {
      return sign * std::numeric_limits<double>::quiet_NaN();
    }
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - layout.bias() - layout.mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << layout.mantissa_bits),
                           exponent - layout.bias() - layout.mantissa_bits);
}

double round_to(DType type, double value) {
  if (type == DType::Float64) return value;
  if (type == DType::Float32) return static_cast<float>(value);
  return from_small_float(type, to_small_float(type, value));
}

bool is_past_range(DType type, double value) {
  return std::isfinite(value) && !std::isfinite(round_to(type, value));
}

}  // namespace kiln
