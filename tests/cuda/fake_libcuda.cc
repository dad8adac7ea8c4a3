// A libcuda for tests without a GPU: device memory is host memory, and the one kernel it knows,
// "add_one", is run by the host. FAKE_CUDA_DEVICES says how many devices it has (1 if unset),
// FAKE_CUDA_MAJOR and FAKE_CUDA_MINOR of which compute capability (9.0); FAKE_CUDA_LAUNCH is what
// each launch results in, FAKE_CUDA_FAULT what waiting for it does (0); with FAKE_CUDA_EVENTS
// modules and events handed out it gives no more events.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

#include "runtime/core/kernel_abi.h"

namespace {

using Pointer = unsigned long long;
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kNotFound = 500;
constexpr int kIllegalAddress = 700;
constexpr int kFirstHandle = 40;  // of devices, as told apart from their numbers
constexpr size_t kMemoryBytes = size_t{1} << 30;

constexpr int kMostHandedOut = 1000;
int handed_out = 0;  // modules and events

std::set<Pointer>& live() {
  static std::set<Pointer> pointers;
  return pointers;
}

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

int devices() { return number_of("FAKE_CUDA_DEVICES", 1); }

/// y[i] = x[i] + 1 for i < n. A negative x[i] fires check 0 with i as its index.
void add_one(const float* x, float* y, int64_t n, KilnDeviceFault* fault) {
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] < 0 && fault != nullptr) {
      *fault = {0, 0, i, n};
      return;
    }
    y[i] = x[i] + 1;
  }
}

template <typename T>
T argument(void** parameters, int number) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
  std::memcpy(&value, parameters[number], sizeof value);
  return value;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return devices() > 0 ? kSuccess : 100; }
int cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
int cuDeviceGetCount(int* count) { return *count = devices(), kSuccess; }
int cuDeviceGet(int* device, int ordinal) { return *device = kFirstHandle + ordinal, kSuccess; }
int cuDeviceGetName(char* name, int length, int device) {
  if (device < kFirstHandle) return kInvalidDevice;
  std::strncpy(name, "a fake device", static_cast<size_t>(length));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < kFirstHandle) return kInvalidDevice;
  constexpr int kMajor = 75;
  constexpr int kMinor = 76;
  constexpr int kThreadsOfBlock = 1;
  constexpr int kBlock = 2;
  constexpr int kGrid = 5;
  constexpr int kSharedBytes = 97;
  switch (attribute) {
    case kThreadsOfBlock:
    case kBlock:
    case kBlock + 1: return *value = 1024, kSuccess;
    case kBlock + 2: return *value = 64, kSuccess;
    case kGrid: return *value = 2147483647, kSuccess;
    case kGrid + 1:
    case kGrid + 2: return *value = 65535, kSuccess;
    case kSharedBytes: return *value = 227 * 1024, kSuccess;
    case kMajor: return *value = number_of("FAKE_CUDA_MAJOR", 9), kSuccess;
    case kMinor: return *value = number_of("FAKE_CUDA_MINOR", 0), kSuccess;
    default: return kInvalidValue;
  }
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return *bytes = kMemoryBytes, device < kFirstHandle ? kInvalidDevice : kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &live(), kSuccess; }
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void*) { return kSuccess; }
int cuMemAlloc_v2(Pointer* pointer, size_t bytes) {
  if (bytes > kMemoryBytes) return kOutOfMemory;
  *pointer = reinterpret_cast<Pointer>(std::malloc(bytes));
  live().insert(*pointer);
  return kSuccess;
}
int cuMemFree_v2(Pointer pointer) {
  if (live().erase(pointer) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}
int cuMemcpyHtoD_v2(Pointer to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}
int cuMemcpyDtoH_v2(void* to, Pointer from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return kSuccess;
}
int cuMemsetD8_v2(Pointer to, unsigned char value, size_t bytes) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return kSuccess;
}
int cuModuleLoadData(void** module, const void* image) {
  if (std::strcmp(static_cast<const char*>(image), "fake cubin") != 0) return 200;
  return *module = &live(), ++handed_out, kSuccess;
}
int cuModuleUnload(void*) { return --handed_out, kSuccess; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  if (std::strcmp(name, "add_one") != 0) return kNotFound;
  return *function = reinterpret_cast<void*>(&add_one), kSuccess;
}
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned, void*, void** parameters, void**) {
  if (const int refused = number_of("FAKE_CUDA_LAUNCH", 0)) return refused;
  if (gx * gy * gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024) return kInvalidValue;
  // x, y, n, the stride of x, the stride of y, workspace, fault.
  reinterpret_cast<decltype(&add_one)>(function)(
      argument<const float*>(parameters, 0), argument<float*>(parameters, 1),
      argument<int64_t>(parameters, 2), argument<KilnDeviceFault*>(parameters, 6));
  return kSuccess;
}
int cuCtxSynchronize() { return number_of("FAKE_CUDA_FAULT", kSuccess); }
int cuEventCreate(void** event, unsigned) {
  if (number_of("FAKE_CUDA_EVENTS", kMostHandedOut) <= handed_out) return kOutOfMemory;
  return *event = &live(), ++handed_out, kSuccess;
}
int cuEventDestroy_v2(void*) { return --handed_out, kSuccess; }
int cuEventRecord(void*, void*) { return kSuccess; }
int cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 0.5f, kSuccess; }
int cuGetErrorName(int result, const char** name) {
  *name = result == kNotFound         ? "CUDA_ERROR_NOT_FOUND"
          : result == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                      : "CUDA_ERROR_INVALID_IMAGE";
  return kSuccess;
}
int cuGetErrorString(int result, const char** text) {
  *text = result == 100               ? "no CUDA-capable device is detected"
          : result == kIllegalAddress ? "an illegal memory access was encountered"
                                      : "named symbol not found";
  return kSuccess;
}

/// For the tests: how many modules and events have not been given back.
int fake_cuda_handed_out() { return handed_out; }

/// For the tests: how many allocations have not been freed.
int fake_cuda_live_allocations() { return static_cast<int>(live().size()); }
}
