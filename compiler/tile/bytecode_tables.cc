// Numbers, tables and types of Tile IR's bytecode.
#include "compiler/tile/bytecode_tables.h"

#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

// What the first byte of a type says.
enum TypeTag : uint8_t {
  kBool = 0x00,
  kInt8 = 0x01,
  kInt32 = 0x03,
  kInt64 = 0x04,
  kFloat16 = 0x05,
  kBFloat16 = 0x06,
  kFloat32 = 0x07,
  kTensorFloat32 = 0x08,
  kFloat8E4M3FN = 0x0a,
  kFloat8E5M2 = 0x0b,
  kPointer = 0x0c,
  kTile = 0x0d,
  kTensorView = 0x0e,
  kPartitionView = 0x0f,
  kFunction = 0x10,
  kToken = 0x11,
};

constexpr uint8_t kPadding = 0xcb;

TypeTag tag_of(DType type) {
  switch (type) {
    case DType::Bool: return kBool;
    case DType::Int8:
    case DType::UInt8: return kInt8;
    case DType::Int32: return kInt32;
    case DType::Int64: return kInt64;
    case DType::Float16: return kFloat16;
    case DType::BFloat16: return kBFloat16;
    case DType::Float32: return kFloat32;
    case DType::Float8E4M3FN: return kFloat8E4M3FN;
    case DType::Float8E5M2: return kFloat8E5M2;
    default: fail(ErrorKind::Internal, "TILE_TYPE", "there are no tiles of {}", type);
  }
}

}  // namespace

void Bytes::number(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    byte(static_cast<uint8_t>(value | 0x80));
  byte(static_cast<uint8_t>(value));
}

void Bytes::fixed(uint64_t value, int width) {
  for (int i = 0; i < width; ++i)
    byte(static_cast<uint8_t>(value >> (8 * i)));
}

void Bytes::list(std::span<const int64_t> values, int width) {
  number(values.size());
  for (const int64_t value : values)
    fixed(static_cast<uint64_t>(value), width);
}

void Bytes::pad_to(size_t alignment) {
  while (size() % alignment != 0)
    byte(kPadding);
}

uint64_t Table::operator[](std::string entry) {
  const auto [at, is_new] = numbers_.try_emplace(entry, entries_.size());
  if (is_new) entries_.push_back(std::move(entry));
  return at->second;
}

void Table::write(Bytes& out, int index_width) const {
  out.number(entries_.size());
  out.pad_to(static_cast<size_t>(index_width));
  uint64_t begin = 0;
  for (const std::string& entry : entries_) {
    out.fixed(begin, index_width);
    begin += entry.size();
  }
  for (const std::string& entry : entries_)
    out.append(entry);
}

uint64_t TypeTable::element(DType type) {
  return table_[std::string(1, static_cast<char>(tag_of(type)))];
}

uint64_t TypeTable::tensor_float() {
  return table_[std::string(1, static_cast<char>(kTensorFloat32))];
}

uint64_t TypeTable::token() { return table_[std::string(1, static_cast<char>(kToken))]; }

uint64_t TypeTable::tile(uint64_t element, std::span<const int64_t> shape) {
  Bytes out;
  out.byte(kTile);
  out.number(element);
  out.list(shape, 8);
  return table_[out.text()];
}

uint64_t TypeTable::pointer(uint64_t element) {
  Bytes out;
  out.byte(kPointer);
  out.number(element);
  return table_[out.text()];
}

uint64_t TypeTable::tensor(uint64_t element, std::span<const int64_t> shape,
                           std::span<const int64_t> strides) {
  Bytes out;
  out.byte(kTensorView);
  out.number(element);
  out.list(shape, 8);
  out.list(strides, 8);
  return table_[out.text()];
}

uint64_t TypeTable::partition(uint64_t tensor, std::span<const int64_t> tile,
                              std::span<const int64_t> order) {
  constexpr uint8_t kIsPadded = 1;
  constexpr uint8_t kByZero = 0;
  Bytes out;
  out.byte(kPartitionView);
  // What a type may have or not is said in front since 13.3.
  const bool is_said_first = version_ >= Version::WithFastSums;
  if (is_said_first) out.byte(kIsPadded);
  out.list(tile, 4);
  out.number(tensor);
  out.list(order, 4);
  if (!is_said_first) out.byte(kIsPadded);
  out.byte(kByZero);
  return table_[out.text()];
}

uint64_t TypeTable::function(std::span<const uint64_t> parameters) {
  Bytes out;
  out.byte(kFunction);
  out.number(parameters.size());
  for (const uint64_t parameter : parameters)
    out.number(parameter);
  out.number(0);  // results
  return table_[out.text()];
}

}  // namespace kiln::tile
