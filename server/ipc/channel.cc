// Messages over SEQPACKET sockets, which keep their borders. A large one travels as a sealed memfd
// beside a packet of one byte, so no send can block in the middle of a message.
#include "server/ipc/channel.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/socket.h>

#include "runtime/core/error.h"
#include "server/ipc/memfd.h"

namespace kiln::server {

namespace {

// A packet is one byte that says where the message is, then the message when it is here.
constexpr char kInPacket = 'p';
constexpr char kInMemory = 'm';
constexpr size_t kPacketBytes = 64 * 1024;  // well under the kernel's default socket buffer

[[noreturn]] void garbage() {
  fail(ErrorKind::Internal, "PEER_GARBAGE", "the other side sent what is no message");
}

void add_fds(msghdr& header, std::span<const int> fds, std::span<char> control) {
  header.msg_control = control.data();
  header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(part), fds.data(), sizeof(int) * fds.size());
}

std::vector<Fd> take_fds(msghdr& header) {
  std::vector<Fd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

std::pair<Fd, Fd> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail(ErrorKind::ResourceExhausted, "HOST_SOCKETS", "cannot make a socket pair: {}",
         std::strerror(errno));
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

void Channel::send(const google::protobuf::MessageLite& message, std::span<const int> fds) {
  KILN_CHECK(fds.size() < kMaxFds);  // the message itself may need one
  std::string packet(1, kInPacket);
  message.AppendToString(&packet);

  std::vector<int> all(fds.begin(), fds.end());
  Fd memory;
  if (packet.size() > kPacketBytes) {
    memory = make_sealed_memfd("kiln-message", std::string_view(packet).substr(1));
    all.insert(all.begin(), memory.get());
    packet.assign(1, kInMemory);
  }

  iovec body{packet.data(), packet.size()};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
  if (!all.empty()) add_fds(header, all, control);

  // A peer that is gone is an error of this call, not a SIGPIPE of the process.
  const int flags = MSG_NOSIGNAL | (when_full_ == WhenFull::Fail ? MSG_DONTWAIT : 0);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.get(), &header, flags);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    fail(ErrorKind::Unavailable, "PEER_GONE", "the worker cannot be reached: {}",
         std::strerror(errno));
  }
}

bool Channel::receive(google::protobuf::MessageLite& message, std::vector<Fd>& fds, int64_t limit) {
  thread_local std::string packet(kPacketBytes + 1, '\0');
  iovec body{packet.data(), packet.size()};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();

  ssize_t count = 0;
  do {
    count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;

  fds = take_fds(header);
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) garbage();
  if (packet[0] == kInPacket) {
    if (!message.ParseFromArray(packet.data() + 1, static_cast<int>(count - 1))) garbage();
    return true;
  }
  if (packet[0] != kInMemory || fds.empty()) garbage();
  const std::string contents = read_memfd(fds.front(), limit);
  fds.erase(fds.begin());
  if (!message.ParseFromString(contents)) garbage();
  return true;
}

void Channel::shut_down() { ::shutdown(socket_.get(), SHUT_RDWR); }

}  // namespace kiln::server
