#pragma once

#include <string>
#include <string_view>

namespace kiln::cuda {

/// 9.0 of an H100, 8.6 of an A40.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
};

/// "sm_90"
std::string arch_of(ComputeCapability capability);

/// Whether machine code compiled for `arch` ("sm_80", "sm_90a", "sm_100f") runs on such a device.
bool runs_on(std::string_view arch, ComputeCapability device);

/// Whether the driver of such a device can compile PTX that was made for `arch`.
bool compiles_on(std::string_view arch, ComputeCapability device);

}  // namespace kiln::cuda
