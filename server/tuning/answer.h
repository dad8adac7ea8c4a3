#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "server/errors.h"

namespace kiln::server {

/// The outcome of asynchronous work, for a thread that waits for it.
template <typename T>
class Answer {
 public:
  /// What the work is to call. May be called after the waiting ended.
  std::function<void(Outcome<T>)> taker() const {
    return [state = state_](Outcome<T> outcome) {
      const std::lock_guard lock(state->mutex);
      state->outcome = std::move(outcome);
      state->changed.notify_one();
    };
  }

  /// The outcome; nothing once `give_up()` says so, which is asked every few milliseconds.
  std::optional<Outcome<T>> wait(const std::function<bool()>& give_up) {
    std::unique_lock lock(state_->mutex);
    while (!state_->outcome) {
      if (state_->changed.wait_for(lock, std::chrono::milliseconds(5)) == std::cv_status::timeout &&
          !state_->outcome && give_up()) {
        return std::nullopt;
      }
    }
    return std::move(state_->outcome);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Outcome<T>> outcome;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace kiln::server
