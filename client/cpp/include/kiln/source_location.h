#pragma once

#include <cstdint>

namespace kiln {
inline namespace client {

/// A line of the user's program. As a default argument, SourceLocation::current() is the line of
/// the call. (std::source_location would be the same, but not every compiler of C++20 has it.)
class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          std::uint32_t line = __builtin_LINE()) {
    return SourceLocation(file, line);
  }

  /// For callers whose own lines say nothing to their users: errors then name none.
  static constexpr SourceLocation none() { return SourceLocation("", 0); }

  constexpr const char* file_name() const { return file_; }
  constexpr std::uint32_t line() const { return line_; }

 private:
  constexpr SourceLocation(const char* file, std::uint32_t line) : file_(file), line_(line) {}

  const char* file_;
  std::uint32_t line_;
};

}  // namespace client
}  // namespace kiln
