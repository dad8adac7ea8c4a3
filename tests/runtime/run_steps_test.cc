// Steps of a program on a device with memory of its own.
#include "runtime/program/run_steps.h"

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/cpu/workspace.h"

namespace kiln::testing {
namespace {

class Buffer : public DeviceBuffer {
 public:
  explicit Buffer(int64_t bytes) : memory_(allocate_aligned(bytes)), bytes_(bytes) {}
  void* data() const override { return memory_.get(); }
  int64_t bytes() const override { return bytes_; }

 private:
  const AlignedMemory memory_;
  const int64_t bytes_;
};

class Kernel : public LoadedKernel {
 public:
  const Artifact& artifact() const override { return artifact_; }

 private:
  const Artifact artifact_ = {};
};

/// Adds the three floats of its first argument to the one that is its second, and wants arguments
/// to begin where 16 bytes do.
class Gpu : public Device {
 public:
  std::string name() const override { return "cuda:0"; }
  TargetKind target() const override { return TargetKind::Cuda; }
  std::string arch() const override { return "sm_90"; }
  std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact>) override { return nullptr; }
  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    ++allocations;
    return std::make_unique<Buffer>(bytes);
  }
  void copy_within(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  double run(const LoadedKernel&, const KernelCall& call) override {
    for (void* const tensor : call.tensors)
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor) % 16, 0U);
    for (int i = 0; i < 3; ++i)
      *static_cast<float*>(call.tensors[1]) += static_cast<float*>(call.tensors[0])[i];
    return 0;
  }

  int allocations = 0;
};

// Rows of 12 bytes: every second batch begins where 16 bytes do not.
TEST(RunSteps, AlignsTheRowsOfABatch) {
  Gpu gpu;
  Buffer rows(48);
  Buffer sum(4);
  for (int i = 0; i < 12; ++i)
    static_cast<float*>(rows.data())[i] = static_cast<float>(i);
  *static_cast<float*>(sum.data()) = 0;
  const KernelNames names;
  Step step{.program = "sums",
            .slots = {{rows.data(), 12, true}, {sum.data(), 4, false}},
            .kernels = {{std::make_shared<Kernel>(), &names, {}, {0, 1}}},
            .exchanges = {},
            .reports = {},
            .until = {},
            .step_slot = {},
            .batches = 4};
  const std::atomic<int32_t> cancelled = 0;
  const StepsDone done = run_steps(gpu, step, {.end = 4, .seconds = 60}, cancelled);
  EXPECT_EQ(done.steps, 4U);
  EXPECT_EQ(*static_cast<float*>(sum.data()), 66);
  EXPECT_EQ(gpu.allocations, 1);
}

}  // namespace
}  // namespace kiln::testing
