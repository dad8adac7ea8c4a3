#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/cpu/cpu_topology.h"
#include "runtime/cpu/loop_times.h"

namespace kiln {

/// Threads that share the parallel loops of all calls of a device.
///
/// Parts of a loop are handed out by counters and the caller takes parts as well, so a loop ends
/// even when every worker is busy or descheduled. Each thread has a span that it begins with. A
/// worker that becomes free joins the loop with the fewest workers, and leaves one for another that
/// has fewer by two. Between loops workers spin for a bounded time, where each thread has a CPU,
/// then sleep.
///
/// The CPUs at hand are looked at again every second: more threads than these are never woken, so
/// that a pool of 64 threads on two CPUs costs hardly more than one of two.
class ThreadPool {
 public:
  /// Runs iterations begin .. end - 1 as participant `thread` (0: the caller; below threads()). A
  /// non-zero result ends the loop early; parts already handed out still run to their end.
  using Part = std::function<int32_t(int64_t begin, int64_t end, int thread)>;

  /// `threads` counts the caller; at least 1. `cpus` is for tests: so many, whatever is at hand.
  /// Workers stay on the CPUs of `nodes`, the first ones on those of the first.
  /// Throws ResourceExhausted THREADS.
  explicit ThreadPool(int threads, int cpus = 0,
                      std::vector<std::vector<int>> nodes = host_topology().nodes);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Runs `part` over 0 .. count - 1; returns when all parts that began have ended. The result is
  /// that of the first part, in the order of iterations, that gave non-zero; an exception of that
  /// part is thrown again here. Any number of threads may call it; it must not be called from a
  /// part.
  ///
  /// `key` names the loop, if it may come again: what an iteration took the last time says whether
  /// other threads are worth it.
  int32_t run(int64_t count, const Part& part, const void* key = nullptr);

 private:
  class Loop;
  using Clock = std::chrono::steady_clock;

  void stop();
  void stay_on_node(int thread) const;
  void work(int thread);
  bool help_one_loop(int thread);
  Loop* loop_to_join();
  bool is_needed_elsewhere(const Loop& loop);
  /// Whether one is, or would be for the loops after the one that began at `start`.
  bool has_worker_awake(Clock::time_point start);
  /// Whether the caller does the rest of a loop sooner alone.
  bool is_done_sooner_alone(Clock::duration rest, Clock::time_point start);
  int32_t run_alone(Loop& loop, Clock::time_point start, Clock::duration expected, const void* key);
  int32_t share(Loop& loop, Clock::time_point start, const void* key);
  /// Work for which it is worth to wake a thread that sleeps, by what that took before.
  Clock::duration worth_waking() const;
  void look_at_cpus();
  bool may_spin() const { return threads() <= cpus_.load(std::memory_order_relaxed); }
  void publish(Loop& loop);
  void withdraw(Loop& loop);

  const int threads_;
  const std::vector<std::vector<int>> nodes_;
  std::vector<std::thread> workers_;
  const bool looks_at_cpus_;
  std::atomic<int> cpus_;
  Clock::time_point cpus_looked_at_;  // under mutex_
  std::mutex mutex_;
  std::condition_variable work_;  // for sleeping workers
  std::condition_variable done_;  // for callers whose loop still has workers
  std::vector<Loop*> loops_;      // under mutex_
  int sleeping_ = 0;              // under mutex_
  int published_on_ = -1;         // the CPU of the last caller; under mutex_
  std::atomic<int> waiting_{0};   // callers that sleep; changed under mutex_
  std::atomic<int> open_loops_{0};
  std::atomic<Clock::time_point> last_end_{Clock::time_point()};     // of a loop
  std::atomic<Clock::time_point> last_shared_{Clock::time_point()};  // of one for several threads
  LoopTimes times_;
  std::atomic<Clock::time_point> woken_at_{Clock::time_point()};  // the last time one was
  std::atomic<Clock::duration> wake_takes_;                       // until it runs
  std::atomic<Clock::duration> waking_takes_;                     // of the one who wakes it
  std::atomic<uint64_t> published_{0};  // loops so far; changed under mutex_
  std::atomic<bool> stopping_{false};
};

}  // namespace kiln
