// Tells a kernel without a name by the name that clients send for it, kUnnamedKernel: a user who
// never wrote "main" is not told about it.
#include "runtime/core/called.h"

namespace kiln {

std::string called(const std::string& kernel) {
  return kernel == kUnnamedKernel ? "the kernel" : kernel;
}

std::string called(const KernelNames* names) {
  return names != nullptr ? called(names->kernel) : "the kernel";
}

}  // namespace kiln
