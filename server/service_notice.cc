// sd_notify(3) without libsystemd, whose manual gives this protocol as stable for programs that do
// not want its library: a datagram to the socket that $NOTIFY_SOCKET names.
#include "server/service_notice.h"

#include <cstdlib>
#include <cstring>

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/ipc/fd.h"

namespace kiln::server {

void notify_service_manager(const std::string& state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), size) < 0) {
    spdlog::warn("the service manager cannot be told {}: {}", state, std::strerror(errno));
  }
}

}  // namespace kiln::server
