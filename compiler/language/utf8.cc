// How many bytes the first character of a text has; 0 where none begins. Overlong forms, surrogates
// and what is past U+10FFFF are none (RFC 3629).
#include "compiler/language/utf8.h"

namespace kiln::language {

size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0x80;
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string harmless(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    const size_t length = utf8_length(name);
    const auto first = static_cast<unsigned char>(name[0]);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      result += '_';
      name.remove_prefix(1);
    } else {
      result += name.substr(0, length);
      name.remove_prefix(length);
    }
  }
  return result;
}

}  // namespace kiln::language
