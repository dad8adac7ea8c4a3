// What the parts of the thread pool cost: dispatch of a loop, imbalance, threads without a core,
// and callers that share it. Times are of the wall; the machine should have nothing else to do.

#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <sched.h>

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

void spin(int64_t rounds) {
  for (int64_t i = 0; i < rounds; ++i)
    benchmark::DoNotOptimize(i);
}

/// Rounds of spin() that a core makes in a microsecond when nothing else runs on it.
double rounds_a_microsecond() {
  double most = 0;
  for (int attempt = 0; attempt < 50; ++attempt) {
    constexpr int64_t kRounds = 100'000;
    const Clock::time_point begin = Clock::now();
    spin(kRounds);
    most = std::max(
        most, kRounds / std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return most;
}

/// Work for a core, so much as takes this time alone: a thread that has to wait for a core does not
/// get it done by waiting.
void work(std::chrono::nanoseconds time) {
  static const double rounds = rounds_a_microsecond();
  spin(static_cast<int64_t>(rounds * 1e-3 * static_cast<double>(time.count())));
}

/// A loop with nothing to do, of as many parts as a large one has.
void dispatch(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    pool.run(8 * pool.threads(), [](int64_t, int64_t, int) { return 0; });
  }
}
BENCHMARK(dispatch)->ArgName("threads")->Arg(1)->Arg(2)->Arg(4)->Arg(16)->Arg(64)->UseRealTime();

/// 400 us of work in all, in a hundred even parts, after a pause in which workers go to sleep.
void even_after_a_pause(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.ResumeTiming();
    pool.run(100, [](int64_t begin, int64_t end, int) {
      work(std::chrono::microseconds(4 * (end - begin)));
      return 0;
    });
  }
}
BENCHMARK(even_after_a_pause)->ArgName("threads")->Arg(1)->Arg(2)->Arg(16)->Arg(64)->UseRealTime();

/// Loop after loop of 400 us, as the stages of a kernel are.
void even_back_to_back(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    pool.run(100, [](int64_t begin, int64_t end, int) {
      work(std::chrono::microseconds(4 * (end - begin)));
      return 0;
    });
  }
}
BENCHMARK(even_back_to_back)->ArgName("threads")->Arg(1)->Arg(2)->Arg(16)->Arg(64)->UseRealTime();

/// Loop after loop of so many microseconds.
void short_back_to_back(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  const int64_t nanoseconds = state.range(1) * 1000 / 128;
  for (auto _ : state) {
    pool.run(128, [&](int64_t begin, int64_t end, int) {
      work(std::chrono::nanoseconds(nanoseconds * (end - begin)));
      return 0;
    });
  }
}
BENCHMARK(short_back_to_back)
    ->ArgNames({"threads", "us"})
    ->ArgsProduct({{1, 2}, {4, 8, 16, 32}})
    ->UseRealTime();

/// Iteration i takes i times as long as the first: a triangular matrix. 400 us in all.
void triangular(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr int64_t kRows = 200;
  for (auto _ : state) {
    pool.run(kRows, [](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        work(std::chrono::nanoseconds(20 * i));
      return 0;
    });
  }
}
BENCHMARK(triangular)->ArgName("threads")->Arg(1)->Arg(2)->Arg(16)->Arg(64)->UseRealTime();

/// A short loop while another caller runs long ones: how long the short one takes.
void short_beside_long(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      pool.run(1000, [](int64_t begin, int64_t end, int) {
        work(std::chrono::microseconds(20 * (end - begin)));
        return 0;
      });
    }
  });
  for (auto _ : state) {
    pool.run(100, [](int64_t begin, int64_t end, int) {
      work(std::chrono::microseconds(4 * (end - begin)));
      return 0;
    });
  }
  done = true;
  other.join();
}
BENCHMARK(short_beside_long)->ArgName("threads")->Arg(2)->Arg(4)->UseRealTime();

/// As an operator's taskset does it, from outside.
void set_affinity_of_all_threads(const cpu_set_t& cpus) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    sched_setaffinity(std::stoi(task.path().filename().string()), sizeof cpus, &cpus);
  }
}

/// Two threads of which one core is taken away while the pool lives.
void a_core_taken_away(benchmark::State& state) {
  cpu_set_t before;
  CPU_ZERO(&before);
  sched_getaffinity(0, sizeof before, &before);
  ThreadPool pool(2);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  set_affinity_of_all_threads(one);
  for (auto _ : state) {
    pool.run(100, [](int64_t begin, int64_t end, int) {
      work(std::chrono::microseconds(4 * (end - begin)));
      return 0;
    });
  }
  set_affinity_of_all_threads(before);
}
BENCHMARK(a_core_taken_away)->UseRealTime();

}  // namespace
}  // namespace kiln

BENCHMARK_MAIN();
