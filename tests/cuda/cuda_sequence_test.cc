// Kernels that run one after the other, on the fake driver.
#include <array>

#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "runtime/program/run_steps.h"
#include "tests/cuda/fake_device.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

constexpr int64_t kCount = 3;
constexpr int64_t kBytes = kCount * static_cast<int64_t>(sizeof(float));

BoundCall bound_of(const LoadedKernel& kernel) {
  const ArgumentSlot slot{true, {DType::Float32, {kCount}, {}}};
  const std::vector<ArgumentSlot> slots = {slot, slot};
  return bind_arguments(kernel.artifact(), kAddOneNames, slots, {});
}

/// Adds one, a number of times: place 0 -> place 1 -> place 2 ...
class Chain {
 public:
  Chain(Device& device, size_t kernels) : device_(device), kernel_(device.load(add_one())) {
    for (size_t i = 0; i <= kernels; ++i)
      places_.push_back(device.allocate(kBytes));
    sequence_ = device.sequence(std::vector<SequenceKernel>(
        kernels, {.kernel = kernel_.get(), .bound = &bound_, .names = &kAddOneNames}));
  }

  void run(std::array<float, kCount> x, std::span<const DeviceCopy> copies = {}) {
    device_.copy_in(places_.front()->data(), x.data(), kBytes);
    std::vector<std::vector<void*>> tensors;
    for (size_t i = 0; i + 1 < places_.size(); ++i)
      tensors.push_back({places_[i]->data(), places_[i + 1]->data()});
    sequence_->run(tensors, copies, nullptr);
  }

  void exchange_ends() { std::swap(places_.front(), places_.back()); }
  void* first() const { return places_.front()->data(); }

  std::vector<float> result() const {
    std::vector<float> y(kCount);
    device_.copy_out(y.data(), places_.back()->data(), kBytes);
    return y;
  }

 private:
  Device& device_;
  const std::shared_ptr<LoadedKernel> kernel_;
  const BoundCall bound_ = bound_of(*kernel_);
  std::vector<std::unique_ptr<DeviceBuffer>> places_;
  std::unique_ptr<KernelSequence> sequence_;
};

TEST(CudaSequence, IsOneGraphOnceItComesAgain) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  Chain chain(*device, 3);
  const int64_t launches = counted("launches");
  const int64_t graphs = counted("graphs");
  const int64_t graph_launches = counted("graph_launches");
  for (int i = 0; i < 10; ++i)
    chain.run({1, 2, 3});
  EXPECT_EQ(counted("launches"), launches + 6);  // of the first time, and once to record them
  EXPECT_EQ(counted("graphs"), graphs + 1);
  EXPECT_EQ(counted("graph_launches"), graph_launches + 9);
  EXPECT_EQ(chain.result(), (std::vector<float>{4, 5, 6}));
}

TEST(CudaSequence, HasAGraphForEachOfThePlacesThatTakeTurns) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  Chain chain(*device, 2);
  const int64_t graphs = counted("graphs");
  const int64_t graph_launches = counted("graph_launches");
  for (int i = 0; i < 10; ++i) {
    chain.run({1, 2, 3});
    EXPECT_EQ(chain.result(), (std::vector<float>{3, 4, 5}));
    chain.exchange_ends();
  }
  EXPECT_EQ(counted("graphs"), graphs + 2);
  EXPECT_EQ(counted("graph_launches"), graph_launches + 8);
}

TEST(CudaSequence, CopiesBeforeTheFirstKernel) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  Chain chain(*device, 2);
  const std::unique_ptr<DeviceBuffer> other = device->allocate(kBytes);
  const std::array<float, kCount> values = {7, 8, 9};
  device->copy_in(other->data(), values.data(), kBytes);
  const DeviceCopy copy{chain.first(), other->data(), kBytes};
  for (int i = 0; i < 3; ++i) {
    chain.run({1, 2, 3}, {&copy, 1});
    EXPECT_EQ(chain.result(), (std::vector<float>{9, 10, 11}));
  }
}

TEST(CudaSequence, SaysWhichKernelsCheckFiredAndRunsOn) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  Chain chain(*device, 3);
  for (int i = 0; i < 3; ++i) {
    // Of the first that found it; the kernels after it have run.
    expect_error(
        [&] {
          chain.run({1, -1.5F, 3});
        },
        ErrorKind::InvalidArgument,
        "y of add_one reads index 1 of dimension 0 of x, but its extent there is 3");
    chain.run({1, 2, 3});
    EXPECT_EQ(chain.result(), (std::vector<float>{4, 5, 6}));
  }
}

TEST(CudaSequence, RecordsNothingThatIsRefused) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  Chain chain(*device, 3);
  chain.run({1, 2, 3});
  {
    const Setting refused("FAKE_CUDA_LAUNCH", "701");
    EXPECT_THROW(chain.run({1, 2, 3}), Error);
  }
  chain.run({1, 2, 3});
  EXPECT_EQ(chain.result(), (std::vector<float>{4, 5, 6}));
}

TEST(CudaSequence, GivesBackWhatItHas) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const int live = live_allocations();
  { Chain(*device, 3).run({1, 2, 3}); }
  EXPECT_EQ(live_allocations(), live);
}

TEST(CudaSequence, IsCancelledBeforeItsFirstKernel) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::unique_ptr<KernelSequence> none = device->sequence({});
  const std::atomic<int32_t> cancelled = 1;
  expect_error([&] { none->run({}, {}, &cancelled); }, ErrorKind::Cancelled,
               "the call was cancelled before the kernel started");
}

// Two batches of a data set and a parameter that changes places: rows come to one place, so that
// the steps of a run are two graphs however many batches there are.
TEST(CudaSequence, StepsOfAProgramAreTwoGraphs) {
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const std::shared_ptr<LoadedKernel> kernel = device->load(add_one());
  const std::unique_ptr<DeviceBuffer> rows = device->allocate(7 * kBytes);
  const std::unique_ptr<DeviceBuffer> between = device->allocate(kBytes);
  const std::unique_ptr<DeviceBuffer> parameter = device->allocate(kBytes);
  const std::unique_ptr<DeviceBuffer> next = device->allocate(kBytes);
  std::vector<float> values;
  for (int i = 0; i < 7 * kCount; ++i)
    values.push_back(static_cast<float>(i));
  device->copy_in(rows->data(), values.data(), 7 * kBytes);
  Step step;
  step.program = "rows plus two";
  step.slots = {{rows->data(), kBytes, true},
                {between->data(), kBytes, false},
                {parameter->data(), kBytes, false},
                {next->data(), kBytes, false}};
  step.kernels = {{kernel, &kAddOneNames, bound_of(*kernel), {0, 1}},
                  {kernel, &kAddOneNames, bound_of(*kernel), {1, 3}}};
  step.exchanges = {{2, 3}};
  step.reports = {{.slot = 1, .type = DType::Float32, .name = "first"}};
  step.batches = 7;
  const int64_t graphs = counted("graphs");
  const int64_t launches = counted("launches");
  const std::atomic<int32_t> cancelled = 0;
  const StepsDone done = run_steps(*device, step, {.end = 21, .seconds = 600}, cancelled);
  EXPECT_EQ(done.steps, 21U);
  for (size_t i = 0; i < done.reports.size(); ++i)
    EXPECT_EQ(done.reports[i], static_cast<double>(i % 7 * kCount + 1));
  EXPECT_EQ(counted("graphs"), graphs + 2);
  EXPECT_EQ(counted("launches"), launches + 8);
  std::vector<float> last(kCount);
  device->copy_out(last.data(), parameter->data(), kBytes);
  EXPECT_EQ(last, (std::vector<float>{20, 21, 22}));
}

}  // namespace
}  // namespace kiln::testing
