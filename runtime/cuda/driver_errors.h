#pragma once

#include <string>

#include "runtime/cuda/driver_api.h"

namespace kiln::cuda {

/// Throws when `result` is not success. `action` completes "the CUDA driver could not ...".
///
/// What one call asked for too much of, or has wrong, is an error of that call: ResourceExhausted
/// DEVICE_MEMORY or LAUNCH_RESOURCES, Unsupported DEVICE_CODE, Internal DRIVER_CALL. Any other is
/// Unavailable DEVICE_FAULT: the driver answers nothing but that from then on, until its process is
/// another.
void check(const DriverApi& api, Result result, const std::string& action);

}  // namespace kiln::cuda
