#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::server {

/// A call that failed, as its caller was told.
struct RecentError {
  std::chrono::system_clock::time_point when;
  std::string method;
  std::string reason;
  std::string message;
  std::string request;  // its id
  std::string trace;    // that it is part of; empty: none
};

/// The last calls that failed. Any thread may use it.
class RecentErrors {
 public:
  void add(RecentError error) {
    const std::lock_guard lock(mutex_);
    errors_.push_front(std::move(error));
    if (errors_.size() > kKept) errors_.pop_back();
  }
  /// The latest first.
  std::vector<RecentError> list() const {
    const std::lock_guard lock(mutex_);
    return {errors_.begin(), errors_.end()};
  }

 private:
  static constexpr size_t kKept = 50;
  mutable std::mutex mutex_;
  std::deque<RecentError> errors_;
};

}  // namespace kiln::server
