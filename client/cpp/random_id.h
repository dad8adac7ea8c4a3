#pragma once

#include <random>
#include <string>

#include <fmt/format.h>

namespace kiln {
inline namespace client {
namespace detail {

/// 32 hex digits that nobody has chosen before.
inline std::string random_id() {
  std::random_device source;
  std::string id;
  for (int i = 0; i < 4; ++i)
    id += fmt::format("{:08x}", source());
  return id;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
