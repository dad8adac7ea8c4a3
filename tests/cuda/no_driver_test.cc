#include <cstdlib>

#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "runtime/device.h"
#include "tests/support/expect_error.h"

// In a process of its own: a driver that was found once stays open.
namespace kiln {
namespace {

using testing::expect_error;

TEST(NoDriver, IsOneSentenceThatSaysWhatToDo) {
  setenv("KILN_LIBCUDA", "libcuda-that-is-not-there.so", 1);
  const Error error = expect_error(
      [] { open_cuda_device(0); }, ErrorKind::Unavailable,
      "this host has no NVIDIA driver (libcuda-that-is-not-there.so was not found); install the "
      "driver, or run where there is a GPU; to compile without one, name an arch such as sm_90");
  EXPECT_EQ(error.reason(), "NO_DEVICE");
}

TEST(NoDriver, AContainerNeedsToBeGivenTheGpus) {
  setenv("KILN_LIBCUDA", "libcuda-that-is-not-there.so", 1);
  setenv("NVIDIA_VISIBLE_DEVICES", "all", 1);
  const Error error = expect_error(
      [] { open_cuda_device(0); }, ErrorKind::Unavailable,
      "this container sees no NVIDIA driver (libcuda-that-is-not-there.so was not found); start it "
      "with --gpus all, on a host with a GPU and NVIDIA's container toolkit; to compile without "
      "one, name an arch such as sm_90");
  unsetenv("NVIDIA_VISIBLE_DEVICES");
  EXPECT_EQ(error.reason(), "NO_DEVICE");
}

TEST(NoDriver, ADriverWithoutAGpuSaysSo) {
  setenv("KILN_LIBCUDA", FAKE_LIBCUDA, 1);
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  const Error error =
      expect_error([] { open_cuda_device(0); }, ErrorKind::Unavailable,
                   "this host has an NVIDIA driver but no usable GPU (no CUDA-capable device is "
                   "detected); check "
                   "nvidia-smi, and in a container that the GPUs were passed in (--gpus all)");
  EXPECT_EQ(error.reason(), "NO_DEVICE");
}

TEST(NoDriver, AnOldDriverIsToldByItsNumber) {
  setenv("KILN_LIBCUDA", FAKE_LIBCUDA, 1);
  setenv("FAKE_CUDA_VERSION", "11040", 1);
  const Error error = expect_error(
      [] { open_cuda_device(0); }, ErrorKind::Unavailable,
      "the NVIDIA driver (libcuda.so.1) is too old: it is one of CUDA 11.4; install a driver of "
      "CUDA 12 or later");
  EXPECT_EQ(error.reason(), "NO_DEVICE");
}

TEST(NoDriver, ADriverWithoutAFunctionIsToldByIt) {
  setenv("KILN_LIBCUDA", FAKE_OLD_LIBCUDA, 1);
  const Error error = expect_error(
      [] { open_cuda_device(0); }, ErrorKind::Unavailable,
      "the NVIDIA driver (libcuda.so.1) is too old: it has no cuGraphInstantiateWithFlags; install "
      "a driver of CUDA 12 or later");
  EXPECT_EQ(error.reason(), "NO_DEVICE");
}

}  // namespace
}  // namespace kiln
