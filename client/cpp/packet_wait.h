#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include <sched.h>
#include <sys/socket.h>

namespace kiln {
inline namespace client {
namespace detail {

/// Waits for packets of a socket. While they follow each other closely it looks for the next one,
/// leaving its core to whoever wants it, before it sleeps: a core that has gone to sleep may take
/// as long to wake as all else of a small call. Who looks for as long as waking takes spends at
/// most twice what the best choice would (Karlin, Manasse, McGeoch and Owicki, 1994). Where others
/// compute it sleeps: a core that is left to them comes back after milliseconds, one that a packet
/// wakes for at once. Of a thread.
class PacketWait {
 public:
  /// As ::recvmsg(), but not ended by a signal.
  ssize_t receive(int socket, msghdr& header, int flags) {
    const auto begin = Clock::now();
    const bool looks = may_look_ && came_soon_ && begin >= crowded_until_;
    ssize_t count = -1;
    if (looks) count = look(socket, header, flags, begin);
    const bool found = count >= 0;
    if (!found) count = retried(socket, header, flags);
    // After a look in vain it sleeps once, and so sees how long that takes.
    came_soon_ = found || (!looks && Clock::now() - begin < kSoon);
    return count;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kLook = std::chrono::microseconds(100);
  static constexpr auto kSoon = 3 * kLook;   // with the time that it takes to wake, on both sides
  static constexpr auto kSlice = 5 * kLook;  // who has the core so long computes
  static constexpr auto kCrowded = std::chrono::milliseconds(100);

  static ssize_t retried(int socket, msghdr& header, int flags) {
    ssize_t count = 0;
    do {
      count = ::recvmsg(socket, &header, flags);
    } while (count < 0 && errno == EINTR);
    return count;
  }
  /// Less than nothing where there was none.
  ssize_t look(int socket, msghdr& header, int flags, Clock::time_point begin) {
    for (auto now = begin; now - begin < kLook;) {
      const ssize_t count = retried(socket, header, flags | MSG_DONTWAIT);
      if (count >= 0 || errno != EAGAIN) return count;
      const auto left = now;
      ::sched_yield();
      now = Clock::now();
      if (now - left > kSlice) crowded_until_ = now + kCrowded;
    }
    return -1;
  }

  const bool may_look_ = std::thread::hardware_concurrency() > 1;
  Clock::time_point crowded_until_;
  bool came_soon_ = false;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
