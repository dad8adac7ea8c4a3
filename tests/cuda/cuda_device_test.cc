#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "runtime/device.h"
#include "tests/support/expect_error.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#include "runtime/cuda/driver_api.h"
#endif

namespace kiln {
namespace {

using testing::expect_error;

/// The artifact of y[i] = x[i] + 1 as the fake driver knows it.
std::shared_ptr<Artifact> add_one() {
  auto artifact = std::make_shared<Artifact>();
  artifact->target = TargetKind::Cuda;
  artifact->arch = "sm_90";
  artifact->code = "fake cubin";
  artifact->size_count = 1;
  const SizeExpr n = SizeExpr::scalar(0);
  artifact->parameters = {{DType::Float32, {n}, false}, {DType::Float32, {n}, true}};
  const SizeExpr block = SizeExpr::constant(32);
  artifact->variants.resize(1);
  artifact->variants[0].launches = {
      {"add_one",
       {SizeExpr::binary(SizeExpr::Op::FloorDiv,
                         SizeExpr::binary(SizeExpr::Op::Add, n, SizeExpr::constant(31)), block)},
       {block}}};
  artifact->checks = {{.stage = 1, .tensor = 0, .dimension = 0}};
  return artifact;
}

const KernelNames kNames = {"add_one", {"x", "y"}, {"n"}, {"x", "y"}};

std::vector<float> run(Device& device, const std::vector<float>& x) {
  const std::shared_ptr<LoadedKernel> kernel = device.load(add_one());
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(float));
  const std::unique_ptr<DeviceBuffer> in = device.allocate(bytes);
  const std::unique_ptr<DeviceBuffer> out = device.allocate(bytes);
  device.copy_in(in->data(), x.data(), bytes);
  const ArgumentSlot slot{true, {DType::Float32, {static_cast<int64_t>(x.size())}, {}}};
  const std::vector<ArgumentSlot> slots = {slot, slot};
  const BoundCall bound = bind_arguments(kernel->artifact(), kNames, slots, {});
  void* const tensors[] = {in->data(), out->data()};
  EXPECT_EQ(device.run(*kernel, {.tensors = tensors, .bound = &bound, .names = &kNames}), 0.5e-3);
  std::vector<float> y(x.size());
  device.copy_out(y.data(), out->data(), bytes);
  return y;
}

TEST(CudaDevice, RunsAKernel) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  EXPECT_EQ(device->name(), "cuda:0");
  EXPECT_EQ(device->arch(), "sm_90");
  EXPECT_EQ(run(*device, {1, 2, 3}), (std::vector<float>{2, 3, 4}));
}

TEST(CudaDevice, ReportsAnIndexOutOfRangeInTheCallersNames) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  expect_error(
      [&] {
        run(*device, {1, -2, 3});
      },
      ErrorKind::InvalidArgument,
      "y of add_one reads index 1 of dimension 0 of x, but its extent there is 3");
}

/// What a function of the fake driver counts.
int counted(const char* function) {
  void* driver = dlopen(std::getenv("KILN_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
  const auto count = reinterpret_cast<int (*)()>(dlsym(driver, function));
  return count != nullptr ? count() : -1;
}

TEST(CudaDevice, FreesWhatACallAllocated) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  run(*device, {1});
  EXPECT_EQ(counted("fake_cuda_live_allocations"), 0);
  EXPECT_EQ(counted("fake_cuda_handed_out"), 0);
}

TEST(CudaDevice, GivesBackTheCodeOfAKernelThatItCannotLoad) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->variants[0].launches[0].entry = "other";
  EXPECT_THROW(device->load(artifact), Error);
  EXPECT_EQ(counted("fake_cuda_handed_out"), 0);
}

TEST(CudaDevice, GivesBackTheFirstEventWhereThereIsNoSecond) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  setenv("FAKE_CUDA_EVENTS", "2", 1);  // a module and an event
  EXPECT_THROW(run(*device, {1}), Error);
  unsetenv("FAKE_CUDA_EVENTS");
  EXPECT_EQ(counted("fake_cuda_handed_out"), 0);
  EXPECT_EQ(counted("fake_cuda_live_allocations"), 0);
}

TEST(CudaDevice, SaysWhenItsMemoryIsFull) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  expect_error(
      [&] { device->allocate(int64_t{1} << 40); }, ErrorKind::ResourceExhausted,
      "the CUDA driver could not allocate 1099511627776 bytes: the device is out of memory");
}

TEST(CudaDevice, RefusesAnotherArchitecture) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->arch = "sm_80";
  expect_error([&] { device->load(artifact); }, ErrorKind::InvalidArgument,
               "the kernel was compiled for sm_80, but cuda:0 is sm_90; compile it for sm_90");
}

TEST(CudaDevice, RefusesCodeOfALaterMinorNumber) {
  setenv("FAKE_CUDA_MAJOR", "8", 1);
  const std::unique_ptr<Device> device = open_cuda_device(0);
  unsetenv("FAKE_CUDA_MAJOR");
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->arch = "sm_86";
  expect_error([&] { device->load(artifact); }, ErrorKind::InvalidArgument,
               "the kernel was compiled for sm_86, but cuda:0 is sm_80; compile it for sm_80");
}

TEST(CudaDevice, NamesTheKernelThatTheCodeLacks) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->variants[0].launches[0].entry = "other";
  expect_error([&] { device->load(artifact); }, ErrorKind::Internal,
               "the CUDA driver could not find other in the kernel: named symbol not found "
               "(CUDA_ERROR_NOT_FOUND, 500)");
}

/// Runs add_one where the driver answers a launch, or waiting for it, with `result`.
Error refused(const char* variable, int result, ErrorKind kind, const std::string& message) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  setenv(variable, fmt::format("{}", result).c_str(), 1);
  const Error error = expect_error([&] { run(*device, {1, 2, 3}); }, kind, message);
  unsetenv(variable);
  EXPECT_EQ(run(*device, {1, 2, 3}), (std::vector<float>{2, 3, 4}));
  return error;
}

TEST(CudaDevice, ALaunchThatNeedsTooMuchIsAnErrorOfItsCall) {
  for (const int result : {701, 720}) {
    const Error error = refused(
        "FAKE_CUDA_LAUNCH", result, ErrorKind::ResourceExhausted,
        "the CUDA driver could not start add_one: a block needs more registers or shared memory "
        "than the device has; use smaller blocks");
    EXPECT_EQ(error.reason(), "LAUNCH_RESOURCES");
  }
}

TEST(CudaDevice, CodeThatTheDriverDoesNotRunIsAnErrorOfItsCall) {
  for (const int result : {200, 209, 218, 221, 222, 223}) {
    const Error error = refused(
        "FAKE_CUDA_LAUNCH", result, ErrorKind::Unsupported,
        "the CUDA driver could not start add_one: the device or its driver does not run this code; "
        "compile it for the device's own arch, or update the driver");
    EXPECT_EQ(error.reason(), "DEVICE_CODE");
  }
}

TEST(CudaDevice, AFaultOfTheKernelEndsTheProcess) {
  const Error error = refused("FAKE_CUDA_FAULT", 700, ErrorKind::Unavailable,
                              "the CUDA driver could not run add_one: an illegal memory access was "
                              "encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  EXPECT_EQ(error.reason(), "DEVICE_FAULT");  // by which device_loop knows
}

TEST(CudaDevice, SaysHowManyThereAre) {
  expect_error([] { open_cuda_device(3); }, ErrorKind::Unavailable,
               "this host has no cuda:3; it has 1 CUDA device, cuda:0");
}

#if __has_include(<cuda.h>)
template <typename Ours, typename Theirs>
struct SameShape : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct SameShape<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && ((sizeof(A) == sizeof(B)) && ...)> {};

TEST(DriverApi, IsDeclaredAsTheToolkitDeclaresIt) {
  using Api = cuda::DriverApi;
  static_assert(SameShape<decltype(Api::allocate), decltype(&cuMemAlloc)>::value);
  static_assert(SameShape<decltype(Api::free), decltype(&cuMemFree)>::value);
  static_assert(SameShape<decltype(Api::copy_in), decltype(&cuMemcpyHtoD)>::value);
  static_assert(SameShape<decltype(Api::copy_out), decltype(&cuMemcpyDtoH)>::value);
  static_assert(SameShape<decltype(Api::load_module), decltype(&cuModuleLoadData)>::value);
  static_assert(SameShape<decltype(Api::find_function), decltype(&cuModuleGetFunction)>::value);
  static_assert(SameShape<decltype(Api::launch), decltype(&cuLaunchKernel)>::value);
  static_assert(SameShape<decltype(Api::create_event), decltype(&cuEventCreate)>::value);
  static_assert(
      SameShape<decltype(Api::retain_context), decltype(&cuDevicePrimaryCtxRetain)>::value);
  static_assert(cuda::kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  static_assert(cuda::kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  static_assert(cuda::kMaxThreadsOfBlock == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  static_assert(cuda::kMaxBlockX == CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  static_assert(cuda::kMaxBlockX + 2 == CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  static_assert(cuda::kMaxGridX == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  static_assert(cuda::kMaxGridX + 2 == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  static_assert(cuda::kMaxSharedBytesOptIn ==
                CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  static_assert(cuda::kFunctionMaxDynamicSharedBytes ==
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
}
#endif

}  // namespace
}  // namespace kiln
