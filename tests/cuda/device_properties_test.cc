#include "runtime/cuda/device_properties.h"

#include <gtest/gtest.h>

namespace kiln::cuda {
namespace {

/// The fake driver knows its devices by other numbers than they are opened by.
TEST(DeviceProperties, AreThoseOfTheHandleThatTheDriverGave) {
  const DeviceProperties properties = properties_of(driver_api(), 0);
  EXPECT_NE(properties.handle, 0);
  EXPECT_EQ(properties.name, "a fake device");
  EXPECT_EQ(properties.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(arch_of(properties.capability), "sm_90");
}

TEST(DeviceProperties, SayHowLargeLaunchesMayBe) {
  const DeviceProperties properties = properties_of(driver_api(), 0);
  EXPECT_EQ(properties.grid, (std::array<int64_t, 3>{2147483647, 65535, 65535}));
  EXPECT_EQ(properties.block, (std::array<int64_t, 3>{1024, 1024, 64}));
  EXPECT_EQ(properties.threads_of_block, 1024);
  EXPECT_EQ(properties.shared_bytes_of_block, 227 * 1024);
}

}  // namespace
}  // namespace kiln::cuda
