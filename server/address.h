#pragma once

#include <string>
#include <string_view>

namespace kiln::server {

/// HOST:PORT, taken apart. The host of an IPv6 address is without its brackets.
struct HostPort {
  std::string host;
  int port = 0;
};

/// Throws InvalidArgument LISTEN, which says what the address `is_not`.
HostPort parse_host_port(const std::string& address,
                         std::string_view is_not = "neither unix:PATH nor HOST:PORT");

/// Names that lead nowhere else; another name may, and is treated as if it did.
bool is_loopback(const std::string& host);

}  // namespace kiln::server
