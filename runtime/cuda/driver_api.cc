// Finds the CUDA driver at run time, so that one build serves hosts with and without GPUs, and says
// what is missing where it cannot be used. Functions are asked for by their versioned names, as
// cuda.h spells them.
#include "runtime/cuda/driver_api.h"

#include <cstdlib>
#include <mutex>
#include <optional>

#include <dlfcn.h>

#include "runtime/core/error.h"

namespace kiln::cuda {
namespace {

template <typename Function>
void find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr) {
    fail(
        ErrorKind::Unavailable, "NO_DEVICE",
        "the NVIDIA driver (libcuda.so.1) is too old: it has no {}; install a driver of CUDA 12 or "
        "later",
        symbol);
  }
}

constexpr int kOldestDriver = 12000;  // CUDA 12.0

/// A driver that has all functions may be too old all the same.
void require_version(const DriverApi& api) {
  int version = 0;
  if (api.driver_version(&version) != 0 || version >= kOldestDriver) return;
  fail(ErrorKind::Unavailable, "NO_DEVICE",
       "the NVIDIA driver (libcuda.so.1) is too old: it is one of CUDA {}.{}; install a driver of "
       "CUDA 12 or later",
       version / 1000, version % 1000 / 10);
}

[[noreturn]] void fail_without_driver(const char* path) {
  // Images for GPUs set it, for the container toolkit that brings the driver in.
  if (std::getenv("NVIDIA_VISIBLE_DEVICES") != nullptr) {
    fail(ErrorKind::Unavailable, "NO_DEVICE",
         "this container sees no NVIDIA driver ({} was not found); start it with --gpus all, on a "
         "host with a GPU and NVIDIA's container toolkit; to compile without one, name an arch "
         "such as sm_90",
         path);
  }
  fail(ErrorKind::Unavailable, "NO_DEVICE",
       "this host has no NVIDIA driver ({} was not found); install the driver, or run where there "
       "is a GPU; to compile without one, name an arch such as sm_90",
       path);
}

DriverApi open() {
  const char* given = std::getenv("KILN_LIBCUDA");
  const char* path = given != nullptr ? given : "libcuda.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail_without_driver(path);
  DriverApi api{};
#define FUNCTION(name, symbol, parameters) find(library, #symbol, api.name);
#include "runtime/cuda/driver_functions.def"
#undef FUNCTION

  require_version(api);
  const Result started = api.init(0);
  int devices = 0;
  if (started == 0 && api.device_count(&devices) == 0 && devices > 0) return api;
  const char* text = nullptr;
  if (started == 0 || api.error_text(started, &text) != 0 || text == nullptr) text = "none found";
  fail(
      ErrorKind::Unavailable, "NO_DEVICE",
      "this host has an NVIDIA driver but no usable GPU ({}); check nvidia-smi, and in a container "
      "that the GPUs were passed in (--gpus all)",
      text);
}

}  // namespace

const DriverApi& driver_api() {
  // A failure is not kept: a driver may be installed while the process runs.
  static std::mutex mutex;
  static std::optional<DriverApi> api;
  const std::lock_guard lock(mutex);
  if (!api) api = open();
  return *api;
}

}  // namespace kiln::cuda
