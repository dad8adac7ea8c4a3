#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "tests/cuda/fake_device.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(CudaDevice, RunsAKernel) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  EXPECT_EQ(device->name(), "cuda:0");
  EXPECT_EQ(device->arch(), "sm_90");
  EXPECT_EQ(add_one_on(*device, {1, 2, 3}), (std::vector<float>{2, 3, 4}));
}

/// add_one() on the elements from `in` on of memory with `values`, written to those from `out` on.
/// Returns what is there then.
std::vector<float> add_one_within(Device& device, std::vector<float> values, size_t in, size_t out,
                                  size_t count) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
  const std::unique_ptr<DeviceBuffer> memory = device.allocate(bytes);
  device.copy_in(memory->data(), values.data(), bytes);
  const std::shared_ptr<LoadedKernel> kernel = device.load(add_one());
  const ArgumentSlot slot{true, {DType::Float32, {static_cast<int64_t>(count)}, {}}};
  const BoundCall bound = bind_arguments(kernel->artifact(), kAddOneNames, {{slot, slot}}, {});
  auto* const first = static_cast<float*>(memory->data());
  void* const tensors[] = {first + in, first + out};
  std::optional<Error> error;
  try {
    device.run(*kernel, {.tensors = tensors, .bound = &bound, .names = &kAddOneNames});
  } catch (const Error& fired) {
    error = fired;
  }
  EXPECT_EQ(error.has_value(), std::ranges::any_of(values, [](float x) { return x < 0; }));
  device.copy_out(values.data(), memory->data(), bytes);
  return values;
}

TEST(CudaDevice, WritesAnOutputThatSharesMemoryWithAnInputAfterTheCall) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  EXPECT_EQ(add_one_within(*device, {1, 2, 3}, 0, 0, 3), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(add_one_within(*device, {5, 1, 1, 1}, 0, 1, 3), (std::vector<float>{5, 6, 2, 2}));
  EXPECT_EQ(add_one_within(*device, {5, 1, 1, 1}, 1, 0, 3), (std::vector<float>{2, 2, 2, 1}));
  // A check fires: nothing is written.
  EXPECT_EQ(add_one_within(*device, {1, 2, -3}, 0, 0, 3), (std::vector<float>{1, 2, -3}));
  EXPECT_EQ(live_allocations(), 0);
}

TEST(CudaDevice, ReportsAnIndexOutOfRangeInTheCallersNames) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  expect_error(
      [&] {
        add_one_on(*device, {1, -2, 3});
      },
      ErrorKind::InvalidArgument,
      "y of add_one reads index 1 of dimension 0 of x, but its extent there is 3");
  EXPECT_EQ(add_one_on(*device, {1}), (std::vector<float>{2}));
}

TEST(CudaDevice, CopiesNothingForACall) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  AddOneCall call(*device, {1, 2, 3});
  const int64_t bytes = counted("copied_bytes");
  const int64_t launches = counted("launches");
  const int64_t events = counted("events");
  for (int i = 0; i < 1000; ++i)
    call.run();
  EXPECT_EQ(counted("copied_bytes"), bytes);
  EXPECT_EQ(counted("launches"), launches + 1000);
  EXPECT_EQ(counted("events"), events);
  EXPECT_EQ(call.y(), (std::vector<float>{2, 3, 4}));
}

TEST(CudaDevice, TakesTheTimeBetweenTheFirstLaunchAndTheLast) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  // On the fake device's clock, which moves with each piece of work.
  EXPECT_EQ(AddOneCall(*device, {1}).run(), 0.5e-3);
}

TEST(CudaDevice, StartsLaunchesThatComeAgainAsOneGraph) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  AddOneCall call(*device, {1, 2, 3}, add_one_twice());
  const int64_t launches = counted("launches");
  const int64_t graphs = counted("graphs");
  const int64_t graph_launches = counted("graph_launches");
  for (int i = 0; i < 10; ++i)
    call.run();
  EXPECT_EQ(counted("launches"), launches + 4);  // of the first call, and once to record them
  EXPECT_EQ(counted("graphs"), graphs + 1);
  EXPECT_EQ(counted("graph_launches"), graph_launches + 9);
  EXPECT_EQ(call.y(), (std::vector<float>{2, 3, 4}));
}

TEST(CudaDevice, RepeatsTheLaunchesOfALoop) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one_twice();
  artifact->variants[0].loops = {{1, 2, SizeExpr::scalar(0)}};
  AddOneCall call(*device, {1, 2, 3, 4, 5}, artifact);
  const int64_t launches = counted("launches");
  call.run();
  EXPECT_EQ(counted("launches"), launches + 6);
  EXPECT_EQ(call.y(), (std::vector<float>{2, 3, 4, 5, 6}));
}

TEST(CudaDevice, RecordsNoGraphOfVeryManyLaunches) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one_twice();
  artifact->variants[0].loops = {{1, 2, SizeExpr::constant(2000)}};
  AddOneCall call(*device, {1}, artifact);
  const int64_t graph_launches = counted("graph_launches");
  call.run();
  call.run();
  EXPECT_EQ(counted("graph_launches"), graph_launches);
}

TEST(CudaDevice, RecordsNoGraphOfLaunchesThatAreRefused) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  AddOneCall call(*device, {1, 2, 3}, add_one_twice());
  call.run();
  {
    const Setting refused("FAKE_CUDA_LAUNCH", "701");
    EXPECT_THROW(call.run(), Error);
  }
  call.run();
  EXPECT_EQ(call.y(), (std::vector<float>{2, 3, 4}));
}

TEST(CudaDevice, FreesWhatACallAllocated) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const int handed = handed_out();
  add_one_on(*device, {1});
  EXPECT_EQ(live_allocations(), 0);
  EXPECT_EQ(handed_out(), handed);
}

TEST(CudaDevice, GivesEverythingBackAtItsEnd) {
  open_cuda_device(0);
  EXPECT_EQ(handed_out(), 0);
}

TEST(CudaDevice, GivesBackWhatItHasWhereTheDriverHasNoMoreEvents) {
  {
    const Setting few("FAKE_CUDA_HANDLES", "3");
    EXPECT_THROW(open_cuda_device(0), Error);
  }
  EXPECT_EQ(handed_out(), 0);
}

TEST(CudaDevice, GivesBackTheCodeOfAKernelThatItCannotLoad) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const int handed = handed_out();
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->variants[0].launches[0].entry = "other";
  EXPECT_THROW(device->load(artifact), Error);
  EXPECT_EQ(handed_out(), handed);
}

TEST(CudaDevice, RefusesAnotherArchitecture) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->arch = "sm_80";
  expect_error([&] { device->load(artifact); }, ErrorKind::InvalidArgument,
               "the kernel was compiled for sm_80, but cuda:0 is sm_90; compile it for sm_90");
}

TEST(CudaDevice, RefusesCodeOfALaterMinorNumber) {
  const Setting major("FAKE_CUDA_MAJOR", "8");
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->arch = "sm_86";
  expect_error([&] { device->load(artifact); }, ErrorKind::InvalidArgument,
               "the kernel was compiled for sm_86, but cuda:0 is sm_80; compile it for sm_80");
}

TEST(CudaDevice, HasTheDriverCompilePtxOfAnEarlierArchitecture) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->arch = "sm_80";
  artifact->ptx = "fake ptx";
  AddOneCall call(*device, {1, 2}, artifact);
  call.run();
  EXPECT_EQ(call.y(), (std::vector<float>{2, 3}));
}

TEST(CudaDevice, HasTheDriverCompilePtxWhereItDoesNotKnowTheMachineCode) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const Setting refused("FAKE_CUDA_LOAD", "209");
  EXPECT_THROW(device->load(add_one()), Error);  // there is no PTX
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->ptx = "fake ptx";
  AddOneCall call(*device, {1, 2}, artifact);
  call.run();
  EXPECT_EQ(call.y(), (std::vector<float>{2, 3}));
}

/// add_one() with code made of tiles, which adds 10.
std::shared_ptr<Artifact> add_ten_in_tiles() {
  std::shared_ptr<Artifact> artifact = add_one();
  artifact->checks.clear();
  artifact->variants[0].tile_code = {"fake tiles"};
  const SizeExpr one = SizeExpr::constant(1);
  artifact->variants[0].tile_launches = {{"add_ten", {one}, {one, one, one}}};
  return artifact;
}

std::vector<float> one_and_two_by(Device& device, const std::shared_ptr<Artifact>& artifact) {
  AddOneCall call(device, {1, 2}, artifact);
  call.run();
  return call.y();
}

TEST(CudaDevice, RunsCodeMadeOfTiles) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  EXPECT_EQ(one_and_two_by(*device, add_ten_in_tiles()), (std::vector<float>{11, 12}));
}

TEST(CudaDevice, RunsSeveralLaunchesOfCodeMadeOfTiles) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_ten_in_tiles();
  const SizeExpr one = SizeExpr::constant(1);
  Variant& variant = artifact->variants[0];
  variant.tile_launches = {{"leave_ten", {one}, {one, one, one}},
                           {"double_what_was_left", {one}, {one, one, one}}};
  variant.tile_code.push_back("fake tiles");
  variant.tile_workspace_bytes =
      SizeExpr::binary(SizeExpr::Op::Mul, SizeExpr::scalar(0), SizeExpr::constant(4));
  EXPECT_EQ(one_and_two_by(*device, artifact), (std::vector<float>{22, 24}));
}

/// What launches of the other code leave for each other may be more than a device has.
TEST(CudaDevice, GivesCodeMadeOfTilesNoWorkspace) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_ten_in_tiles();
  artifact->variants[0].workspace_bytes = SizeExpr::constant(int64_t{1} << 50);
  EXPECT_EQ(one_and_two_by(*device, artifact), (std::vector<float>{11, 12}));
  artifact->variants[0].tile_code = {"tiles of a later version"};
  EXPECT_THROW(one_and_two_by(*device, artifact), Error);
}

/// Copies of factors, which the other code reads as they lie.
TEST(CudaDevice, RunsItsOtherCodeWhereTilesWantMoreMemoryThanThereIs) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_ten_in_tiles();
  Variant& variant = artifact->variants[0];
  variant.tile_workspace_bytes = SizeExpr::constant(int64_t{1} << 50);
  EXPECT_EQ(one_and_two_by(*device, artifact), (std::vector<float>{2, 3}));
  variant.tile_workspace_bytes = SizeExpr::constant(1000);
  EXPECT_EQ(one_and_two_by(*device, artifact), (std::vector<float>{11, 12}));
  const Setting less("FAKE_CUDA_MEMORY", "900");  // that others have left
  EXPECT_EQ(one_and_two_by(*device, artifact), (std::vector<float>{2, 3}));
}

TEST(CudaDevice, SaysThatMemoryIsShortWhereItsOtherCodeWantsTooMuchToo) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_ten_in_tiles();
  Variant& variant = artifact->variants[0];
  variant.tile_workspace_bytes = SizeExpr::constant(int64_t{1} << 50);
  variant.workspace_bytes = SizeExpr::constant(int64_t{1} << 40);
  const Error error =
      expect_error([&] { one_and_two_by(*device, artifact); }, ErrorKind::ResourceExhausted,
                   "cuda:0 has no room for 1099511627776 bytes: 16 of its 1073741824 are in use");
  EXPECT_EQ(error.reason(), "DEVICE_MEMORY");
}

TEST(CudaDevice, RunsItsOtherCodeWhereTheDriverIsOlderThanTiles) {
  const Setting version("FAKE_CUDA_VERSION", "12080");
  const std::unique_ptr<Device> device = open_cuda_device(0);
  EXPECT_EQ(one_and_two_by(*device, add_ten_in_tiles()), (std::vector<float>{2, 3}));
}

TEST(CudaDevice, RunsItsOtherCodeWhereTheDriverRefusesTiles) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_ten_in_tiles();
  artifact->variants[0].tile_code = {"tiles of a later version"};
  EXPECT_EQ(one_and_two_by(*device, artifact), (std::vector<float>{2, 3}));
}

/// Machine code of sm_80 runs on sm_86, but not that made of tiles, which has what sm_80 alone has.
TEST(CudaDevice, RunsItsOtherCodeOnALaterMinorNumber) {
  const Setting major("FAKE_CUDA_MAJOR", "8");
  const std::shared_ptr<Artifact> artifact = add_ten_in_tiles();
  artifact->arch = "sm_80";
  EXPECT_EQ(one_and_two_by(*open_cuda_device(0), artifact), (std::vector<float>{11, 12}));
  const Setting minor("FAKE_CUDA_MINOR", "6");
  EXPECT_EQ(one_and_two_by(*open_cuda_device(0), artifact), (std::vector<float>{2, 3}));
}

TEST(CudaDevice, SaysWhatTheDriverHasAgainstPtx) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->arch = "sm_80";
  artifact->ptx = "bad ptx";
  const Error error = expect_error(
      [&] { device->load(artifact); }, ErrorKind::Unsupported,
      "the CUDA driver could not load the kernel: the device or its driver does not run this code; "
      "compile it for the device's own arch, or update the driver");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"the driver says: line 3: fake error"});
}

TEST(CudaDevice, NamesTheKernelThatTheCodeLacks) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<Artifact> artifact = add_one();
  artifact->variants[0].launches[0].entry = "other";
  expect_error([&] { device->load(artifact); }, ErrorKind::Internal,
               "the CUDA driver could not find other in the kernel: named symbol not found "
               "(CUDA_ERROR_NOT_FOUND, 500)");
}

TEST(CudaDevice, SaysHowManyThereAre) {
  expect_error([] { open_cuda_device(3); }, ErrorKind::Unavailable,
               "this host has no cuda:3; it has 1 CUDA device, cuda:0");
}

TEST(CudaDevice, SeveralRunSideBySide) {
  const Setting two("FAKE_CUDA_DEVICES", "2");
  const std::unique_ptr<Device> first = open_cuda_device(0);
  const std::unique_ptr<Device> second = open_cuda_device(1);
  EXPECT_EQ(second->name(), "cuda:1");
  AddOneCall on_first(*first, {1});
  AddOneCall on_second(*second, {2});
  on_first.run();
  on_second.run();
  EXPECT_EQ(on_first.y(), (std::vector<float>{2}));
  EXPECT_EQ(on_second.y(), (std::vector<float>{3}));
}

}  // namespace
}  // namespace kiln::testing
