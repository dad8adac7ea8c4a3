#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "server/clock.h"

namespace kiln::server {

/// The thread that looks after everything which nobody waits for: workers that ended or hang,
/// sessions and results that expire. Workers are started here, since a worker ends with the thread
/// that started it.
class Supervisor {
 public:
  using Task = std::function<void(Clock::time_point now)>;

  explicit Supervisor(Clock::duration period) : period_(period) {}
  ~Supervisor() { stop(); }

  /// Before start() only.
  void add(Task task) { tasks_.push_back(std::move(task)); }
  void start();
  /// Runs all tasks soon, instead of at the end of the period.
  void wake();
  /// Ends the thread; `last` runs in it, after the tasks.
  void stop(std::function<void()> last = {});

 private:
  void loop();

  const Clock::duration period_;
  std::vector<Task> tasks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stopped_ = false;
  std::function<void()> last_;
  std::thread thread_;
};

}  // namespace kiln::server
