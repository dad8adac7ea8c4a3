#pragma once

#include <span>
#include <utility>
#include <vector>

#include <google/protobuf/message_lite.h>

#include "server/ipc/fd.h"

namespace kiln::server {

/// A connected pair of SEQPACKET sockets, closed on exec.
std::pair<Fd, Fd> make_socket_pair();

/// Messages with file descriptors over one end of a socket pair. A message that does not fit a
/// packet travels in a sealed memfd, so there is no limit that a caller has to know. Any thread may
/// send; one receives.
class Channel {
 public:
  enum class WhenFull {
    Wait,
    Fail,  // for the front end, which must never wait for a worker
  };
  /// What may travel with one message.
  static constexpr size_t kMaxFds = 32;
  /// A worker is not trusted: without a limit its message could take all memory of the daemon.
  static constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;

  Channel(Fd socket, WhenFull when_full) : socket_(std::move(socket)), when_full_(when_full) {}

  /// Throws Unavailable PEER_GONE when the other end is gone, or full with WhenFull::Fail.
  void send(const google::protobuf::MessageLite& message, std::span<const int> fds = {});

  /// Waits for a message; false when the other end is gone. Throws Internal PEER_GARBAGE on
  /// anything that is no message, or of more bytes than the limit.
  bool receive(google::protobuf::MessageLite& message, std::vector<Fd>& fds,
               int64_t limit = kMaxMessageBytes);

  /// Makes receive() return false on both ends.
  void shut_down();

  int fd() const { return socket_.get(); }

 private:
  Fd socket_;
  WhenFull when_full_;
};

}  // namespace kiln::server
