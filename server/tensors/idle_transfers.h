#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "server/clock.h"

namespace kiln::server {

/// Uploads in progress. One whose sender says nothing for a while is ended, since it holds memory.
class IdleTransfers {
 public:
  class Transfer {
   public:
    explicit Transfer(std::function<void()> end) : end_(std::move(end)) {}
    /// Something came.
    void touch();
    /// It is over: what it was given to end it is not called any more.
    void leave();

   private:
    friend class IdleTransfers;
    bool has_left() const;
    void end_if_idle(Clock::time_point since);

    // Recursive: what ends a call may find it over, and leave, before it returns.
    mutable std::recursive_mutex mutex_;
    std::function<void()> end_;
    Clock::time_point touched_ = Clock::now();
  };

  explicit IdleTransfers(Clock::duration limit) : limit_(limit) {}

  /// `end` is called once when nothing came for the limit, and never after leave().
  std::shared_ptr<Transfer> enter(std::function<void()> end);
  void expire(Clock::time_point now);

 private:
  const Clock::duration limit_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Transfer>> transfers_;
};

}  // namespace kiln::server
