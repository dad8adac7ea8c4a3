#pragma once

#include <utility>

#include "runtime/core/error.h"

namespace kiln::tile {

/// Throws Unsupported TILE_FORM with the reason why a kernel is not done on tiles.
template <typename... Args>
[[noreturn]] void refuse_form(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unsupported, "TILE_FORM", format, std::forward<Args>(args)...);
}

}  // namespace kiln::tile
