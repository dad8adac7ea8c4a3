#pragma once

#include <string>
#include <string_view>

namespace kiln::server {

/// The trace id in a W3C traceparent, 32 hexadecimal digits; empty for one that is malformed, which
/// counts as none.
///
///   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" ->
///   "0af7651916cd43dd8448eb211c80319c"
inline std::string trace_id_of(std::string_view traceparent) {
  constexpr size_t kLength = 55;  // of version 00; later ones may have more behind another dash
  const auto is_hex = [&](size_t begin, size_t count) {
    const std::string_view part = traceparent.substr(begin, count);
    return part.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  };
  const auto is_zero = [&](size_t begin, size_t count) {
    return traceparent.substr(begin, count).find_first_not_of('0') == std::string_view::npos;
  };
  if (traceparent.size() < kLength) return "";
  const std::string_view version = traceparent.substr(0, 2);
  const bool has_end = version == "00"
                           ? traceparent.size() == kLength
                           : traceparent.size() == kLength || traceparent[kLength] == '-';
  const bool has_dashes =
      traceparent[2] == '-' && traceparent[35] == '-' && traceparent[52] == '-' && has_end;
  const bool has_digits = is_hex(0, 2) && is_hex(3, 32) && is_hex(36, 16) && is_hex(53, 2);
  if (!has_dashes || !has_digits || version == "ff" || is_zero(3, 32) || is_zero(36, 16)) return "";
  return std::string(traceparent.substr(3, 32));
}

}  // namespace kiln::server
