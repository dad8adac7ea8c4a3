#include "runtime/cpu/workspace.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kiln {
namespace {

TEST(WorkspacePool, GivesAlignedMemory) {
  WorkspacePool pool;
  for (const int64_t bytes : {0, 1, 63, 64, 100'000}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pool.acquire(bytes).data()) % 64, 0u);
  }
}

TEST(WorkspacePool, PutsLargeBlocksWhereHugePagesBegin) {
  WorkspacePool pool;
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const WorkspacePool::Lease large = pool.acquire(kHugePage + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % kHugePage, 0u);
  large.data()[kHugePage] = 1;
}

TEST(WorkspacePool, ReusesWhatWasGivenBack) {
  WorkspacePool pool;
  const uint8_t* first = pool.acquire(10'000).data();
  EXPECT_EQ(pool.acquire(9'000).data(), first);
}

TEST(WorkspacePool, GivesTwoCallsMemoryOfTheirOwn) {
  WorkspacePool pool;
  const WorkspacePool::Lease first = pool.acquire(1000);
  const WorkspacePool::Lease second = pool.acquire(1000);
  EXPECT_NE(first.data(), second.data());
}

TEST(WorkspacePool, SaysWhenThereIsNoMemory) {
  WorkspacePool pool;
  testing::expect_error([&] { pool.acquire(int64_t{1} << 62); }, ErrorKind::ResourceExhausted,
                        "cpu:0 has no 4611686018427387904 bytes of memory left");
}

}  // namespace
}  // namespace kiln
