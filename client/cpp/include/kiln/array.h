#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kiln/source_location.h>
#include <kiln/types.h>

namespace kiln {
inline namespace client {

class Array;
namespace detail {
/// An array over memory that holds its numbers, at least as many as the shape says.
Array array_over(DType type, std::vector<std::int64_t> shape, std::shared_ptr<std::byte[]> memory);
}  // namespace detail

/// Numbers in this process's memory: row-major, compact. A handle: copies share the numbers, so a
/// kernel that is given an Array as an output writes into all of them.
class Array {
 public:
  /// Zeros.
  explicit Array(std::vector<std::int64_t> shape, SourceLocation where = SourceLocation::current())
      : Array(float32, std::move(shape), where) {}
  // A template, so that {} is a shape and never a type.
  template <std::same_as<DType> Type>
  Array(std::vector<std::int64_t> shape, Type type,
        SourceLocation where = SourceLocation::current())
      : Array(type, std::move(shape), where) {}
  /// The values, in row-major order; there must be as many as the shape says.
  template <typename T>
  Array(const std::vector<T>& values, std::vector<std::int64_t> shape,
        SourceLocation where = SourceLocation::current())
      : Array(dtype_of<T>(), std::move(shape), where) {
    check_count(values.size(), where);
    std::copy(values.begin(), values.end(), this->values<T>().begin());
  }

  DType dtype() const { return type_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// Elements.
  std::size_t size() const;
  std::span<std::byte> bytes() const;
  /// The elements. Throws InvalidArgument when T is not the type of the array; uint16_t also reads
  /// float16 and bfloat16, and uint8_t the eight-bit floats.
  template <typename T>
  std::span<T> values(SourceLocation where = SourceLocation::current()) const {
    check_type(dtype_of<T>(), where);
    return {reinterpret_cast<T*>(bytes().data()), size()};
  }

 private:
  friend Array detail::array_over(DType type, std::vector<std::int64_t> shape,
                                  std::shared_ptr<std::byte[]> memory);
  Array(DType type, std::vector<std::int64_t> shape, std::shared_ptr<std::byte[]> memory);
  Array(DType type, std::vector<std::int64_t> shape, const SourceLocation& where);
  void check_count(std::size_t count, const SourceLocation& where) const;
  void check_type(DType type, const SourceLocation& where) const;

  DType type_;
  std::vector<std::int64_t> shape_;
  std::shared_ptr<std::byte[]> storage_;
  std::size_t byte_size_;
};

/// The values as numpy prints them, shortened past 1000 elements.
std::string to_string(const Array& array);
std::ostream& operator<<(std::ostream& out, const Array& array);

namespace detail {
struct RemoteState;
}  // namespace detail

/// Numbers that stay on a device of the service. Freed with the last handle, or when the connection
/// ends.
class RemoteArray {
 public:
  DType dtype() const;
  const std::vector<std::int64_t>& shape() const;
  /// As the service calls it.
  const std::string& id() const;
  /// "cuda:0"; of a kernel's result empty where that is the first device of its target.
  const std::string& device() const;
  /// The numbers, fetched.
  Array download() const;
  /// A copy on a device, "cuda:1", made by the service.
  RemoteArray copy_to(const std::string& device,
                      SourceLocation where = SourceLocation::current()) const;
  /// Overwrites an array of the same type and shape, on any device of the service.
  void copy_to(const RemoteArray& into, SourceLocation where = SourceLocation::current()) const;

  explicit RemoteArray(std::shared_ptr<const detail::RemoteState> state)
      : state_(std::move(state)) {}

 private:
  std::shared_ptr<const detail::RemoteState> state_;
};

}  // namespace client
}  // namespace kiln
