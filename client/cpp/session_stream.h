#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/client_context.h>

#include "client/cpp/local_socket.h"
#include "kiln/v1/service.grpc.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// What each call says of its caller.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The stream that stands for this client's life: the service frees its tensors when it ends.
///
/// Read by a thread of its own. gRPC's callbacks would do without one, but they may hold the last
/// reference to a channel, and a channel that ends on gRPC's own thread takes the process with it.
class SessionStream {
 public:
  /// Opens the stream, without waiting for it.
  SessionStream(v1::DaemonService::Stub& stub, const Metadata& metadata);
  /// Ends the stream.
  ~SessionStream();
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  /// Waits for the id. Returns the status with which the stream ended instead, if it did.
  grpc::Status wait_for_id(std::string& id);
  /// Nothing before the service answered, and after the end.
  std::string id_if_open() const;
  /// The shorter way that came with the id; nothing where there is none (any more).
  std::shared_ptr<LocalSocket> local_if_open() const;
  bool ended() const;

 private:
  void read(v1::DaemonService::Stub& stub);

  grpc::ClientContext context_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string id_;
  std::shared_ptr<LocalSocket> local_;
  bool ended_ = false;
  grpc::Status status_;
  std::thread thread_;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
