#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/core/gpu_name.h"
#include "runtime/cuda/compute_capability.h"
#include "runtime/cuda/driver_api.h"

namespace kiln::cuda {

/// What a device is and how large launches on it may be, as its driver says.
struct DeviceProperties {
  int handle = 0;    // the driver's, which need not be the number in cuda:0
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int64_t memory_bytes = 0;
  ComputeCapability capability;
  std::array<int64_t, 3> grid{};      // the most blocks along x, y and z
  std::array<int64_t, 3> block{};     // the most threads of a block along x, y and z
  int64_t threads_of_block = 0;       // all three together
  int64_t shared_bytes_of_block = 0;  // of a kernel that asks for more than it is given
  bool has_memory_pools = false;      // memory in the order of a stream
  GpuFigures figures;                 // 0 where the driver does not say
};

int device_count(const DriverApi& api);

/// Of cuda:`index`. Throws Unavailable NO_DEVICE, saying which there are.
DeviceProperties properties_of(const DriverApi& api, int index);

}  // namespace kiln::cuda
