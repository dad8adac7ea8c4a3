#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

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

TEST(AvailableCpus, IsAtLeastOne) { EXPECT_GE(available_cpus(), 1); }

}  // namespace
}  // namespace kiln
