// Divides loops into parts, eight a thread, taken by fetch-and-add: balanced without queues, and a
// thread that is descheduled holds up one part. Begun are spans of consecutive parts, stolen from
// when one's own is done, in the manner of work stealing (Blumofe and Leiserson, 1999). Whether
// workers spin, sleep or are woken at all is decided by times measured in the loop itself.
#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <limits>
#include <system_error>

#include <immintrin.h>

#include "runtime/core/error.h"
#include "runtime/cpu/cpus.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;
/// How long a worker looks for another loop before it sleeps: longer than the gaps between the
/// loops of one call.
constexpr auto kSpin = std::chrono::microseconds(80);
/// Until a worker that sleeps has been woken for the first time: how long that takes it, and the
/// one who wakes it. On virtual machines it may be ten times as long.
constexpr auto kWakeTakes = std::chrono::microseconds(16);
constexpr auto kWakingTakes = std::chrono::microseconds(2);
/// More is taken for an accident: the CPU was busy with something else.
constexpr auto kMostWakeTakes = std::chrono::microseconds(400);
/// Below this much even one that is awake: what it computes has to come back from its cache.
constexpr auto kWorthSharing = std::chrono::microseconds(5);
/// How often who runs a loop alone looks at the clock: that and taking a part are 50 ns.
constexpr auto kLook = std::chrono::microseconds(1);
/// So that a thread that comes late, or is slower, leaves little undone at the end.
constexpr int kPartsPerThread = 8;
/// How long a count of CPUs is good for: quotas of containers change, and reading one opens files.
constexpr auto kCpusStay = std::chrono::seconds(1);

/// Spins until `ready()` or the bounded time has passed; whether it is ready.
template <typename Ready>
bool spin_until(Ready&& ready) {
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      _mm_pause();
    }
  } while (Clock::now() < end);
  return ready();
}

/// An average that forgets: an eighth of it is the last one.
void learn(std::atomic<Clock::duration>& average, Clock::duration last) {
  const Clock::duration known = average.load(std::memory_order_relaxed);
  average.store(known + (std::min<Clock::duration>(last, kMostWakeTakes) - known) / 8,
                std::memory_order_relaxed);
}

/// A mutex that is held for less time than it takes to sleep and be woken.
std::unique_lock<std::mutex> lock_soon(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int i = 0; i < 64 && !lock.owns_lock(); ++i) {
    _mm_pause();
    (void)lock.try_lock();
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

}  // namespace

/// One parallel loop in progress; lives on its caller's stack.
///
/// Each thread begins with a span of its own, so that it finds what it left in its cache when the
/// loop, or another one over the same data, runs again, and large tensors in memory of its own node
/// (see ArenaPool::use); what others have not begun it takes then.
class ThreadPool::Loop {
 public:
  Loop(const Part& body, int64_t iterations, int threads)
      : part(body),
        count(iterations),
        part_size(std::max<int64_t>(1, iterations / parts_of(threads))),
        spans_(std::clamp<int>(threads, 1, kMostSpans)),
        threads_(std::max(threads, 1)) {
    // Spans are whole parts.
    const int64_t parts = (count + part_size - 1) / part_size;
    for (int i = 0; i < spans_; ++i) {
      begin_[i] = parts * i / spans_ * part_size;
      next_[i].value = begin_[i];
    }
    begin_[spans_] = count;
  }

  static int64_t parts_of(int threads) { return int64_t{kPartsPerThread} * threads; }

  const Part& part;
  const int64_t count;
  const int64_t part_size;
  std::atomic<int> helpers{0};  // more of them only under the pool's mutex

  bool has_parts() const { return parts_left() > 0; }

  int64_t parts_left() const {
    const int64_t stop = stop_at_.load();
    int64_t left = 0;
    for (int i = 0; i < spans_; ++i) {
      const int64_t rest = std::min(begin_[i + 1], stop) - next_[i].value.load();
      left += std::max<int64_t>(0, (rest + part_size - 1) / part_size);
    }
    return left;
  }

  /// Of failures the first in the order of iterations is kept, whichever comes first in time.
  void run_part(int64_t begin, int64_t end, int thread) {
    int32_t result = 0;
    std::exception_ptr exception;
    try {
      result = part(begin, end, thread);
    } catch (...) {
      exception = std::current_exception();
    }
    if (result == 0 && !exception) return;
    const std::lock_guard lock(failure_mutex_);
    if (begin < stop_at_) {
      stop_at_ = begin;
      failure_result_ = result;
      failure_exception_ = exception;
    }
  }

  /// The caller's first part, to see how long one takes.
  void run_first() {
    run_part(0, std::min(next_[0].value.fetch_add(part_size) + part_size, count), 0);
  }

  /// Takes parts, so many at once, until none is left, or until `leave()` after one. How many
  /// iterations that were.
  template <typename Leave>
  int64_t help(int thread, Leave&& leave, int64_t at_once = 1) {
    const int64_t taken = part_size * at_once;
    int64_t done = 0;
    for (int i = 0; i < spans_; ++i) {
      const int span = (first_span_of(thread) + i) % spans_;
      while (true) {
        // Of parts behind one that failed nobody will see anything.
        const int64_t end = std::min(begin_[span + 1], stop_at_.load(std::memory_order_relaxed));
        if (next_[span].value.load(std::memory_order_relaxed) >= end) break;
        const int64_t begin = next_[span].value.fetch_add(taken);
        if (begin >= end) break;
        const int64_t part_end = std::min(begin + taken, begin_[span + 1]);
        run_part(begin, part_end, thread);
        done += part_end - begin;
        if (leave()) return done;
      }
    }
    return done;
  }
  int64_t help(int thread) {
    return help(thread, [] { return false; });
  }

  int32_t result() const {
    if (failure_exception_) std::rethrow_exception(failure_exception_);
    return failure_result_;
  }

 private:
  static constexpr int kMostSpans = 16;  // each is looked at by whoever runs out of work

  /// Where there are more threads than spans, those of one node have spans that follow each other.
  int first_span_of(int thread) const {
    return static_cast<int>(int64_t{thread} * spans_ / threads_);
  }

  struct alignas(64) Counter {  // a line of its own: no false sharing
    std::atomic<int64_t> value{0};
  };

  const int spans_;
  const int threads_;
  std::array<Counter, kMostSpans> next_;
  std::array<int64_t, kMostSpans + 1> begin_{};
  std::atomic<int64_t> stop_at_{
      std::numeric_limits<int64_t>::max()};  // where the first part failed

  std::mutex failure_mutex_;
  int32_t failure_result_ = 0;
  std::exception_ptr failure_exception_;
};

ThreadPool::ThreadPool(int threads, int cpus, std::vector<std::vector<int>> nodes)
    : threads_(std::max(threads, 1)),
      nodes_(std::move(nodes)),
      looks_at_cpus_(cpus == 0),
      cpus_(looks_at_cpus_ ? available_cpus() : cpus),
      cpus_looked_at_(Clock::now()),
      wake_takes_(kWakeTakes),
      waking_takes_(kWakingTakes) {
  try {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (const std::system_error& error) {
    stop();
    fail(ErrorKind::ResourceExhausted, "THREADS", "the system gives no {} threads ({})", threads,
         error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

int32_t ThreadPool::run(int64_t count, const Part& part, const void* key) {
  Loop loop(part, count, threads());
  if (workers_.empty() || count <= 1) {
    loop.help(0);
    return loop.result();
  }
  const Clock::time_point start = Clock::now();
  if (const auto known = times_.of(key)) {
    const auto all =
        std::chrono::duration_cast<Clock::duration>(*known * static_cast<float>(count));
    if (is_done_sooner_alone(all, start)) return run_alone(loop, start, all, key);
  } else if (count >= Loop::parts_of(threads()) &&
             !(may_spin() && start - last_shared_.load() < kSpin)) {
    // One part first, to see whether the rest is worth another thread.
    loop.run_first();
    const auto rest = (Clock::now() - start) * (count / loop.part_size - 1);
    if (is_done_sooner_alone(rest, start)) return run_alone(loop, start, rest, key);
  }
  return share(loop, start, key);
}

int32_t ThreadPool::share(Loop& loop, Clock::time_point start, const void* key) {
  publish(loop);
  const Clock::time_point begin = Clock::now();
  const int64_t done = loop.help(0);
  if (done > 0) times_.keep(key, (Clock::now() - begin) / static_cast<float>(done));
  withdraw(loop);
  const Clock::time_point end = Clock::now();
  last_end_ = end;
  // Of a loop that was over so soon, the next one asks again whether it is worth sharing.
  if (end - start >= kWorthSharing) last_shared_ = end;
  return loop.result();
}

// A loop may have more to do than the last time: then others come to help after all.
int32_t ThreadPool::run_alone(Loop& loop, Clock::time_point start, Clock::duration expected,
                              const void* key) {
  const Clock::time_point late = start + 2 * expected + kWorthSharing;
  const Clock::duration part = std::max<Clock::duration>(expected * loop.part_size / loop.count,
                                                         std::chrono::nanoseconds(1));
  const int64_t at_once = std::clamp<int64_t>(kLook / part, 1, Loop::parts_of(threads()));
  loop.help(
      0, [&] { return Clock::now() > late; }, at_once);
  if (loop.has_parts()) return share(loop, start, key);
  const Clock::time_point end = Clock::now();
  times_.keep(key, (end - start) / static_cast<float>(loop.count));
  if (end - start >= kWorthSharing) last_end_ = end;
  return loop.result();
}

bool ThreadPool::is_done_sooner_alone(Clock::duration rest, Clock::time_point start) {
  return rest < kWorthSharing || (rest < worth_waking() && !has_worker_awake(start));
}

// A worker that comes after `wake_takes_` has the caller end in the middle between that and the end
// of all it would have done alone.
ThreadPool::Clock::duration ThreadPool::worth_waking() const {
  return wake_takes_.load(std::memory_order_relaxed) +
         2 * waking_takes_.load(std::memory_order_relaxed);
}

bool ThreadPool::has_worker_awake(Clock::time_point start) {
  // Right after another loop: a worker that is woken comes too late for this one, but stays awake
  // for those that follow.
  if (may_spin() && start - last_end_.load(std::memory_order_relaxed) < kSpin) return true;
  const std::unique_lock lock = lock_soon(mutex_);
  return sleeping_ < static_cast<int>(workers_.size());
}

// Wakes no more threads than there are parts for, and CPUs beside that of the caller.
void ThreadPool::publish(Loop& loop) {
  int wake = 0;
  {
    const std::unique_lock lock = lock_soon(mutex_);
    loops_.push_back(&loop);
    open_loops_ = static_cast<int>(loops_.size());
    ++published_;
    published_on_ = current_cpu();
    const int at_once = std::max(cpus_.load() - 1, 1);
    wake = static_cast<int>(std::min<int64_t>({sleeping_, loop.parts_left() - 1, at_once}));
  }
  const Clock::time_point start = Clock::now();
  if (wake > 0) woken_at_.store(start, std::memory_order_relaxed);
  for (int i = 0; i < wake; ++i) {
    work_.notify_one();
  }
  // Systems with few CPUs may have one wait on this CPU; it moves to another one by itself.
  if (wake > 0 && may_spin()) std::this_thread::yield();
  if (wake > 0) learn(waking_takes_, (Clock::now() - start) / wake);
}

void ThreadPool::withdraw(Loop& loop) {
  {
    const std::unique_lock lock = lock_soon(mutex_);
    std::erase(loops_, &loop);
    open_loops_ = static_cast<int>(loops_.size());
  }
  // Nobody joins it any more, and a helper does not touch it after it has left.
  const auto left = [&] { return loop.helpers.load() == 0; };
  if (may_spin() && spin_until(left)) return;
  std::unique_lock lock(mutex_);
  ++waiting_;
  done_.wait(lock, left);
  --waiting_;
}

// The one with the fewest workers, so that calls at the same time share them evenly.
ThreadPool::Loop* ThreadPool::loop_to_join() {
  Loop* best = nullptr;
  for (Loop* loop : loops_) {
    if (!loop->has_parts()) continue;
    if (best == nullptr || loop->helpers.load() < best->helpers.load()) best = loop;
  }
  return best;
}

// By two, so that a worker does not go back and forth between two loops.
bool ThreadPool::is_needed_elsewhere(const Loop& loop) {
  if (open_loops_.load(std::memory_order_relaxed) < 2) return false;
  const std::unique_lock lock = lock_soon(mutex_);
  return std::any_of(loops_.begin(), loops_.end(), [&](const Loop* other) {
    return other->has_parts() && other->helpers.load() + 1 < loop.helpers.load();
  });
}

void ThreadPool::look_at_cpus() {
  if (!looks_at_cpus_) return;
  {
    const std::unique_lock lock = lock_soon(mutex_);
    const Clock::time_point now = Clock::now();
    if (now - cpus_looked_at_ < kCpusStay) return;
    cpus_looked_at_ = now;
  }
  cpus_ = available_cpus();
}

bool ThreadPool::help_one_loop(int thread) {
  Loop* loop = nullptr;
  {
    const std::unique_lock lock = lock_soon(mutex_);
    loop = loop_to_join();
    if (loop == nullptr) return false;
    ++loop->helpers;
  }
  loop->help(thread, [&] { return is_needed_elsewhere(*loop); });
  // The caller goes on as soon as it sees this, unless it has gone to sleep before.
  if (loop->helpers.fetch_sub(1) == 1 && waiting_.load() > 0) {
    const std::unique_lock lock = lock_soon(mutex_);
    done_.notify_all();
  }
  return true;
}

// A worker that the system moves to another node would read all of its span from afar.
void ThreadPool::stay_on_node(int thread) const {
  if (nodes_.size() < 2) return;
  stay_on(nodes_[static_cast<size_t>(thread) * nodes_.size() / static_cast<size_t>(threads_)]);
}

void ThreadPool::work(int thread) {
  stay_on_node(thread);
  while (!stopping_) {
    const uint64_t seen = published_.load();
    if (open_loops_.load() > 0 && help_one_loop(thread)) continue;
    // A loop that is still open may have no parts left.
    const auto has_work = [&] { return published_.load() != seen || stopping_.load(); };
    if (may_spin() && spin_until(has_work)) continue;
    look_at_cpus();
    std::unique_lock lock(mutex_);
    ++sleeping_;
    // One that comes too late for the loop it was woken for stays awake for those that follow.
    work_.wait(lock, [&] { return has_work() || loop_to_join() != nullptr; });
    --sleeping_;
    const int cpu = published_on_;
    lock.unlock();
    if (!stopping_) learn(wake_takes_, Clock::now() - woken_at_.load(std::memory_order_relaxed));
    if (may_spin()) leave_cpu(cpu);
  }
}

}  // namespace kiln
