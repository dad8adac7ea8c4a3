#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/server_context.h>

#include "server/clock.h"
#include "server/tensors/sessions.h"

namespace kiln::server {

/// Where every call comes in: who is it, and are we still taking calls.
class Gate {
 public:
  /// An empty token lets everybody in.
  Gate(std::string token, Sessions& sessions) : token_(std::move(token)), sessions_(sessions) {}

  /// Counts a call as active as long as it lives.
  using Pass = std::shared_ptr<void>;
  /// Throws Unauthenticated TOKEN, Unavailable DRAINING.
  Pass enter(const grpc::CallbackServerContext& context);
  /// The same of a caller who is known. Throws Unavailable DRAINING.
  Pass enter();
  int64_t active() const { return active_.load(); }

  /// From now on no call gets in, and streams that stay open by design are told to end.
  void close();
  /// `listener` runs at close(), unless forget() comes first; at once when that was already.
  uint64_t on_close(std::function<void()> listener);
  void forget(uint64_t listener);

 private:
  const std::string token_;
  Sessions& sessions_;
  std::atomic<int64_t> active_{0};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::function<void()>> listeners_;
};

/// When the caller stops waiting, on the monotonic clock.
Clock::time_point deadline_of(const grpc::CallbackServerContext& context);

}  // namespace kiln::server
