#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <kiln/error.h>
#include <kiln/source_location.h>

namespace kiln {
inline namespace client {
namespace detail {

/// What a kernel is sent as that the user did not name.
inline constexpr const char* kUnnamedKernel = "main";

/// Throws an error of the client. `reason` is an upper-case word such as "SPLIT_FACTOR".
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, std::string_view reason, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw_error({.kind = kind,
               .reason = std::string(reason),
               .message = fmt::format(format, std::forward<Args>(args)...)});
}

/// InvalidArgument, with the user's line.
template <typename... Args>
[[noreturn]] void fail_at(const SourceLocation& where, std::string_view reason,
                          fmt::format_string<Args...> format, Args&&... args) {
  throw_error({.kind = ErrorKind::InvalidArgument,
               .reason = std::string(reason),
               .message = fmt::format(format, std::forward<Args>(args)...),
               .file = where.file_name(),
               .line = static_cast<int>(where.line())});
}

/// A kernel in a sentence: its name, or "the kernel" when it has the one that no user gave.
inline std::string called(const std::string& kernel) {
  return kernel == kUnnamedKernel ? "the kernel" : kernel;
}

/// Runs `body`; an error of the client that leaves it has the user's line, unless it has one.
template <typename Body>
decltype(auto) at_line(const SourceLocation& where, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    if (error.line() > 0 || where.line() == 0) throw;
    ErrorFields fields = error.fields();
    fields.file = where.file_name();
    fields.line = static_cast<int>(where.line());
    throw_error(std::move(fields));
  }
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
