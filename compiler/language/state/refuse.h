#pragma once

#include <string_view>
#include <utility>

#include "runtime/core/error.h"

namespace kiln::language {

/// Throws InvalidArgument.
template <typename... Args>
[[noreturn]] void refuse(std::string_view reason, fmt::format_string<Args...> format,
                         Args&&... args) {
  fail(ErrorKind::InvalidArgument, reason, format, std::forward<Args>(args)...);
}

}  // namespace kiln::language
