#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace kiln::testing {

/// Calls `body` with each of so many seeds, on all cores at once, until something fails.
template <typename Body>
void for_each_seed(uint64_t first, uint64_t count, const Body& body) {
  std::atomic<uint64_t> next = first;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (uint64_t seed = next++; seed < first + count; seed = next++) {
        if (::testing::Test::HasFailure()) return;
        body(seed);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace kiln::testing
