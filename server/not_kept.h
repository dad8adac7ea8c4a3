#pragma once

#include <filesystem>
#include <string>

#include <fmt/format.h>

namespace kiln::server {

/// Why something is not kept on disk, in a sentence with the way out.
inline std::string not_kept(const std::string& what, const std::filesystem::path& where,
                            const std::string& why) {
  return fmt::format(
      "{} are not kept: {}: {}; make room, let kilnd write there, or name another folder with "
      "--cache-dir",
      what, where.string(), why);
}

}  // namespace kiln::server
