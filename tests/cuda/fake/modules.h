#pragma once

#include <cstdint>
#include <string>

#include "tests/cuda/host/threads.h"

namespace kiln::fake {

/// How large a launch is, and a function that can be launched.
using Launch = KilnHostLaunch;
using Kernel = KilnHostKernel;

/// Code that was loaded, and where its kernels are.
class Module {
 public:
  /// Null, with the driver's result, where the image is none that the fake driver knows:
  ///   "fake cubin", "fake ptx", "fake tiles"   kernels of the fake driver: add_one, add_ten, ..
  ///   a shared object            kernels compiled for the host by the fake NVRTC
  static Module* load(const char* image, int* result);
  ~Module();

  /// Null where it has none of this name.
  const Kernel* find(const std::string& name) const;
  /// Memory of the device that its code names; null where it has none of this name.
  void* variable(const std::string& name) const;
  /// Whether a variable of any module lies there.
  static bool has_variable(uint64_t address);

  static constexpr uint64_t kVariableBytes = 4;

 private:
  bool open_object(const char* image);

  int file_ = -1;
  void* library_ = nullptr;  // null: those of the fake driver
};

}  // namespace kiln::fake
