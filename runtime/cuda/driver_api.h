#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::cuda {

// The part of the CUDA driver's interface that Kiln uses. Declared here, so that building needs no
// toolkit; tests/runtime compares it with cuda.h where there is one. Handles are opaque pointers.
using Result = int;
using DevicePointer = unsigned long long;

/// The functions of libcuda, found at run time.
struct DriverApi {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);
  Result (*device_count)(int* count);
  Result (*device)(int* device, int ordinal);
  Result (*device_name)(char* name, int length, int device);
  Result (*device_attribute)(int* value, int attribute, int device);
  Result (*device_total_memory)(size_t* bytes, int device);
  Result (*retain_context)(void** context, int device);
  Result (*release_context)(int device);
  Result (*set_context)(void* context);
  Result (*allocate)(DevicePointer* pointer, size_t bytes);
  Result (*free)(DevicePointer pointer);
  Result (*copy_in)(DevicePointer to, const void* from, size_t bytes);
  Result (*copy_out)(void* to, DevicePointer from, size_t bytes);
  Result (*fill_bytes)(DevicePointer to, unsigned char value, size_t bytes);
  Result (*load_module)(void** module, const void* image);
  Result (*unload_module)(void* module);
  Result (*find_function)(void** function, void* module, const char* name);
  Result (*set_function_attribute)(void* function, int attribute, int value);
  Result (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** parameters, void** extra);
  Result (*synchronize)();
  Result (*create_event)(void** event, unsigned flags);
  Result (*destroy_event)(void* event);
  Result (*record_event)(void* event, void* stream);
  Result (*event_milliseconds)(float* milliseconds, void* begin, void* end);
  Result (*error_name)(Result result, const char** name);
  Result (*error_text)(Result result, const char** text);
};

/// Attributes of cuDeviceGetAttribute and cuFuncSetAttribute.
constexpr int kMaxThreadsOfBlock = 1;
constexpr int kMaxBlockX = 2;  // y and z follow
constexpr int kMaxGridX = 5;   // y and z follow
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kMaxSharedBytesOptIn = 97;
constexpr int kFunctionMaxDynamicSharedBytes = 8;

/// Opens libcuda once for the process: KILN_LIBCUDA names a file, else libcuda.so.1 is searched as
/// the system does. Throws Unavailable NO_DEVICE with what is missing and what to do.
const DriverApi& driver_api();

}  // namespace kiln::cuda
