#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <google/rpc/status.pb.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/server/local_test.h"

namespace kiln::server {

LocalClient::LocalClient(const std::string& path, const std::string& nonce) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
      << std::strerror(errno);
  // A test that waits for what does not come fails instead.
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  channel_ = std::make_unique<Channel>(std::move(socket), Channel::WhenFull::Wait);
  if (nonce.empty()) return;
  v1::LocalRequest request;
  request.mutable_hello()->set_nonce(nonce);
  is_welcome_ = ask(request).has_welcome();
}

void LocalClient::send(const v1::LocalRequest& request, std::span<const int> fds) {
  try {
    channel_->send(request, fds);
  } catch (const Error&) {
    // Hung up on: the next receive() says so.
  }
}

void LocalClient::send_bytes(const std::string& bytes, std::span<const int> fds) const {
  iovec body{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 64)] = {};
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  ::sendmsg(channel_->fd(), &header, MSG_NOSIGNAL);
}

v1::LocalReply LocalClient::receive() {
  v1::LocalReply reply;
  fds_.clear();
  if (!channel_->receive(reply, fds_)) reply.Clear();
  return reply;
}

v1::LocalReply LocalClient::ask(v1::LocalRequest request, std::span<const int> fds) {
  request.set_id(next_id_++);
  send(request, fds);
  v1::LocalReply reply = receive();
  if (reply.kind_case() != v1::LocalReply::KIND_NOT_SET) {
    EXPECT_EQ(reply.id(), request.id());
  }
  return reply;
}

bool LocalClient::is_hung_up_on() {
  char byte = 0;
  return ::recv(channel_->fd(), &byte, 1, 0) == 0;
}

Fd memory_of(const std::string& contents, int seals) {
  Fd memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::write(memory.get(), contents.data(), contents.size()),
            static_cast<ssize_t>(contents.size()));
  EXPECT_EQ(::fcntl(memory.get(), F_ADD_SEALS, seals), 0);
  return memory;
}

std::string mapped(const Fd& memory, size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, memory.get(), 0);
  EXPECT_NE(place, MAP_FAILED);
  std::string contents(static_cast<const char*>(place), bytes);
  ::munmap(place, bytes);
  return contents;
}

grpc::Status status_of(const v1::LocalReply& reply) {
  google::rpc::Status status;
  EXPECT_TRUE(reply.has_failed());
  EXPECT_TRUE(status.ParseFromString(reply.failed()));
  return {static_cast<grpc::StatusCode>(status.code()), status.message(), reply.failed()};
}

}  // namespace kiln::server
