#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/clock.h"

namespace kiln::server {

/// Who a call is for. What belongs to one tenant no other can see, use or end; a tenant's share of
/// the service is divided between its clients.
struct Principal {
  std::string tenant;  // empty: of a daemon that tells nobody apart
  std::string client;  // one of the tenant's connections
  auto operator<=>(const Principal&) const = default;
};

enum class Priority : uint8_t { Low, Normal, High };

/// What is known of a call before its work begins.
struct Caller {
  Principal principal;
  Priority priority = Priority::Normal;
  std::string trace;  // the id of the trace that the call is part of; empty: none
  Clock::time_point deadline = Clock::time_point::max();
};

/// Of work that goes on when the one who asked no longer waits.
inline Caller without_deadline(Caller caller) {
  caller.deadline = Clock::time_point::max();
  return caller;
}

/// A session is one client, however its calls come; gRPC calls all clients of a unix socket alike.
inline Caller of_session(Caller caller, const std::string& session) {
  if (!session.empty()) caller.principal.client = session;
  return caller;
}

/// One request in progress, as the world outside sees it: whose it is, until when its caller waits,
/// and whether the caller went away. Any thread may use it.
class Call {
 public:
  explicit Call(Caller caller) : caller_(std::move(caller)) {}

  const Caller& caller() const { return caller_; }
  const std::string& tenant() const { return caller_.principal.tenant; }
  Clock::time_point deadline() const { return caller_.deadline; }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  /// Tells the work to end. Only the first call has an effect.
  void cancel() {
    std::vector<std::function<void()>> listeners;
    {
      const std::lock_guard lock(mutex_);
      if (cancelled_.exchange(true)) return;
      listeners.swap(listeners_);
    }
    for (const auto& listener : listeners)
      listener();
  }

  /// `listener` runs when the call is cancelled; at once when it is already.
  void on_cancel(std::function<void()> listener) {
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_.load()) {
        listeners_.push_back(std::move(listener));
        return;
      }
    }
    listener();
  }

 private:
  const Caller caller_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> listeners_;
};

}  // namespace kiln::server
