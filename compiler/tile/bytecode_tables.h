#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"

namespace kiln::tile {

/// Bytes as the format has them: numbers in groups of 7 bits, the lowest first, or in a fixed
/// width, the lowest byte first.
class Bytes {
 public:
  void byte(uint8_t value) { text_.push_back(static_cast<char>(value)); }
  void number(uint64_t value);
  void fixed(uint64_t value, int width);
  void list(std::span<const int64_t> values, int width);
  void append(std::string_view bytes) { text_.append(bytes); }
  void pad_to(size_t alignment);
  size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Entries by number, each once.
class Table {
 public:
  uint64_t operator[](std::string entry);
  /// Their count, where each begins, then the entries.
  void write(Bytes& out, int index_width) const;

 private:
  std::vector<std::string> entries_;
  std::map<std::string, uint64_t> numbers_;
};

/// A version of the format, 13.1 or 13.3, by its last number.
enum class Version : uint8_t { First = 1, WithFastSums = 3 };

/// Stands for an extent or a stride that the call brings.
constexpr int64_t kOpen = INT64_MIN;

/// The types of a module. Each is an entry, by number.
class TypeTable {
 public:
  explicit TypeTable(Version version) : version_(version) {}

  uint64_t element(DType type);
  /// Of a float32 in memory what tensor cores read.
  uint64_t tensor_float();
  uint64_t token();
  uint64_t tile(uint64_t element, std::span<const int64_t> shape);
  uint64_t pointer(uint64_t element);
  uint64_t tensor(uint64_t element, std::span<const int64_t> shape,
                  std::span<const int64_t> strides);
  /// Beyond the tensor it is 0.
  uint64_t partition(uint64_t tensor, std::span<const int64_t> tile,
                     std::span<const int64_t> order);
  uint64_t function(std::span<const uint64_t> parameters);

  const Table& table() const { return table_; }

 private:
  const Version version_;
  Table table_;
};

}  // namespace kiln::tile
