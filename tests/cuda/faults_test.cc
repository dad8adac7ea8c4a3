#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "tests/cuda/fake_device.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// Runs add_one where the driver answers a launch with `result`, and then where it does not.
Error refused(int result, ErrorKind kind, const std::string& message) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const Error error = [&] {
    const Setting launch("FAKE_CUDA_LAUNCH", std::to_string(result));
    return expect_error([&] { add_one_on(*device, {1, 2, 3}); }, kind, message);
  }();
  EXPECT_EQ(add_one_on(*device, {1, 2, 3}), (std::vector<float>{2, 3, 4}));
  return error;
}

TEST(CudaFaults, ALaunchThatNeedsTooMuchIsAnErrorOfItsCall) {
  for (const int result : {701, 720}) {
    const Error error = refused(
        result, ErrorKind::ResourceExhausted,
        "the CUDA driver could not start add_one: a block needs more registers or shared memory "
        "than the device has; use smaller blocks");
    EXPECT_EQ(error.reason(), "LAUNCH_RESOURCES");
  }
}

TEST(CudaFaults, CodeThatTheDriverDoesNotRunIsAnErrorOfItsCall) {
  for (const int result : {200, 209, 218, 221, 222, 223}) {
    const Error error = refused(
        result, ErrorKind::Unsupported,
        "the CUDA driver could not start add_one: the device or its driver does not run this code; "
        "compile it for the device's own arch, or update the driver");
    EXPECT_EQ(error.reason(), "DEVICE_CODE");
  }
}

/// A launch that ends with `result` once the device has come to it.
Error fault(Device& device, int result, const std::string& message) {
  const Setting launch("FAKE_CUDA_FAULT", std::to_string(result));
  const Error error = expect_error(
      [&] {
        add_one_on(device, {1, 2, 3});
      },
      ErrorKind::Unavailable, message);
  EXPECT_EQ(error.reason(), "DEVICE_FAULT");  // by which the worker knows that it must end
  return error;
}

TEST(CudaFaults, AFaultOfTheKernelEndsTheProcess) {
  const NewProcessAfterwards restart;
  const std::unique_ptr<Device> device = open_cuda_device(0);
  fault(*device, 700,
        "the CUDA driver could not run add_one: an illegal memory access was encountered "
        "(CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
}

TEST(CudaFaults, ADeviceThatGoesAwayEndsTheProcess) {
  const NewProcessAfterwards restart;
  const std::unique_ptr<Device> device = open_cuda_device(0);
  fault(*device, 999,
        "the CUDA driver could not run add_one: unknown error (CUDA_ERROR_UNKNOWN, 999)");
}

TEST(CudaFaults, SayWhatRanBefore) {
  const NewProcessAfterwards restart;
  const std::unique_ptr<Device> device = open_cuda_device(0);
  add_one_on(*device, std::vector<float>(100, 1.0f));
  const Error error =
      fault(*device, 700,
            "the CUDA driver could not run add_one: an illegal memory access was encountered "
            "(CUDA_ERROR_ILLEGAL_ADDRESS, 700)");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"the last launches, latest first: "
                                                    "add_one <<<(1, 1, 1), (32, 1, 1), 0>>>, "
                                                    "add_one <<<(4, 1, 1), (32, 1, 1), 0>>>"});
}

TEST(CudaFaults, AreWhatEveryLaterCallIsAnswered) {
  const NewProcessAfterwards restart;
  const std::unique_ptr<Device> device = open_cuda_device(0);
  fault(*device, 709,
        "the CUDA driver could not run add_one: context is destroyed "
        "(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)");
  expect_error([&] { device->allocate(4); }, ErrorKind::Unavailable,
               "the CUDA driver could not use the device: context is destroyed "
               "(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)");
}

}  // namespace
}  // namespace kiln::testing
