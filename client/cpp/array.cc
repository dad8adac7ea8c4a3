// Arrays in the client's memory: row-major, compact, shared by their copies. Sizes are checked
// before memory is asked for, and types before bits are taken for another's.
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

#include <kiln/array.h>

#include "client/cpp/array_bytes.h"
#include "client/cpp/fail.h"
#include "client/cpp/shared_memory.h"

namespace kiln {
inline namespace client {
namespace {

/// Whether T may stand for the bits of `type`.
bool same_bits(DType t, DType type) {
  if (t == type) return true;
  if (t == uint16) return type == float16 || type == bfloat16;
  if (t == uint8) return type == float8_e4m3fn || type == float8_e5m2;
  return t == int8 && type == boolean;
}

}  // namespace

std::size_t detail::bytes_of(DType type, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) {
      fail(ErrorKind::InvalidArgument, "SHAPE",
           "dimension {} of an array is {}, but must be at least 0", d, shape[d]);
    }
  }
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      fail(ErrorKind::ResourceExhausted, "SIZE_OVERFLOW",
           "an array of shape ({}) has more bytes than memory can hold", fmt::join(shape, ", "));
    }
  }
  return static_cast<std::size_t>(bytes);
}

Array::Array(DType type, std::vector<std::int64_t> shape, const SourceLocation& where)
    : type_(type),
      shape_(std::move(shape)),
      byte_size_(detail::at_line(where, [&] { return detail::bytes_of(type, shape_); })) {
  storage_ = detail::zeroed_memory(byte_size_);
}

Array::Array(DType type, std::vector<std::int64_t> shape, std::shared_ptr<std::byte[]> memory)
    : type_(type),
      shape_(std::move(shape)),
      storage_(std::move(memory)),
      byte_size_(detail::bytes_of(type, shape_)) {}

Array detail::array_over(DType type, std::vector<std::int64_t> shape,
                         std::shared_ptr<std::byte[]> memory) {
  return {type, std::move(shape), std::move(memory)};
}

std::size_t Array::size() const { return byte_size_ / size_of(type_); }

std::span<std::byte> Array::bytes() const { return {storage_.get(), byte_size_}; }

void Array::check_count(std::size_t count, const SourceLocation& where) const {
  if (count != size()) {
    detail::fail_at(where, "VALUE_COUNT", "an array of shape ({}) has {} values, but got {}",
                    fmt::join(shape_, ", "), size(), count);
  }
}

void Array::check_type(DType type, const SourceLocation& where) const {
  if (!same_bits(type, type_)) {
    detail::fail_at(where, "VALUE_TYPE", "the array is {}, but is read as {}", name_of(type_),
                    name_of(type));
  }
}

}  // namespace client
}  // namespace kiln
