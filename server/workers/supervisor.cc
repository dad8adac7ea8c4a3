// One thread that calls every housekeeping task each period, or sooner when woken. A task that
// throws is logged and called again: housekeeping has nobody to tell.
#include "server/workers/supervisor.h"

#include <spdlog/spdlog.h>

#include "server/errors.h"

namespace kiln::server {

void Supervisor::start() {
  thread_ = std::thread([this] { loop(); });
}

void Supervisor::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

void Supervisor::stop(std::function<void()> last) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    last_ = std::move(last);
    changed_.notify_one();
  }
  thread_.join();
}

void Supervisor::loop() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    woken_ = false;
    lock.unlock();
    for (const Task& task : tasks_) {
      try {
        task(Clock::now());
      } catch (...) {
        spdlog::error("housekeeping failed: {}", current_error().message());
      }
    }
    lock.lock();
    changed_.wait_for(lock, period_, [&] { return woken_ || stopped_; });
  }
  lock.unlock();
  if (last_) last_();
}

}  // namespace kiln::server
