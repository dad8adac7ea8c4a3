// Prints arrays as numpy does: columns aligned, and of large arrays the middle left out.
//
//   100 x 100  ->  [[ 0.  1.  2. ... 97. 98. 99.] and so on, three rows at each end
#include "client/cpp/array_text.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <kiln/array.h>

namespace kiln {
inline namespace client {
namespace {

constexpr std::size_t kWholeBelow = 1000;  // elements; larger arrays are shortened
constexpr std::int64_t kEdge = 3;          // entries kept at each end of a dimension

float from_float16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

float from_bfloat16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// E5M2 has infinities and nans as IEEE 754; E4M3FN has one nan and no infinity.
float from_float8(std::uint8_t bits, int exponent_bits) {
  const int fraction_bits = 7 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  const bool e5m2 = exponent_bits == 5;
  if (e5m2 && exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (!e5m2 && exponent == 15 && fraction == 7) return NAN;
  if (exponent == 0) {
    return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits);
  }
  return sign * std::ldexp(static_cast<float>((1 << fraction_bits) + fraction),
                           exponent - bias - fraction_bits);
}

template <typename T>
T element(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// As numpy writes a number that stands alone: "1." for a whole one.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{:.8g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".";
  return text;
}

std::string element_text(const std::byte* data, DType type) {
  switch (type) {
    case DType::Bool: return element<std::uint8_t>(data) != 0 ? "True" : "False";
    case DType::Int8: return std::to_string(element<std::int8_t>(data));
    case DType::Int16: return std::to_string(element<std::int16_t>(data));
    case DType::Int32: return std::to_string(element<std::int32_t>(data));
    case DType::Int64: return std::to_string(element<std::int64_t>(data));
    case DType::UInt8: return std::to_string(element<std::uint8_t>(data));
    case DType::UInt16: return std::to_string(element<std::uint16_t>(data));
    case DType::UInt32: return std::to_string(element<std::uint32_t>(data));
    case DType::UInt64: return std::to_string(element<std::uint64_t>(data));
    case DType::Float32: return float_text(element<float>(data));
    case DType::Float64: return float_text(element<double>(data));
    default: return float_text(detail::small_float(data, type));
  }
}

/// Prints in two rounds: the first finds the width of the widest element, the second writes.
class ArrayText {
 public:
  explicit ArrayText(const Array& array)
      : array_(array), bytes_(size_of(array.dtype())), whole_(array.size() <= kWholeBelow) {}

  std::string operator()() {
    if (array_.shape().empty()) return text_at(0);
    measure(0, 0);
    write(0, 0);
    return std::move(out_);
  }

 private:
  std::string text_at(std::int64_t index) const {
    return element_text(array_.bytes().data() + static_cast<std::size_t>(index) * bytes_,
                        array_.dtype());
  }

  std::int64_t extent(std::size_t dimension) const { return array_.shape()[dimension]; }
  bool shortens(std::size_t dimension) const { return !whole_ && extent(dimension) > 2 * kEdge; }
  bool skips(std::size_t dimension, std::int64_t i) const {
    return shortens(dimension) && i >= kEdge && i < extent(dimension) - kEdge;
  }

  void measure(std::size_t dimension, std::int64_t offset) {
    for (std::int64_t i = 0; i < extent(dimension); ++i) {
      if (skips(dimension, i)) {
        i = extent(dimension) - kEdge - 1;
        continue;
      }
      const std::int64_t index = offset * extent(dimension) + i;
      if (dimension + 1 < array_.shape().size()) {
        measure(dimension + 1, index);
      } else {
        width_ = std::max(width_, text_at(index).size());
      }
    }
  }

  void separate(std::size_t dimension, bool first) {
    const std::size_t inner = array_.shape().size() - dimension - 1;
    if (first) return;
    if (inner == 0) {
      out_ += ' ';
    } else {
      out_.append(inner, '\n');
      out_.append(dimension + 1, ' ');
    }
  }

  void write(std::size_t dimension, std::int64_t offset) {
    out_ += '[';
    for (std::int64_t i = 0; i < extent(dimension); ++i) {
      separate(dimension, i == 0);
      if (skips(dimension, i)) {
        out_ += "...";
        i = extent(dimension) - kEdge - 1;
        continue;
      }
      const std::int64_t index = offset * extent(dimension) + i;
      if (dimension + 1 < array_.shape().size()) {
        write(dimension + 1, index);
      } else {
        out_ += fmt::format("{:>{}}", text_at(index), width_);
      }
    }
    out_ += ']';
  }

  const Array& array_;
  const std::size_t bytes_;
  const bool whole_;
  std::size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const Array& array) { return ArrayText(array)(); }

namespace detail {

float small_float(const std::byte* data, DType type) {
  switch (type) {
    case DType::Float16: return from_float16(element<std::uint16_t>(data));
    case DType::BFloat16: return from_bfloat16(element<std::uint16_t>(data));
    case DType::Float8E5M2: return from_float8(element<std::uint8_t>(data), 5);
    default: return from_float8(element<std::uint8_t>(data), 4);
  }
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << to_string(array); }

}  // namespace client
}  // namespace kiln
