#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

/// Element types. The numbers are those of the wire (kiln/v1/types.proto) and of saved artifacts.
enum class DType : uint8_t {
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

/// "float32", as numpy and ml_dtypes write it.
std::string_view name_of(DType type);
std::optional<DType> find_dtype(std::string_view name);
/// The type with this number, or nothing when there is none.
std::optional<DType> dtype_from_number(int number);

/// Bytes of an element; a bool takes one.
int size_of(DType type);
/// Bits that carry the value; a bool has one.
int bits_of(DType type);
bool is_float(DType type);
bool is_signed_int(DType type);
bool is_unsigned_int(DType type);
/// Signed or unsigned; bool is not an integer.
bool is_int(DType type);

}  // namespace kiln

// So that fmt prints a type by its name.
#include <fmt/format.h>
template <>
struct fmt::formatter<kiln::DType> : fmt::formatter<std::string_view> {
  auto format(kiln::DType type, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(kiln::name_of(type), context);
  }
};
