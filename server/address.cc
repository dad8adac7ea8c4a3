// HOST:PORT as operators write it.
//
//   [::1]:9090  ->  host ::1, port 9090;  host:80000 is refused
#include "server/address.h"

#include <charconv>

#include "runtime/core/error.h"

namespace kiln::server {

HostPort parse_host_port(const std::string& address, std::string_view is_not) {
  constexpr int kLastPort = 65535;
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (port.empty() || port.find_first_not_of("0123456789") != std::string::npos) {
    fail(ErrorKind::InvalidArgument, "LISTEN", "the address {} is {}", address, is_not);
  }
  HostPort place{.host = address.substr(0, colon)};
  const auto end = std::from_chars(port.data(), port.data() + port.size(), place.port);
  if (end.ec != std::errc() || place.port > kLastPort) {
    fail(ErrorKind::InvalidArgument, "LISTEN", "the port of {} is {}, but must be at most {}",
         address, port, kLastPort);
  }
  if (place.host.size() > 1 && place.host.front() == '[' && place.host.back() == ']') {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  return place;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

}  // namespace kiln::server
