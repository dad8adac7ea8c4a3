// Asks the driver what a device is. A device has a number, by which users and the runtime call it,
// and a handle, by which the driver does.
#include "runtime/cuda/device_properties.h"

#include <algorithm>

#include "runtime/core/error.h"
#include "runtime/cuda/driver_errors.h"

namespace kiln::cuda {
namespace {

int open_handle(const DriverApi& api, int index) {
  const int count = device_count(api);
  if (index < 0 || index >= count) {
    fail(ErrorKind::Unavailable, "NO_DEVICE", "this host has no cuda:{}; it has {} CUDA {}", index,
         count, count == 1 ? "device, cuda:0" : "devices, numbered from 0");
  }
  int handle = 0;
  check(api, api.device(&handle, index), "open the device");
  return handle;
}

int attribute(const DriverApi& api, int handle, int which) {
  int value = 0;
  check(api, api.device_attribute(&value, which, handle), "read a property of the device");
  return value;
}

/// What kernels are planned by. Drivers to come may not say all of it; none of it is needed.
GpuFigures figures_of_device(const DriverApi& api, int handle) {
  const auto read = [&](int which) -> int64_t {
    int value = 0;
    return api.device_attribute(&value, which, handle) == 0 ? std::max(value, 0) : 0;
  };
  constexpr int64_t kPerGigabyte = 1'000'000;  // kilohertz of a byte
  const int64_t bytes = 2 * read(kMemoryBusWidth) / 8;
  return {.multiprocessors = read(kMultiprocessorCount),
          .gigabytes = bytes * read(kMemoryClockRate) / kPerGigabyte,
          .l2_mebibytes = read(kL2CacheSize) >> 20,
          .megahertz = read(kClockRate) / 1000};
}

}  // namespace

int device_count(const DriverApi& api) {
  int count = 0;
  check(api, api.device_count(&count), "count its devices");
  return count;
}

DeviceProperties properties_of(const DriverApi& api, int index) {
  DeviceProperties result;
  result.handle = open_handle(api, index);
  const auto read = [&](int which) { return attribute(api, result.handle, which); };

  std::string name(256, '\0');
  check(api, api.device_name(name.data(), static_cast<int>(name.size()), result.handle),
        "read the name of the device");
  result.name = name.substr(0, name.find('\0'));
  size_t bytes = 0;
  check(api, api.device_total_memory(&bytes, result.handle), "read how much memory it has");
  result.memory_bytes = static_cast<int64_t>(bytes);
  result.capability = {read(kComputeCapabilityMajor), read(kComputeCapabilityMinor)};
  for (int d = 0; d < 3; ++d) {
    result.grid[static_cast<size_t>(d)] = read(kMaxGridX + d);
    result.block[static_cast<size_t>(d)] = read(kMaxBlockX + d);
  }
  result.threads_of_block = read(kMaxThreadsOfBlock);
  result.shared_bytes_of_block = read(kMaxSharedBytesOptIn);
  result.has_memory_pools = read(kMemoryPoolsSupported) != 0;
  result.figures = figures_of_device(api, result.handle);
  return result;
}

}  // namespace kiln::cuda
