#include "runtime/cuda/launch_size.h"

#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "tests/support/expect_error.h"

namespace kiln::cuda {
namespace {

using testing::expect_error;

const DeviceProperties kDevice = {.grid = {2147483647, 65535, 65535},
                                  .block = {1024, 1024, 64},
                                  .threads_of_block = 1024,
                                  .shared_bytes_of_block = 232448};

/// Of a grid of n blocks of n x m threads.
LaunchSize of(int64_t n, int64_t m, int64_t shared = 0) {
  Launch launch{"k", {SizeExpr::scalar(0)}, {SizeExpr::scalar(0), SizeExpr::scalar(1)}};
  launch.shared_bytes = SizeExpr::constant(shared);
  const int64_t scalars[] = {n, m};
  return launch_size(launch, scalars, kDevice);
}

TEST(LaunchSize, IsThatOfTheCallWithOneForTheRest) {
  const LaunchSize size = of(32, 16, 100);
  EXPECT_EQ(size.grid, (std::array<unsigned, 3>{32, 1, 1}));
  EXPECT_EQ(size.block, (std::array<unsigned, 3>{32, 16, 1}));
  EXPECT_EQ(size.shared_bytes, 100u);
  EXPECT_FALSE(size.is_empty());
}

TEST(LaunchSize, IsEmptyWhereAnAxisIs) { EXPECT_TRUE(of(0, 16).is_empty()); }

TEST(LaunchSize, RefusesAnAxisPastItsLimit) {
  expect_error([] { of(1, 1025); }, ErrorKind::ResourceExhausted,
               "a block of threads along y would have 1025 entries; the limit of the device is "
               "1024");
}

TEST(LaunchSize, RefusesTooManyThreadsTogether) {
  const Error error = expect_error(
      [] { of(64, 64); }, ErrorKind::ResourceExhausted,
      "a block would have 4096 threads (64 x 64 x 1); the limit of the device is 1024; bind axes "
      "that are split by a constant to threadIdx");
  EXPECT_EQ(error.reason(), "LAUNCH_SIZE");
}

TEST(LaunchSize, RefusesMoreSharedMemoryThanThereIs) {
  expect_error([] { of(1, 1, 300 << 10); }, ErrorKind::ResourceExhausted,
               "a block would have 307200 bytes of shared memory; the limit of the device is "
               "232448");
}

}  // namespace
}  // namespace kiln::cuda
