#include "runtime/cuda/device_properties.h"

#include <gtest/gtest.h>

#include "tests/cuda/fake_device.h"

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

TEST(DeviceProperties, AreFiguresThatKernelsArePlannedBy) {
  EXPECT_EQ(properties_of(driver_api(), 0).figures, GpuFigures{});  // the driver does not say
  const kiln::testing::Setting multiprocessors("FAKE_CUDA_MULTIPROCESSORS", "132");
  const kiln::testing::Setting clock("FAKE_CUDA_KILOHERTZ", "1980000");
  const kiln::testing::Setting memory_clock("FAKE_CUDA_MEMORY_KILOHERTZ", "2619000");
  const kiln::testing::Setting bits("FAKE_CUDA_MEMORY_BITS", "5120");
  const kiln::testing::Setting l2("FAKE_CUDA_L2_BYTES", "52428800");
  EXPECT_EQ(properties_of(driver_api(), 0).figures, (GpuFigures{132, 3352, 50, 1980}));
}

}  // namespace
}  // namespace kiln::cuda
