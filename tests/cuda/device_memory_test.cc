#include <thread>

#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "tests/cuda/fake_device.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(DeviceMemory, SaysWhenItIsFull) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::unique_ptr<DeviceBuffer> some = device->allocate(1000);
  const Error error =
      expect_error([&] { device->allocate(int64_t{1} << 40); }, ErrorKind::ResourceExhausted,
                   "cuda:0 has no room for 1099511627776 bytes: 1000 of its 1073741824 are in use");
  EXPECT_EQ(error.reason(), "DEVICE_MEMORY");
}

TEST(DeviceMemory, IsBoundedByABudget) {
  const std::unique_ptr<Device> device = open_cuda_device(0, 4096);
  std::unique_ptr<DeviceBuffer> first = device->allocate(4000);
  expect_error([&] { device->allocate(97); }, ErrorKind::ResourceExhausted,
               "cuda:0 has no room for 97 bytes: 4000 of its 4096 are in use");
  first.reset();
  EXPECT_EQ(device->allocate(4096)->bytes(), 4096);
}

TEST(DeviceMemory, OthersMayHaveTakenIt) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const Setting less("FAKE_CUDA_MEMORY", "1000");
  const int64_t trims = counted("trims");
  expect_error([&] { device->allocate(1001); }, ErrorKind::ResourceExhausted,
               "the CUDA driver could not allocate 1001 bytes: the device is out of memory");
  EXPECT_EQ(counted("trims"), trims + 1);  // what the pool kept is given back before
  EXPECT_EQ(device->allocate(1000)->bytes(), 1000);
}

TEST(DeviceMemory, IsAllocatedDirectlyWhereTheDeviceHasNoPools) {
  const Setting none("FAKE_CUDA_POOLS", "0");
  const std::unique_ptr<Device> device = open_cuda_device(0);
  EXPECT_EQ(add_one_on(*device, {1, 2}), (std::vector<float>{2, 3}));
  EXPECT_EQ(live_allocations(), 0);
}

std::vector<char> bytes_of(size_t count) {
  std::vector<char> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

TEST(DeviceMemory, TakesAndGivesTensorsOfAnyLength) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  constexpr size_t kSlot = size_t{2} << 20;
  for (const size_t count : {size_t{0}, size_t{1}, kSlot - 1, kSlot, kSlot + 1, 9 * kSlot + 5}) {
    const std::vector<char> bytes = bytes_of(count);
    const auto size = static_cast<int64_t>(count);
    const std::unique_ptr<DeviceBuffer> buffer = device->allocate(size);
    device->copy_in(buffer->data(), bytes.data(), size);
    std::vector<char> back(count);
    device->copy_out(back.data(), buffer->data(), size);
    EXPECT_EQ(back == bytes, true) << count;
  }
}

TEST(DeviceMemory, IsFilledAndReadByThreadsWhileKernelsRun) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<float> x(1 << 20, static_cast<float>(t));
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(add_one_on(*device, x), std::vector<float>(1 << 20, static_cast<float>(t + 1)));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace
}  // namespace kiln::testing
