#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kiln::fake {

/// How large a launch is.
struct Launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

/// A function that can be launched.
struct Kernel {
  int parameters;
  /// With the values its parameters point to. The result, as of a driver's function.
  int (*run)(const Launch& launch, void** parameters);
};

/// Code that was loaded, and where its kernels are.
class Module {
 public:
  /// Null, with the driver's result, where the image is none that the fake driver knows:
  ///   "fake cubin", "fake ptx"   the one kernel add_one, which is part of the fake driver
  ///   a shared object            kernels compiled for the host by the fake NVRTC
  static Module* load(const char* image, int* result);
  ~Module();

  /// Null where it has none of this name.
  const Kernel* find(const std::string& name) const;

 private:
  void* library_ = nullptr;  // null: add_one
};

}  // namespace kiln::fake
