#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kiln {

/// Who must act. The numbers are those of the wire (kiln/v1/error.proto).
enum class ErrorKind : int {
  InvalidArgument = 1,
  Unsupported = 2,
  NotFound = 3,
  HandleLost = 4,
  ResourceExhausted = 5,
  Unavailable = 6,
  DeadlineExceeded = 7,
  Cancelled = 8,
  Unauthenticated = 9,
  Internal = 10,
};

/// "InvalidArgument", ...
std::string_view name_of(ErrorKind kind);

/// Where the user wrote what an error is about. Line 0 is unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
};

/// The one exception of Kiln. `what()` is the message alone, one sentence in the user's names.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string reason, std::string message)
      : kind_(kind), reason_(std::move(reason)), message_(std::move(message)) {}

  ErrorKind kind() const { return kind_; }
  /// A stable upper-case word, which clients may test.
  const std::string& reason() const { return reason_; }
  const std::string& message() const { return message_; }
  /// Where it happened, innermost first: "at step 3: split(k, factor=0)", "in stage C".
  const std::vector<std::string>& notes() const { return notes_; }
  const SourceLocation& location() const { return location_; }
  const char* what() const noexcept override { return message_.c_str(); }

  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  /// Keeps the first location given: the innermost is the most exact.
  void set_location(SourceLocation location) {
    if (location_.line == 0) location_ = std::move(location);
  }

 private:
  ErrorKind kind_;
  std::string reason_;
  std::string message_;
  std::vector<std::string> notes_;
  SourceLocation location_;
};

/// Throws an Error. `reason` is an upper-case word such as "SPLIT_FACTOR".
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, std::string_view reason, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw Error(kind, std::string(reason), fmt::format(format, std::forward<Args>(args)...));
}

/// Runs `body`; an Error that leaves it carries `note` as well.
template <typename Body>
decltype(auto) annotate(const std::string& note, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    error.add_note(note);
    throw;
  }
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

/// What only a bug of ours can make false. Throws an Internal error.
#define KILN_CHECK(condition)                                               \
  do {                                                                      \
    if (!(condition)) ::kiln::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

}  // namespace kiln
