#pragma once

#include <bit>
#include <cstdint>

#include "compiler/ir/expr.h"
#include "compiler/ir/gpu_arch.h"

namespace kiln::ir {

/// What keeps its order where memory is swizzled: as much as a thread moves at once.
inline constexpr int64_t kSwizzleBytes = 16;

/// Of shared memory: 16 bytes change places inside of the 128 that all banks give at once, by their
/// number XOR that of the `every` elements they are in.
///
///   float16, every 64: element e is at e ^ e / 64 % 8 * 8
struct Swizzle {
  int from = 0;  // the lowest bit of an element that says where, and the lowest that changes
  int to = 0;
  static constexpr int64_t kGroups = kBanks * kBankBytes / kSwizzleBytes;

  int64_t operator()(int64_t element) const {
    return element ^ ((element >> from & (kGroups - 1)) << to);
  }
  /// Elements after which all begins again: of two places so far apart, one is moved as the other.
  int64_t period() const { return kGroups << from; }
  /// Elements that change places among each other, and begin at a multiple of it.
  int64_t span() const { return kGroups << to; }
};

inline bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

/// Whether elements of the type can be exchanged so.
inline bool may_swizzle(DType type, int64_t every) {
  return is_power_of_two(every) && every * size_of(type) >= kBanks * kBankBytes;
}

/// Of elements of so many bytes.
inline Swizzle swizzle_of(int64_t bytes, int64_t every) {
  const auto log2 = [](int64_t value) { return std::countr_zero(static_cast<uint64_t>(value)); };
  return {.from = log2(every), .to = log2(kSwizzleBytes / bytes)};
}
/// Of a buffer that has one.
inline Swizzle swizzle_of(const Buffer& buffer) {
  return swizzle_of(size_of(buffer.type), buffer.swizzle);
}

/// Where an element lies, from the first one of the buffer on.
inline int64_t place_in_memory(const Buffer& buffer, int64_t element) {
  return buffer.swizzle == 0 ? element : swizzle_of(buffer)(element);
}
/// Elements of memory that so many of the buffer take up.
inline int64_t elements_in_memory(const Buffer& buffer, int64_t elements) {
  if (buffer.swizzle == 0) return elements;
  const int64_t span = swizzle_of(buffer).span();
  return (elements + span - 1) / span * span;
}

}  // namespace kiln::ir
