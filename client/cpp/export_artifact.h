#pragma once

#include <string>

#include "client/cpp/kernel_state.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The bytes of a compiled kernel's file. Throws Unsupported EXPORT for the interpreter.
std::string exported(KernelState& kernel);

}  // namespace detail
}  // namespace client
}  // namespace kiln
