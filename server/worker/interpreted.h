#pragma once

#include <memory>

#include "runtime/device.h"

namespace kiln::server {

/// The CPU that also runs artifacts for the interpreter: loops as they were written, with every
/// index checked. About a thousand times slower than what is compiled.
std::unique_ptr<Device> with_interpreter(std::unique_ptr<Device> cpu);

}  // namespace kiln::server
