#pragma once

#include <atomic>
#include <cstdint>

#include "server/ipc/memfd.h"

namespace kiln::server {

/// What the front end and one worker see of each other without a message. Atomics only: a process
/// that dies can leave no lock behind.
struct StatusPage {
  /// Counted up by a thread of the worker as long as the process is scheduled at all.
  std::atomic<uint64_t> beats;
  /// Set to non-zero by the front end to end the running call. Cleared by the front end before
  /// each.
  std::atomic<int32_t> cancelled;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr int64_t kStatusPageBytes = 4096;

/// A mapped StatusPage. A fresh memfd is zero, which is the page's first state.
class SharedStatus {
 public:
  explicit SharedStatus(const Fd& fd) : mapping_(fd, kStatusPageBytes) {}
  StatusPage& operator*() const { return *reinterpret_cast<StatusPage*>(mapping_.data()); }
  StatusPage* operator->() const { return &**this; }

 private:
  Mapping mapping_;
};

}  // namespace kiln::server
