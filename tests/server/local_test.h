#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/v1/local.pb.h"
#include "server/ipc/channel.h"
#include "tests/server/service_test.h"

namespace kiln::server {

/// A connection to a local socket, as a client has it.
class LocalClient {
 public:
  /// Connects; `nonce` empty: says nothing yet.
  LocalClient(const std::string& path, const std::string& nonce);

  /// Whether it was welcomed.
  bool is_welcome() const { return is_welcome_; }
  void send(const v1::LocalRequest& request, std::span<const int> fds = {});
  /// A packet of these bytes.
  void send_bytes(const std::string& bytes, std::span<const int> fds = {}) const;
  /// The next reply; its descriptors are in fds(). Without a kind: the daemon has hung up.
  v1::LocalReply receive();
  v1::LocalReply ask(v1::LocalRequest request, std::span<const int> fds = {});
  std::vector<Fd>& fds() { return fds_; }
  bool is_hung_up_on();
  void hang_up() { channel_.reset(); }

 private:
  std::unique_ptr<Channel> channel_;
  std::vector<Fd> fds_;
  uint64_t next_id_ = 1;
  bool is_welcome_ = false;
};

/// A memfd with these contents and seals.
Fd memory_of(const std::string& contents, int seals);
/// The first bytes of a memfd, mapped as clients do.
std::string mapped(const Fd& memory, size_t bytes);
/// What a reply that failed carries.
grpc::Status status_of(const v1::LocalReply& reply);

}  // namespace kiln::server
