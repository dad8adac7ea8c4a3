// Packets to a service on this host: 'p' and a message, or 'm' where the message, too large for a
// packet, travels as memory. One request is under way on a connection at a time.
#include "client/cpp/local_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <google/rpc/status.pb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client/cpp/packet_wait.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

using std::chrono::system_clock;

constexpr std::size_t kPacket = std::size_t{64} << 10;  // what the service reads at once
constexpr std::size_t kDescriptors = 32;                // with one message
using Control = std::array<char, CMSG_SPACE(sizeof(int) * kDescriptors)>;
// For the service to say itself that the time is over.
constexpr std::chrono::milliseconds kSpare{500};

void add_rights(msghdr& header, std::span<const int> descriptors, Control& control) {
  header.msg_control = control.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
}

std::vector<Descriptor> rights_of(msghdr& header) {
  std::vector<Descriptor> all;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      all.emplace_back(number);
    }
  }
  return all;
}

bool send(int socket, const v1::LocalRequest& request, std::span<const int> descriptors) {
  thread_local std::string packet;
  packet.assign(1, 'p');
  request.AppendToString(&packet);
  std::vector<int> all(descriptors.begin(), descriptors.end());
  Descriptor memory;
  if (packet.size() > kPacket) {
    memory = sealed_copy(std::as_bytes(std::span(packet).subspan(1)));
    all.insert(all.begin(), memory.get());
    packet.assign(1, 'm');
  }
  iovec body{packet.data(), packet.size()};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  alignas(cmsghdr) Control control{};
  if (!all.empty()) add_rights(header, all, control);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

/// The message in the memory that came first, which is taken out.
bool read_from_memory(LocalAnswer& answer) {
  if (answer.memory.empty()) return false;
  const Descriptor memory = std::move(answer.memory.front());
  answer.memory.erase(answer.memory.begin());
  struct stat status {};
  if (::fstat(memory.get(), &status) != 0 || status.st_size <= 0) return false;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const std::shared_ptr<std::byte[]> contents = mapped_memory(memory, bytes);
  return answer.reply.ParseFromArray(contents.get(), static_cast<int>(bytes));
}

bool receive(int socket, LocalAnswer& answer) {
  thread_local std::string packet(kPacket + 1, '\0');
  iovec body{packet.data(), packet.size()};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  alignas(cmsghdr) Control control;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  thread_local PacketWait wait;
  const ssize_t count = wait.receive(socket, header, MSG_CMSG_CLOEXEC);
  if (count <= 0) return false;
  answer.memory = rights_of(header);
  if (packet[0] == 'm') return read_from_memory(answer);
  return packet[0] == 'p' &&
         answer.reply.ParseFromArray(packet.data() + 1, static_cast<int>(count - 1));
}

grpc::Status status_of(const std::string& failed) {
  google::rpc::Status status;
  status.ParseFromString(failed);
  return {static_cast<grpc::StatusCode>(status.code()), status.message(), failed};
}

bool was_cancelled(const CallControl& control) {
  if (!control.cancel) return false;
  const std::lock_guard lock(control.cancel->mutex);
  return control.cancel->cancelled;
}

/// Sets for how long the service may take: on its side, and here in case it does not answer.
void set_limit(int socket, v1::LocalRequest& request, const CallControl& control) {
  if (!control.deadline) return;
  const auto left = std::max(*control.deadline - system_clock::now(), system_clock::duration(1));
  request.set_timeout(std::chrono::duration<double>(left).count());
  const auto most = std::chrono::duration_cast<std::chrono::microseconds>(left + kSpare).count();
  const timeval limit{.tv_sec = most / 1'000'000, .tv_usec = most % 1'000'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

}  // namespace

std::shared_ptr<LocalSocket> LocalSocket::open(const v1::LocalSocket& where) {
  if (where.path().empty() || where.path().size() >= sizeof sockaddr_un{}.sun_path) return nullptr;
  std::shared_ptr<LocalSocket> local(new LocalSocket(where));
  Descriptor first = local->connect();
  if (!first) return nullptr;
  local->free_.push_back(std::move(first));
  return local;
}

Descriptor LocalSocket::connect() const {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  where_.path().copy(address.sun_path, sizeof address.sun_path - 1);
  v1::LocalRequest request;
  request.mutable_hello()->set_nonce(where_.nonce());
  LocalAnswer answer;
  const bool is_welcome =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(socket.get(), request, {}) && receive(socket.get(), answer) &&
      answer.reply.has_welcome();
  return is_welcome ? std::move(socket) : Descriptor();
}

Descriptor LocalSocket::take_connection() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Descriptor socket = std::move(free_.back());
      free_.pop_back();
      return socket;
    }
  }
  return connect();
}

grpc::Status LocalSocket::ask(v1::LocalRequest& request, LocalAnswer& answer,
                              const CallControl& control, std::span<const int> descriptors) {
  Descriptor socket = take_connection();
  if (socket) set_limit(socket.get(), request, control);
  bool answered = false;
  int error = 0;
  {
    // The service sees the end as hanging up.
    const Cancellable cancellable(control, [&] { ::shutdown(socket.get(), SHUT_RDWR); });
    answered = socket && send(socket.get(), request, descriptors) && receive(socket.get(), answer);
    error = errno;
  }
  if (!answered) {
    if (was_cancelled(control)) return grpc::Status::CANCELLED;
    if (control.deadline && error == EAGAIN) {
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "the time is over"};
    }
    is_open_.store(false);
    return {grpc::StatusCode::UNAVAILABLE, "the service has hung up"};
  }
  // One with a limit of its own is not worth keeping.
  if (!control.deadline && !was_cancelled(control)) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(socket));
  }
  return answer.reply.has_failed() ? status_of(answer.reply.failed()) : grpc::Status::OK;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
