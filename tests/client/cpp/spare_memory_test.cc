// Memory that goes from one result to the next.
#include "client/cpp/spare_memory.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace kiln {
namespace {

using client::detail::memory_to_fill;

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool is_mapped(void* place) { return ::msync(place, 4096, MS_ASYNC) == 0; }

TEST(SpareMemory, IsWhatAResultOfTheSameSizeGaveBack) {
  auto first = memory_to_fill(8 * kMiB);
  auto second = memory_to_fill(8 * kMiB);
  EXPECT_NE(first.get(), second.get());
  std::byte* const place = first.get();
  std::memset(place, 7, 8 * kMiB);
  first.reset();
  EXPECT_NE(memory_to_fill(6 * kMiB).get(), place);
  const auto third = memory_to_fill(8 * kMiB);
  EXPECT_EQ(third.get(), place);
  std::memset(place, 9, 8 * kMiB);
  EXPECT_EQ(third[8 * kMiB - 1], std::byte{9});
}

TEST(SpareMemory, IsNoMoreThanAFewLargeResults) {
  std::vector<std::shared_ptr<std::byte[]>> results;
  std::vector<std::byte*> places;
  for (int i = 0; i < 5; ++i) {
    results.push_back(memory_to_fill(64 * kMiB));
    places.push_back(results.back().get());
  }
  for (auto& result : results)
    result.reset();
  EXPECT_FALSE(is_mapped(places[0]));
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_TRUE(is_mapped(places[i]));
}

TEST(SpareMemory, OfSmallResultsIsMallocs) {
  const auto small = memory_to_fill(100);
  std::memset(small.get(), 1, 100);
  EXPECT_NE(memory_to_fill(0), nullptr);
}

}  // namespace
}  // namespace kiln
