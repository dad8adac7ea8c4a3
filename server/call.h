#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "server/clock.h"

namespace kiln::server {

/// One request in progress, as the world outside sees it: until when its caller waits, and whether
/// the caller went away. Any thread may use it.
class Call {
 public:
  explicit Call(Clock::time_point deadline) : deadline_(deadline) {}

  Clock::time_point deadline() const { return deadline_; }
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
  const Clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> listeners_;
};

}  // namespace kiln::server
