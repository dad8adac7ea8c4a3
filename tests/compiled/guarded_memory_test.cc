#include "tests/support/guarded_memory.h"

#include <gtest/gtest.h>

#include "tests/support/parse_ir.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

/// Runs `B[i + shift] = A[i]` for i in 0..n as it is, without anything that would prove or check
/// it.
void run_shifted(int shift, int calls) {
  const ir::Kernel kernel =
      parse_kernel("A: float32[n], B: float32[n] output",
                   "for i in 0..n { B[i" + std::string(shift < 0 ? " - " : " + ") +
                       std::to_string(std::abs(shift)) + "] = A[i] }");
  const auto artifact = compile_lowered(kernel);
  for (int call = 0; call < calls; ++call) {
    std::vector<HostTensor> tensors = {zeros(DType::Float32, {10}), {}};
    run_artifact(artifact, tensors);
  }
}

// Which end of an argument lies at a page that may not be touched changes with the calls.
TEST(GuardedMemoryDeathTest, SeesAStorePastTheEnd) {
  EXPECT_EXIT(run_shifted(1, 4), ::testing::ExitedWithCode(1),
              "compiled code touched memory 1 bytes past the end of argument 1, which has 40");
}

TEST(GuardedMemoryDeathTest, SeesAStoreBeforeTheStart) {
  EXPECT_EXIT(run_shifted(-1, 4), ::testing::ExitedWithCode(1),
              "compiled code touched memory 4 bytes before the start of argument 1, which has 40");
}

TEST(GuardedMemory, LeavesWhatIsInsideAlone) {
  const ir::Kernel kernel =
      parse_kernel("A: float32[n], B: float32[n] output", "for i in 0..n { B[i] = A[i] }");
  const auto artifact = compile_lowered(kernel);
  for (int call = 0; call < 4; ++call) {
    std::vector<HostTensor> tensors = {tensor_of<float>({5}, {1, 2, 3, 4, 5}), {}};
    run_artifact(artifact, tensors);
    EXPECT_EQ(tensors[1].bytes, tensors[0].bytes);
  }
}

/// The last of them is the last element there is.
TEST(GuardedMemory, HoldsVectorsOfEverySecondElement) {
  const ir::Kernel kernel =
      parse_kernel("A: float32[63], B: float32[32] output",
                   "B[ramp(0, 1, 32)] = A[ramp(0, 2, 32)] + broadcast(1.0, 32)");
  const auto artifact = compile_lowered(kernel);
  std::vector<float> values(63);
  std::vector<float> wanted(32);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = static_cast<float>(2 * i + 1);
  for (int call = 0; call < 4; ++call) {
    std::vector<HostTensor> tensors = {tensor_of<float>({63}, values), {}};
    run_artifact(artifact, tensors);
    EXPECT_EQ(tensors[1].bytes, tensor_of<float>({32}, wanted).bytes);
  }
}

}  // namespace
}  // namespace kiln::testing
