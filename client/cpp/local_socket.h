#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <grpcpp/support/status.h>

#include "client/cpp/call_control.h"
#include "client/cpp/shared_memory.h"
#include "kiln/v1/local.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A reply, and the memory that its regions name.
struct LocalAnswer {
  v1::LocalReply reply;
  std::vector<Descriptor> memory;
};

/// The shorter way to a service on this host (local.proto): connections to the socket that the
/// session's first event named. Each call has one for itself while it lasts, so that it waits for
/// its own reply alone, and hanging up cancels it. Thread-safe.
class LocalSocket {
 public:
  /// Nothing when it cannot be reached from here.
  static std::shared_ptr<LocalSocket> open(const v1::LocalSocket& where);

  /// From the first failure on, calls have to take the long way, which finds out what is wrong.
  bool is_open() const { return is_open_.load(); }
  /// Sends a request and waits for its reply. The status is what a call of gRPC would have.
  grpc::Status ask(v1::LocalRequest& request, LocalAnswer& answer, const CallControl& control,
                   std::span<const int> descriptors = {});

 private:
  explicit LocalSocket(const v1::LocalSocket& where) : where_(where) {}
  Descriptor take_connection();
  Descriptor connect() const;

  const v1::LocalSocket where_;
  std::atomic<bool> is_open_{true};
  std::mutex mutex_;
  std::vector<Descriptor> free_;
};

/// Arrays of at most so many bytes travel inside messages.
constexpr std::size_t kLocalInline = std::size_t{16} << 10;

}  // namespace detail
}  // namespace client
}  // namespace kiln
