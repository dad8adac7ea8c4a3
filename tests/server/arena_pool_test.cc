#include "server/tensors/arena_pool.h"

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/cpu/cpus.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

std::shared_ptr<ArenaPool> small_pool() {
  ArenaPool::Options options;
  options.limit_bytes = 1 << 20;
  options.arena_bytes = 64 << 10;
  options.warm_bytes = 64 << 10;
  return std::make_shared<ArenaPool>(options);
}

TEST(ArenaPool, GivesAlignedSlicesThatDoNotOverlap) {
  const auto pool = small_pool();
  std::vector<std::shared_ptr<Slice>> slices;
  for (int64_t i = 0; i < 50; ++i) {
    slices.push_back(pool->allocate(i * 7));
    EXPECT_EQ(slices.back()->offset() % 64, 0);
    std::memset(slices.back()->data(), static_cast<int>(i), static_cast<size_t>(i * 7));
  }
  for (int i = 1; i < 50; ++i) {
    for (int b = 0; b < i * 7; ++b)
      ASSERT_EQ(slices[static_cast<size_t>(i)]->data()[b], i);
  }
}

TEST(ArenaPool, UsesMemoryAgainOnceItIsGivenBack) {
  const auto pool = small_pool();
  auto first = pool->allocate(1000);
  auto second = pool->allocate(1000);
  auto third = pool->allocate(1000);
  const uint8_t* const place = first->data();
  first.reset();
  second.reset();
  // Both gaps together are one.
  const auto large = pool->allocate(2000);
  EXPECT_EQ(large->data(), place);
  EXPECT_EQ(pool->arenas().size(), 1U);
}

TEST(ArenaPool, GivesALargeTensorAnArenaOfItsOwnAndLetsItGo) {
  const auto pool = small_pool();
  const auto small = pool->allocate(100);
  auto large = pool->allocate(500'000);
  EXPECT_EQ(pool->arenas().size(), 2U);
  large.reset();
  EXPECT_EQ(pool->arenas().size(), 1U);
}

TEST(ArenaPool, KeepsWhatOthersHoldWhenALargeSliceTakesHugePages) {
  const auto pool = std::make_shared<ArenaPool>(ArenaPool::Options{});
  const auto before = pool->allocate(1000);
  std::memset(before->data(), 7, 1000);
  const auto large = pool->allocate(2 * kHugePage + 100);
  const auto behind = pool->allocate(1000);
  EXPECT_EQ(large->arena(), before->arena());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large->arena()->mapping.data()) % kHugePage, 0U);
  std::memset(large->data(), 8, static_cast<size_t>(large->bytes()));
  std::memset(behind->data(), 9, 1000);
  EXPECT_EQ(before->data()[999], 7);
  EXPECT_EQ(large->data()[large->bytes() - 1], 8);
}

TEST(ArenaPool, HasLargeSlicesOnAllNodesAndLeavesTheThreadWhereItWas) {
  const std::vector<int> cpus = usable_cpus();
  ArenaPool::Options options;
  options.nodes = {{cpus.front()}, {cpus.back()}, {cpus.front()}};
  const auto pool = std::make_shared<ArenaPool>(options);
  // Pages of the arena before it, whole and in the parts of an upload.
  const auto before = pool->allocate(kHugePage + 5000);
  const auto whole = pool->allocate(5 * kHugePage + 1);
  const auto parts = pool->reserve(4 * kHugePage);
  for (int64_t at = 0; at < parts->bytes(); at += kHugePage / 2)
    pool->use(*parts, at, kHugePage / 2);
  EXPECT_EQ(usable_cpus(), cpus);
  for (const auto& slice : {before, whole, parts}) {
    for (int64_t at = 0; at < slice->bytes(); at += 4096)
      EXPECT_EQ(slice->data()[at], 0);
    std::memset(slice->data(), 3, static_cast<size_t>(slice->bytes()));
  }
}

TEST(ArenaPool, TakesHugePagesAgainWhereSmallSlicesWere) {
  const auto pool = std::make_shared<ArenaPool>(ArenaPool::Options{});
  for (int round = 0; round < 2; ++round) {
    for (const int64_t bytes : {int64_t{5000}, kHugePage, 3 * kHugePage + 1}) {
      const auto slice = pool->allocate(bytes);
      std::memset(slice->data(), round, static_cast<size_t>(bytes));
      EXPECT_EQ(slice->data()[bytes - 1], round);
    }
  }
  EXPECT_EQ(pool->arenas().size(), 1U);
}

TEST(ArenaPool, RefusesWhatIsPastTheLimit) {
  const auto pool = small_pool();
  auto most = pool->allocate(1'000'000);
  const int64_t used = pool->used_bytes();
  kiln::testing::expect_error(
      [&] { pool->allocate(100'000); }, ErrorKind::ResourceExhausted,
      fmt::format("100000 bytes of tensor memory are needed, but only {} of "
                  "1048576 are free",
                  1048576 - used));
  most.reset();
  EXPECT_EQ(pool->used_bytes(), 0);
  EXPECT_NO_THROW(pool->allocate(100'000));
}

}  // namespace
}  // namespace kiln::server
