#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "server/ipc/memfd.h"

namespace kiln::server {

/// How far a call has come that a worker was sent. Who changes Sent first has it: the worker begins
/// it, or the front end takes it back.
enum class CallState : uint32_t { Sent, Begun, Withdrawn };

/// One call that a worker was sent, until it is answered.
struct CallSlot {
  std::atomic<CallState> state;
  /// Set to non-zero by the front end to end the call while it runs.
  std::atomic<int32_t> cancelled;
};

/// More than a worker is sent ahead.
constexpr size_t kCallSlots = 8;

/// What the front end and one worker see of each other without a message. Atomics only: a process
/// that dies can leave no lock behind.
struct StatusPage {
  /// Counted up by a thread of the worker as long as the process is scheduled at all.
  std::atomic<uint64_t> beats;
  /// Filled in by the front end before it sends the call.
  std::array<CallSlot, kCallSlots> calls;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free &&
              std::atomic<CallState>::is_always_lock_free);

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
