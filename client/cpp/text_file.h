#pragma once

#include <string>
#include <string_view>

namespace kiln {
inline namespace client {
namespace detail {

/// The whole file. Throws NotFound FILE.
std::string read_text(const std::string& path);
/// Replaces the file. Throws NotFound FILE.
void write_text(const std::string& path, std::string_view text);

}  // namespace detail
}  // namespace client
}  // namespace kiln
