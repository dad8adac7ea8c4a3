#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace kiln {
inline namespace client {

/// Element types. The numbers are those of the wire.
enum class DType : std::uint8_t {
  Bool = 1,
  Int8 = 2,
  Int16 = 3,
  Int32 = 4,
  Int64 = 5,
  UInt8 = 6,
  UInt16 = 7,
  UInt32 = 8,
  UInt64 = 9,
  Float16 = 10,
  BFloat16 = 11,
  Float32 = 12,
  Float64 = 13,
  Float8E4M3FN = 14,
  Float8E5M2 = 15,
};

inline constexpr DType boolean = DType::Bool;
inline constexpr DType int8 = DType::Int8;
inline constexpr DType int16 = DType::Int16;
inline constexpr DType int32 = DType::Int32;
inline constexpr DType int64 = DType::Int64;
inline constexpr DType uint8 = DType::UInt8;
inline constexpr DType uint16 = DType::UInt16;
inline constexpr DType uint32 = DType::UInt32;
inline constexpr DType uint64 = DType::UInt64;
inline constexpr DType float16 = DType::Float16;
inline constexpr DType bfloat16 = DType::BFloat16;
inline constexpr DType float32 = DType::Float32;
inline constexpr DType float64 = DType::Float64;
inline constexpr DType float8_e4m3fn = DType::Float8E4M3FN;
inline constexpr DType float8_e5m2 = DType::Float8E5M2;

/// "float32", as numpy writes it.
std::string_view name_of(DType type);
std::optional<DType> find_dtype(std::string_view name);
/// Bytes of an element.
std::size_t size_of(DType type);

/// The element type that holds values of the C++ type T.
template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return DType::Bool;
  } else if constexpr (std::is_same_v<T, float>) {
    return DType::Float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::Float64;
  } else {
    static_assert(std::is_integral_v<T>, "an array holds bool, integers, float or double");
    constexpr int log2_bytes = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    constexpr DType smallest = std::is_signed_v<T> ? DType::Int8 : DType::UInt8;
    return static_cast<DType>(static_cast<int>(smallest) + log2_bytes);
  }
}

}  // namespace client
}  // namespace kiln
