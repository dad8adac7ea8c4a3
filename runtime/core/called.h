#pragma once

#include <string>

#include "runtime/core/arguments.h"

namespace kiln {

/// The name of a kernel that the user did not name; clients send it, too.
inline constexpr const char* kUnnamedKernel = "main";

/// A kernel in a sentence to the user: its name, or "the kernel" when the user gave it none.
std::string called(const std::string& kernel);
/// The same of a call, which may come without names.
std::string called(const KernelNames* names);

}  // namespace kiln
