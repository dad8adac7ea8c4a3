#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include "kiln/v1/service.grpc.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The stream that stands for this client's life: the service frees its tensors when it ends.
///
/// Keeps itself alive until the stream has ended, since gRPC calls back until then.
class SessionStream : public grpc::ClientReadReactor<v1::SessionEvent>,
                      public std::enable_shared_from_this<SessionStream> {
 public:
  /// `token` may be empty.
  void start(v1::DaemonService::Stub& stub, const std::string& token);

  /// Waits for the id. Returns the status with which the stream ended instead, if it did.
  grpc::Status wait_for_id(std::string& id);
  /// Nothing before the service answered, and after the end.
  std::string id_if_open() const;
  bool ended() const;
  /// Ends the stream and waits until it has.
  void stop();

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext context_;
  v1::SessionRequest request_;
  v1::SessionEvent event_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string id_;
  bool ended_ = false;
  grpc::Status status_;
  std::shared_ptr<SessionStream> self_;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
