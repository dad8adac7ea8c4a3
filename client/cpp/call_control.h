#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace kiln {
inline namespace client {
namespace detail {

/// Ends a call from another thread, before it starts, while it runs, or between two tries.
struct CancelState {
  void cancel();

  std::mutex mutex;
  std::condition_variable changed;
  bool cancelled = false;
  std::function<void()> end;  // of what runs
};

/// How a call may take its time.
struct CallControl {
  std::optional<std::chrono::system_clock::time_point> deadline = {};
  std::shared_ptr<CancelState> cancel = {};
  bool idempotent = true;  // a second try does no harm

  static CallControl with_deadline(std::chrono::milliseconds time);
};

/// Something that can be cancelled as long as this lives: `end` is run then, and at once where that
/// was asked for before.
class Cancellable {
 public:
  Cancellable(const CallControl& control, std::function<void()> end);
  ~Cancellable();
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

 private:
  const std::shared_ptr<CancelState> state_;
  std::function<void()> before_;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
