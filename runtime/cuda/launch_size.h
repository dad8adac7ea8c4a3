#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/core/artifact.h"
#include "runtime/cuda/device_properties.h"

namespace kiln::cuda {

/// A launch as the driver takes it.
struct LaunchSize {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned shared_bytes = 0;

  /// Nothing to do, which the driver refuses to launch.
  bool is_empty() const;
};

/// Of a launch at these sizes. Throws ResourceExhausted LAUNCH_SIZE past a limit of the device.
LaunchSize launch_size(const Launch& launch, std::span<const int64_t> scalars,
                       const DeviceProperties& device);

}  // namespace kiln::cuda
