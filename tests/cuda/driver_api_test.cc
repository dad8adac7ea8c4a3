#include "runtime/cuda/driver_api.h"

#include <type_traits>

#include <dlfcn.h>
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace kiln::cuda {
namespace {

#if __has_include(<cuda.h>)
template <typename Ours, typename Theirs>
struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct SameShape<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && ((sizeof(A) == sizeof(B)) && ...)> {};

#define FUNCTION(name, symbol, parameters) \
  static_assert(SameShape<decltype(DriverApi::name), decltype(&symbol)>::value);
#include "runtime/cuda/driver_functions.def"
#undef FUNCTION

static_assert(kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kMaxThreadsOfBlock == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(kMaxBlockX == CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
static_assert(kMaxBlockX + 2 == CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
static_assert(kMaxGridX == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
static_assert(kMaxGridX + 2 == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
static_assert(kMaxSharedBytesOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(kMemoryPoolsSupported == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(kFunctionMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kPoolReleaseThreshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(kPinnedForAllContexts == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kPinnedMapped == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventWithoutTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kCaptureOfThisThread == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(kJitErrorLog == CU_JIT_ERROR_LOG_BUFFER);
static_assert(kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
#endif

/// The toolkit's stand-in for libcuda has every function of the driver, under its versioned name.
TEST(DriverApi, AsksForFunctionsThatTheDriverHas) {
  void* const stub = dlopen("/usr/local/cuda/lib64/stubs/libcuda.so", RTLD_NOW | RTLD_LOCAL);
  if (stub == nullptr) GTEST_SKIP() << "there is no CUDA toolkit here";
#define FUNCTION(name, symbol, parameters) EXPECT_NE(dlsym(stub, #symbol), nullptr) << #symbol;
#include "runtime/cuda/driver_functions.def"
#undef FUNCTION
}

}  // namespace
}  // namespace kiln::cuda
