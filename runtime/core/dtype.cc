// The table of element types. The order is that of the enumeration, which is the wire's, so a
// number is a position.
#include "runtime/core/dtype.h"

#include <array>

namespace kiln {
namespace {

struct Entry {
  DType type;
  std::string_view name;
  int bytes;
  int bits;
};

constexpr std::array<Entry, 15> kTypes = {{
    {DType::Bool, "bool", 1, 1},
    {DType::Int8, "int8", 1, 8},
    {DType::Int16, "int16", 2, 16},
    {DType::Int32, "int32", 4, 32},
    {DType::Int64, "int64", 8, 64},
    {DType::UInt8, "uint8", 1, 8},
    {DType::UInt16, "uint16", 2, 16},
    {DType::UInt32, "uint32", 4, 32},
    {DType::UInt64, "uint64", 8, 64},
    {DType::Float16, "float16", 2, 16},
    {DType::BFloat16, "bfloat16", 2, 16},
    {DType::Float32, "float32", 4, 32},
    {DType::Float64, "float64", 8, 64},
    {DType::Float8E4M3FN, "float8_e4m3fn", 1, 8},
    {DType::Float8E5M2, "float8_e5m2", 1, 8},
}};

const Entry& entry(DType type) { return kTypes[static_cast<size_t>(type) - 1]; }

}  // namespace

std::string_view name_of(DType type) { return entry(type).name; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const Entry& candidate : kTypes) {
    if (candidate.name == name) return candidate.type;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_number(int number) {
  if (number < 1 || number > static_cast<int>(kTypes.size())) return std::nullopt;
  return static_cast<DType>(number);
}

int size_of(DType type) { return entry(type).bytes; }
int bits_of(DType type) { return entry(type).bits; }

bool is_float(DType type) { return type >= DType::Float16; }
bool is_signed_int(DType type) { return type >= DType::Int8 && type <= DType::Int64; }
bool is_unsigned_int(DType type) { return type >= DType::UInt8 && type <= DType::UInt64; }
bool is_int(DType type) { return is_signed_int(type) || is_unsigned_int(type); }

}  // namespace kiln
