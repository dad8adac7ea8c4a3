// A libcuda for tests without a GPU: device memory is host memory, and kernels are run by the host.
// What it does is set by the environment:
//   FAKE_CUDA_DEVICES        how many devices there are (1)
//   FAKE_CUDA_MAJOR, _MINOR  of which compute capability (9.0); FAKE_CUDA_VERSION the driver
//   (13000) FAKE_CUDA_MEMORY         bytes of a device (1 GiB); FAKE_CUDA_POOLS=0: no memory pools
//   FAKE_CUDA_LAUNCH         what each launch results in (0)
//   FAKE_CUDA_FAULT          what a launch results in once it is waited for, and all after it (0)
//   FAKE_CUDA_LOAD           what loading anything but PTX results in (0)
//   FAKE_CUDA_HANDLES        gives no more modules and events than so many at a time
//   FAKE_CUDA_COUNTS         a file for the counters below, which other processes can then read
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "tests/cuda/fake/counters.h"
#include "tests/cuda/fake/memory.h"
#include "tests/cuda/fake/modules.h"
#include "tests/cuda/fake/streams.h"
#include "tests/cuda/host/checks.h"

namespace {

using namespace kiln::fake;
using Pointer = unsigned long long;

constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;
constexpr int kFirstHandle = 40;  // of devices, as told apart from their numbers
constexpr int kMostDevices = 16;

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoll(text) : otherwise;
}

int devices() { return static_cast<int>(number_of("FAKE_CUDA_DEVICES", 1)); }
uint64_t memory_limit() {
  return static_cast<uint64_t>(number_of("FAKE_CUDA_MEMORY", int64_t{1} << 30));
}

struct Driver {
  std::recursive_mutex mutex;
  Memory memory;
  Streams streams;
  int64_t handed_out = 0;  // modules and events
};

Driver& driver() {
  static Driver driver;
  return driver;
}

// A context is a place in this array; the number of the place is the device's.
std::array<char, kMostDevices> contexts;
thread_local const char* current = nullptr;
int device_of_thread() { return static_cast<int>(current - contexts.data()); }

/// Runs `body` as one call of the driver: with the lock, in a context, and in vain once a kernel
/// has broken it.
template <typename Body>
int in_context(Body&& body) {
  const std::lock_guard lock(driver().mutex);
  if (current == nullptr) return kInvalidContext;
  if (driver().streams.sticky() != kSuccess) return driver().streams.sticky();
  return body();
}

bool may_hand_out() {
  if (number_of("FAKE_CUDA_HANDLES", INT64_MAX) <= driver().handed_out) return false;
  ++driver().handed_out;
  return true;
}

/// Copies once the stream comes to it. Memory that is not pinned is copied before the call returns.
int copy(void* to, const void* from, size_t bytes, Stream* stream, const void* host) {
  ++counters().copies;
  counters().copied_bytes += static_cast<int64_t>(bytes);
  const bool waits = !driver().memory.is_pinned(host);
  const int added = driver().streams.add(stream, [to, from, bytes] {
    std::memcpy(to, from, bytes);
    kiln::host::note_written(reinterpret_cast<uint64_t>(to), bytes);
    return kSuccess;
  });
  return added == kSuccess && waits ? driver().streams.run_all(stream) : added;
}

template <typename T>
void* handle(T* object) {
  return static_cast<void*>(object);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return devices() > 0 ? kSuccess : kNoDevice; }
int cuDriverGetVersion(int* version) {
  return *version = static_cast<int>(number_of("FAKE_CUDA_VERSION", 13000)), kSuccess;
}
int cuDeviceGetCount(int* count) { return *count = devices(), kSuccess; }
int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= devices()) return kInvalidDevice;
  return *device = kFirstHandle + ordinal, kSuccess;
}
int cuDeviceGetName(char* name, int length, int device) {
  if (device < kFirstHandle) return kInvalidDevice;
  std::strncpy(name, "a fake device", static_cast<size_t>(length));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < kFirstHandle) return kInvalidDevice;
  switch (attribute) {
    case 1:  // threads of a block
    case 2:  // along x
    case 3: return *value = 1024, kSuccess;
    case 4: return *value = 64, kSuccess;
    case 5: return *value = 2147483647, kSuccess;  // blocks along x
    case 6:
    case 7: return *value = 65535, kSuccess;
    // What the device is planned by; 0: not said.
    case 13: return *value = static_cast<int>(number_of("FAKE_CUDA_KILOHERTZ", 0)), kSuccess;
    case 16: return *value = static_cast<int>(number_of("FAKE_CUDA_MULTIPROCESSORS", 0)), kSuccess;
    case 36: return *value = static_cast<int>(number_of("FAKE_CUDA_MEMORY_KILOHERTZ", 0)), kSuccess;
    case 37: return *value = static_cast<int>(number_of("FAKE_CUDA_MEMORY_BITS", 0)), kSuccess;
    case 38: return *value = static_cast<int>(number_of("FAKE_CUDA_L2_BYTES", 0)), kSuccess;
    case 75: return *value = static_cast<int>(number_of("FAKE_CUDA_MAJOR", 9)), kSuccess;
    case 76: return *value = static_cast<int>(number_of("FAKE_CUDA_MINOR", 0)), kSuccess;
    case 97: return *value = 227 * 1024, kSuccess;  // shared bytes of a block
    case 115: return *value = number_of("FAKE_CUDA_POOLS", 1) != 0, kSuccess;
    default: return kInvalidValue;
  }
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return *bytes = memory_limit(), device < kFirstHandle ? kInvalidDevice : kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < kFirstHandle || device >= kFirstHandle + kMostDevices) return kInvalidDevice;
  return *context = &contexts[static_cast<size_t>(device - kFirstHandle)], kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void* context) {
  if (driver().streams.sticky() != kSuccess) return driver().streams.sticky();
  return current = static_cast<const char*>(context), kSuccess;
}

int cuDeviceGetDefaultMemPool(void** pool, int device) {
  if (number_of("FAKE_CUDA_POOLS", 1) == 0) return 801;  // not supported
  return cuDevicePrimaryCtxRetain(pool, device);
}
int cuMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
int cuMemPoolTrimTo(void*, size_t) { return ++counters().trims, kSuccess; }
int cuMemAlloc_v2(Pointer* pointer, size_t bytes) {
  return in_context([&] {
    *pointer =
        driver().memory.allocate(Memory::Kind::Device, device_of_thread(), bytes, memory_limit());
    return *pointer == 0 ? kOutOfMemory : kSuccess;
  });
}
int cuMemFree_v2(Pointer pointer) {
  return in_context([&] {
    return driver().memory.free(Memory::Kind::Device, pointer) ? kSuccess : kInvalidValue;
  });
}
int cuMemAllocAsync(Pointer* pointer, size_t bytes, void* stream) {
  return in_context([&] {
    // What was freed before in the same order is there again.
    const int result = driver().streams.run_all(static_cast<Stream*>(stream));
    return result == kSuccess ? cuMemAlloc_v2(pointer, bytes) : result;
  });
}
int cuMemFreeAsync(Pointer pointer, void* stream) {
  return in_context([&] {
    return driver().streams.add(static_cast<Stream*>(stream), [pointer] {
      return driver().memory.free(Memory::Kind::Device, pointer) ? kSuccess : kInvalidValue;
    });
  });
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return in_context([&] {
    *pointer =
        reinterpret_cast<void*>(driver().memory.allocate(Memory::Kind::Pinned, 0, bytes, SIZE_MAX));
    return kSuccess;
  });
}
int cuMemFreeHost(void* pointer) {
  return in_context([&] {
    return driver().memory.free(Memory::Kind::Pinned, reinterpret_cast<uint64_t>(pointer))
               ? kSuccess
               : kInvalidValue;
  });
}
int cuMemHostGetDevicePointer_v2(Pointer* address, void* pinned, unsigned) {
  if (!driver().memory.is_pinned(pinned)) return kInvalidValue;
  return *address = reinterpret_cast<Pointer>(pinned), kSuccess;
}
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, void* stream) {
  return in_context([&] {
    const bool is_known = driver().memory.holds(to, bytes) || Module::has_variable(to);
    if (!is_known) return kInvalidValue;
    return copy(reinterpret_cast<void*>(to), from, bytes, static_cast<Stream*>(stream), from);
  });
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, void* stream) {
  return in_context([&] {
    if (!driver().memory.holds(from, bytes)) return kInvalidValue;
    return copy(to, reinterpret_cast<void*>(from), bytes, static_cast<Stream*>(stream), to);
  });
}

int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void* stream) {
  return in_context([&] {
    if (!driver().memory.holds(to, bytes) || !driver().memory.holds(from, bytes))
      return kInvalidValue;
    counters().copied_within += static_cast<int64_t>(bytes);
    return driver().streams.add(static_cast<Stream*>(stream), [to, from, bytes] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
      kiln::host::note_written(to, bytes);
      return kSuccess;
    });
  });
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options,
                       void** values) {
  return in_context([&] {
    const auto* text = static_cast<const char*>(image);
    const bool is_ptx = std::strstr(text, "ptx") != nullptr;
    if (is_ptx && std::strstr(text, "bad") != nullptr) {
      for (unsigned i = 0; i < count; ++i) {
        if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), "line 3: fake error");
      }
      return 218;
    }
    if (const auto refused = number_of("FAKE_CUDA_LOAD", 0); refused != 0 && !is_ptx)
      return static_cast<int>(refused);
    if (!may_hand_out()) return kOutOfMemory;
    int result = kSuccess;
    *module = handle(Module::load(text, &result));
    if (result != kSuccess) --driver().handed_out;
    return result;
  });
}
int cuModuleUnload(void* module) {
  return in_context([&] {
    delete static_cast<Module*>(module);
    return --driver().handed_out, kSuccess;
  });
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return in_context([&] {
    *function = const_cast<Kernel*>(static_cast<Module*>(module)->find(name));
    return *function == nullptr ? kNotFound : kSuccess;
  });
}
int cuModuleGetGlobal_v2(Pointer* pointer, size_t* bytes, void* module, const char* name) {
  return in_context([&] {
    void* const variable = static_cast<Module*>(module)->variable(name);
    if (variable == nullptr) return kNotFound;
    *pointer = reinterpret_cast<Pointer>(variable);
    return *bytes = Module::kVariableBytes, kSuccess;
  });
}
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, void* stream, void** parameters, void**) {
  return in_context([&] {
    if (const auto refused = number_of("FAKE_CUDA_LAUNCH", 0)) return static_cast<int>(refused);
    const Launch launch{{gx, gy, gz}, {bx, by, bz}, shared_bytes};
    const uint64_t threads = uint64_t{bx} * by * bz;
    if (gx * gy * gz == 0 || threads == 0 || threads > 1024) return kInvalidValue;
    ++counters().launches;
    // The driver reads the parameters before it returns. None is longer than 8 bytes.
    const auto* kernel = static_cast<const Kernel*>(function);
    std::vector<uint64_t> values(static_cast<size_t>(kernel->parameters));
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], parameters[i], sizeof values[i]);
    return driver().streams.add(static_cast<Stream*>(stream), [=]() mutable {
      if (const auto fault = number_of("FAKE_CUDA_FAULT", 0)) return static_cast<int>(fault);
      std::vector<void*> pointers;
      for (uint64_t& value : values)
        pointers.push_back(&value);
      if (!kernel->is_endless) return kernel->run(launch, pointers.data());
      driver().mutex.unlock();  // a device that computes is no driver that hangs
      const int result = kernel->run(launch, pointers.data());
      driver().mutex.lock();
      return result;
    });
  });
}

int cuStreamCreate(void** stream, unsigned) {
  return in_context([&] { return *stream = handle(driver().streams.create()), kSuccess; });
}
int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(driver().mutex);
  return driver().streams.destroy(static_cast<Stream*>(stream));
}
int cuStreamSynchronize(void* stream) {
  return in_context([&] { return driver().streams.run_all(static_cast<Stream*>(stream)); });
}
int cuEventCreate(void** event, unsigned) {
  return in_context([&] {
    if (!may_hand_out()) return kOutOfMemory;
    return *event = handle(new Event), ++counters().events, kSuccess;
  });
}
int cuEventDestroy_v2(void* event) {
  const std::lock_guard lock(driver().mutex);
  driver().streams.wait_for(*static_cast<Event*>(event));
  delete static_cast<Event*>(event);
  return --driver().handed_out, kSuccess;
}
int cuEventRecord(void* event, void* stream) {
  return in_context([&] {
    return driver().streams.record(*static_cast<Event*>(event), static_cast<Stream*>(stream));
  });
}
int cuEventSynchronize(void* event) {
  return in_context([&] { return driver().streams.wait_for(*static_cast<Event*>(event)); });
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return in_context([&] {
    const auto* from = static_cast<Event*>(begin);
    const auto* to = static_cast<Event*>(end);
    if (from->pending > 0 || to->pending > 0) return 600;  // not ready
    return *milliseconds = static_cast<float>(to->milliseconds - from->milliseconds), kSuccess;
  });
}

int cuStreamBeginCapture_v2(void* stream, int) {
  return in_context([&] { return driver().streams.begin_recording(static_cast<Stream*>(stream)); });
}
int cuStreamEndCapture(void* stream, void** graph) {
  return in_context([&] {
    auto* const recorded = new std::vector<Work>;
    *graph = handle(recorded);
    return driver().streams.end_recording(static_cast<Stream*>(stream), *recorded);
  });
}
#ifndef FAKE_CUDA_OLD
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return *executable = handle(new std::vector<Work>(*static_cast<std::vector<Work>*>(graph))),
         ++counters().graphs, kSuccess;
}
#endif
int cuGraphLaunch(void* executable, void* stream) {
  return in_context([&] {
    ++counters().graph_launches;
    for (const Work& work : *static_cast<std::vector<Work>*>(executable))
      driver().streams.add(static_cast<Stream*>(stream), work);
    return kSuccess;
  });
}
int cuGraphDestroy(void* graph) { return delete static_cast<std::vector<Work>*>(graph), kSuccess; }
int cuGraphExecDestroy(void* executable) { return cuGraphDestroy(executable); }

int cuGetErrorName(int result, const char** name) {
  switch (result) {
    case kNotFound: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case 719: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    case 709: *name = "CUDA_ERROR_CONTEXT_IS_DESTROYED"; break;
    case 999: *name = "CUDA_ERROR_UNKNOWN"; break;
    default: *name = "CUDA_ERROR_INVALID_IMAGE";
  }
  return kSuccess;
}
int cuGetErrorString(int result, const char** text) {
  switch (result) {
    case kNoDevice: *text = "no CUDA-capable device is detected"; break;
    case 700: *text = "an illegal memory access was encountered"; break;
    // A driver says no more than that it failed; here it is known why.
    case 719: *text = kiln::host::violation().c_str(); break;
    case 709: *text = "context is destroyed"; break;
    case 999: *text = "unknown error"; break;
    default: *text = "named symbol not found";
  }
  return kSuccess;
}

/// For the tests: how many modules and events have not been given back.
int fake_cuda_handed_out() { return static_cast<int>(driver().handed_out); }
/// For the tests: how many allocations have not been freed, once all streams are at rest.
int fake_cuda_live_allocations() {
  driver().streams.come_to_rest();
  return driver().memory.count(Memory::Kind::Device);
}
/// For the tests: a counter by its name, or -1.
long long fake_cuda_count(const char* name) { return kiln::fake::count(name); }
/// For the tests: as in a new process, after one whose context a kernel has broken.
void fake_cuda_restart() {
  driver().streams.break_context(kSuccess);
  driver().memory.clear();
  driver().handed_out = 0;
}
}
