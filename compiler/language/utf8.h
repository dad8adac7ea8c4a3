#pragma once

#include <cstddef>
#include <string_view>

namespace kiln::language {

/// How many bytes the UTF-8 character at the front has, 0 when there is none. `text` is not empty.
size_t utf8_length(std::string_view text);

}  // namespace kiln::language
