#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

#include "runtime/cpu/cpus.h"

namespace kiln {
namespace {

class Pools : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, Pools, ::testing::Values(1, 2, 3, 5, 16));

TEST_P(Pools, RunEachIterationOnce) {
  ThreadPool pool(GetParam());
  for (const int64_t count : {0, 1, 2, 7, 100, 12345}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
    const int32_t result = pool.run(count, [&](int64_t begin, int64_t end, int thread) {
      EXPECT_GE(thread, 0);
      EXPECT_LT(thread, pool.threads());
      for (int64_t i = begin; i < end; ++i) {
        ++runs[static_cast<size_t>(i)];
      }
      return 0;
    });
    EXPECT_EQ(result, 0);
    EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }));
  }
}

TEST_P(Pools, NeverRunTwoPartsOfALoopAsOneThread) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(static_cast<size_t>(pool.threads()));
  for (int round = 0; round < 200; ++round) {
    pool.run(64, [&](int64_t, int64_t, int thread) {
      EXPECT_EQ(busy[static_cast<size_t>(thread)].fetch_add(1), 0);
      busy[static_cast<size_t>(thread)].fetch_sub(1);
      return 0;
    });
  }
}

TEST_P(Pools, GiveTheResultOfTheFirstPartThatFails) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    const int32_t result = pool.run(1000, [](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        if (i >= 300 && i % 100 == 0) return static_cast<int32_t>(i);
      }
      return 0;
    });
    EXPECT_EQ(result, 300);
  }
}

TEST_P(Pools, CarryExceptionsToTheCaller) {
  ThreadPool pool(GetParam());
  const auto part = [](int64_t begin, int64_t, int) -> int32_t {
    if (begin >= 10) throw std::runtime_error("part");
    return 0;
  };
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.run(20, part), std::runtime_error);
  }
  EXPECT_EQ(pool.run(5, part), 0);
}

TEST_P(Pools, ServeSeveralCallersAtOnce) {
  ThreadPool pool(GetParam());
  constexpr int kCallers = 4;
  std::vector<int64_t> sums(kCallers);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 100; ++round) {
        std::atomic<int64_t> sum{0};
        pool.run(500, [&](int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i) {
            sum += i;
          }
          return 0;
        });
        sums[static_cast<size_t>(caller)] += sum;
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const int64_t sum : sums) {
    EXPECT_EQ(sum, 100 * (499 * 500 / 2));
  }
}

TEST(ThreadPool, UsesItsWorkers) {
  ThreadPool pool(2);
  // Each of the two iterations waits for the other one, so it takes two threads.
  std::atomic<int> arrived{0};
  pool.run(2, [&](int64_t, int64_t, int) {
    ++arrived;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return 0;
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::atomic<int> arrived{0};
  pool.run(2, [&](int64_t, int64_t, int) {
    ++arrived;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return 0;
  });
  EXPECT_EQ(arrived, 2);
}

/// Waits until `condition` holds, at most for a time that no test should need.
template <typename Condition>
bool eventually(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ThreadPool, KeepsAWorkerThatCameTooLateAwakeForTheNextLoop) {
  ThreadPool pool(2, 2);
  // The worker has nothing to do in a loop whose last part the caller runs; it is there at once for
  // each of the loops that follow, so hardly any of them is run by the caller alone.
  constexpr auto kLong = std::chrono::microseconds(30);
  std::atomic<int> shared{0};
  const auto all_of_many = [&] {
    shared = 0;
    for (int loop = 0; loop < 1000; ++loop) {
      std::atomic<bool> helped{false};
      pool.run(2, [&](int64_t, int64_t, int thread) {
        const auto end = std::chrono::steady_clock::now() + kLong * (thread == 0 ? 2 : 1);
        while (std::chrono::steady_clock::now() < end) {
        }
        if (thread != 0) helped = true;
        return 0;
      });
      shared += helped ? 1 : 0;
    }
    return shared > 100;
  };
  EXPECT_TRUE(available_cpus() < 2 || eventually(all_of_many));
}

TEST(ThreadPool, WakesAWorkerForAStreamOfShortLoops) {
  ThreadPool pool(2, 2);
  const auto some_of_many = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the worker sleeps
    int shared = 0;
    for (int loop = 0; loop < 20000; ++loop) {
      std::atomic<bool> helped{false};
      pool.run(32, [&](int64_t, int64_t, int thread) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(300);
        while (std::chrono::steady_clock::now() < end) {
        }
        if (thread != 0) helped = true;
        return 0;
      });
      shared += helped ? 1 : 0;
    }
    return shared > 500;  // where others use the CPUs it comes late
  };
  EXPECT_TRUE(available_cpus() < 2 || eventually(some_of_many));
}

// Few iterations, of which none can be run first to see: what they took before says that they are
// not worth a thread that sleeps.
TEST(ThreadPool, WakesNobodyForAShortLoopThatIsKnown) {
  ThreadPool pool(2, 2);
  const auto loop = [&](std::chrono::microseconds each, const void* key) {
    std::atomic<int> by_workers = 0;
    pool.run(
        4,
        [&](int64_t, int64_t, int thread) {
          const auto end = std::chrono::steady_clock::now() + each;
          while (std::chrono::steady_clock::now() < end)
            continue;
          if (thread != 0) ++by_workers;
          return 0;
        },
        key);
    return by_workers.load();
  };
  const int known = 0;
  loop(std::chrono::microseconds(0), &known);
  int shared = 0;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // workers sleep
    shared += loop(std::chrono::microseconds(0), &known) > 0 ? 1 : 0;
  }
  // One that was interrupted in the middle looks like a long one.
  EXPECT_LT(shared, 10);
  // The same loop with more to do is shared as soon as that shows.
  EXPECT_GT(loop(std::chrono::milliseconds(20), &known), 0);
}

/// Taking a part and looking at the clock would take longer than what is in it.
TEST(ThreadPool, TakesAShortLoopThatIsKnownInFewPieces) {
  ThreadPool pool(4, 4);
  constexpr int64_t kCount = 3200;
  const int key = 0;
  int least = std::numeric_limits<int>::max();
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int run = 0; run < 200 && least > 8; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<int> pieces{0};
    std::atomic<int64_t> iterations{0};
    pool.run(
        kCount,
        [&](int64_t begin, int64_t end, int) {
          ++pieces;
          iterations += end - begin;
          return 0;
        },
        &key);
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
    EXPECT_EQ(iterations, kCount);
    least = std::min(least, pieces.load());
  }
  // Of 32 parts; under a sanitizer the loop is no short one.
  EXPECT_TRUE(least <= 8 || fastest > std::chrono::microseconds(5)) << least;
}

TEST(LoopTimes, AreKeptByKeyAndForgottenForOthers) {
  LoopTimes times;
  const std::array<char, 64> keys{};
  EXPECT_FALSE(times.of(&keys[0]));
  EXPECT_FALSE(times.of(nullptr));
  times.keep(&keys[0], std::chrono::microseconds(3));
  times.keep(nullptr, std::chrono::microseconds(3));
  times.keep(&keys[32], std::chrono::microseconds(5));
  ASSERT_TRUE(times.of(&keys[0]));
  EXPECT_FLOAT_EQ(times.of(&keys[0])->count(), 3e-6F);
  EXPECT_FLOAT_EQ(times.of(&keys[32])->count(), 5e-6F);
  EXPECT_FALSE(times.of(nullptr));
}

TEST(ThreadPool, WakesNoMoreThreadsThanThereAreCpus) {
  ThreadPool pool(64);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // all sleep
  std::vector<std::atomic<int>> parts(64);
  pool.run(512, [&](int64_t, int64_t, int thread) {
    ++parts[static_cast<size_t>(thread)];
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return 0;
  });
  const auto busy = std::ranges::count_if(parts, [](const auto& count) { return count > 0; });
  EXPECT_LE(busy, std::max(available_cpus(), 2));
}

TEST(ThreadPool, SendsAWorkerOfALongLoopToALoopThatHasNone) {
  ThreadPool pool(4, 4);
  std::atomic<bool> helped{false};
  std::set<int> in_long_loop;
  std::mutex mutex;
  const auto all_are_in_long_loop = [&] {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return in_long_loop.size() == 4;
    });
  };
  std::thread other([&] {
    pool.run(1 << 20, [&](int64_t begin, int64_t, int thread) {
      {
        const std::lock_guard lock(mutex);
        in_long_loop.insert(thread);
      }
      // The first part is run by the caller alone.
      EXPECT_TRUE(begin == 0 || all_are_in_long_loop());
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      return helped ? 1 : 0;
    });
  });
  EXPECT_TRUE(all_are_in_long_loop());
  pool.run(2, [&](int64_t, int64_t, int thread) {
    if (thread != 0) helped = true;
    EXPECT_TRUE(eventually([&] { return helped.load(); }));
    return 0;
  });
  helped = true;
  other.join();
}

/// Of all threads of this process, as taskset does it from outside.
void set_affinity(const cpu_set_t& cpus) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ::sched_setaffinity(std::stoi(task.path().filename().string()), sizeof cpus, &cpus);
  }
}

TEST(ThreadPool, GoesOnWhenCpusAreTakenAwayAndGivenBack) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ThreadPool pool(8);
  for (const cpu_set_t& cpus : {all, one, all}) {
    set_affinity(cpus);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int64_t> sum{0};
      pool.run(1000, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i)
          sum += i;
        return 0;
      });
      ASSERT_EQ(sum, 999 * 1000 / 2);
    }
  }
}

TEST(ThreadPool, HasWorkersOnTheNodesOfTheirSpans) {
  const std::vector<int> cpus = usable_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  // Workers 1 of the four threads are of the first node, 2 and 3 of the second.
  const std::vector<std::vector<int>> nodes{{cpus[0]}, {cpus[1]}};
  ThreadPool pool(4, 4, nodes);
  std::array<std::atomic<int>, 4> ran{};
  std::atomic<int> elsewhere = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    pool.run(400, [&](int64_t, int64_t, int thread) {
      if (thread > 0 && current_cpu() != (thread == 1 ? cpus[0] : cpus[1])) ++elsewhere;
      ++ran[static_cast<size_t>(thread)];
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
      while (std::chrono::steady_clock::now() < until) {
      }
      return 0;
    });
    if (attempt >= 5 && ran[1] > 0 && ran[2] > 0 && ran[3] > 0) break;
  }
  EXPECT_EQ(elsewhere, 0);
  EXPECT_GT(ran[1], 0);
  EXPECT_GT(ran[2], 0);
  EXPECT_GT(ran[3], 0);
  // Who calls goes where it likes.
  EXPECT_EQ(usable_cpus(), cpus);
}

TEST(ThreadPool, BeginsWithTheIterationsOfItsNodeWhereThereAreMoreThreadsThanSpans) {
  // 32 threads share 16 spans of 8 iterations, and two of them begin with each.
  ThreadPool pool(32, 32);
  std::atomic<int> begun = 0;
  std::array<std::atomic<int64_t>, 32> first{};
  std::ranges::for_each(first, [](auto& at) { at = -1; });
  pool.run(128, [&](int64_t begin, int64_t, int thread) {
    int64_t none = -1;
    if (first[static_cast<size_t>(thread)].compare_exchange_strong(none, begin)) ++begun;
    // Until all are there, or those that are had their time: nobody goes on to another span.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (begun < 32 && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return 0;
  });
  int seen = 0;
  for (int thread = 0; thread < 32; ++thread) {
    const int64_t begin = first[static_cast<size_t>(thread)];
    if (begin < 0) continue;
    ++seen;
    EXPECT_EQ(begin / 8, thread / 2) << thread;
  }
  EXPECT_GT(seen, 1);
}

}  // namespace
}  // namespace kiln
