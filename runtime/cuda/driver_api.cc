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

/// A driver that lacks one is refused as a whole: CUDA 12 has all of them.
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

DriverApi open() {
  const char* given = std::getenv("KILN_LIBCUDA");
  const char* path = given != nullptr ? given : "libcuda.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(
        ErrorKind::Unavailable, "NO_DEVICE",
        "this host has no NVIDIA driver ({} was not found); install the driver, or run where there "
        "is a GPU; to compile without one, name an arch such as sm_90",
        path);
  }
  DriverApi api{};
  find(library, "cuInit", api.init);
  find(library, "cuDriverGetVersion", api.driver_version);
  find(library, "cuDeviceGetCount", api.device_count);
  find(library, "cuDeviceGet", api.device);
  find(library, "cuDeviceGetName", api.device_name);
  find(library, "cuDeviceGetAttribute", api.device_attribute);
  find(library, "cuDeviceTotalMem_v2", api.device_total_memory);
  find(library, "cuDevicePrimaryCtxRetain", api.retain_context);
  find(library, "cuDevicePrimaryCtxRelease_v2", api.release_context);
  find(library, "cuCtxSetCurrent", api.set_context);
  find(library, "cuMemAlloc_v2", api.allocate);
  find(library, "cuMemFree_v2", api.free);
  find(library, "cuMemcpyHtoD_v2", api.copy_in);
  find(library, "cuMemcpyDtoH_v2", api.copy_out);
  find(library, "cuMemsetD8_v2", api.fill_bytes);
  find(library, "cuModuleLoadData", api.load_module);
  find(library, "cuModuleUnload", api.unload_module);
  find(library, "cuModuleGetFunction", api.find_function);
  find(library, "cuFuncSetAttribute", api.set_function_attribute);
  find(library, "cuLaunchKernel", api.launch);
  find(library, "cuCtxSynchronize", api.synchronize);
  find(library, "cuEventCreate", api.create_event);
  find(library, "cuEventDestroy_v2", api.destroy_event);
  find(library, "cuEventRecord", api.record_event);
  find(library, "cuEventElapsedTime", api.event_milliseconds);
  find(library, "cuGetErrorName", api.error_name);
  find(library, "cuGetErrorString", api.error_text);

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
