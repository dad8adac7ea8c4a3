#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::language {

/// How many bytes the UTF-8 character at the front has, 0 when there is none. `text` is not empty.
size_t utf8_length(std::string_view text);

/// The name with what would spoil a message (control characters, broken UTF-8) as "_".
std::string harmless(std::string_view name);

}  // namespace kiln::language
