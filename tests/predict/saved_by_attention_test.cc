#include "compiler/predict/saved_by_attention.h"

#include <gtest/gtest.h>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "tests/support/kernels.h"

namespace kiln::predict {
namespace {

using testing::kernel_of;

/// Four heads of 128 queries and keys of so many numbers.
language::Kernel attention(std::string_view type, std::string_view width) {
  return kernel_of(
             fmt::format(
                 R"(kernel attention(Q: {0}[4, 128, {1}], K: {0}[4, 128, {1}], V: {0}[4, 128, {1}]) -> (O: {0}[4, 128, {1}]) {{
  S: float32[4, 128, 128]
  S[h, i, j] = sum[k < {1}](float32(Q[h, i, k]) * float32(K[h, j, k]))
  M: float32[4, 128]
  M[h, i] = max[j < 128](S[h, i, j])
  E: float32[4, 128, 128]
  E[h, i, j] = exp(S[h, i, j] - M[h, i])
  L: float32[4, 128]
  L[h, i] = sum[j < 128](E[h, i, j])
  O[h, i, d] = {0}(sum[j < 128](float32({0}(E[h, i, j] / L[h, i])) * float32(V[h, j, d])))
}})",
                 type, width))
      .kernel;
}

TEST(SavedByAttention, IsWhatItsStagesMoveInMemory) {
  const autoschedule::GpuMachine h100 = autoschedule::gpu_machine("sm_90");
  const double bytes = 2.0 * 4 * (2 * 4 * 128 * 128 + 2 * 4 * 128);  // S and E, M and L
  const double bytes_a_second = h100.memory_bytes * 132 * h100.gigahertz * 1e9;
  EXPECT_DOUBLE_EQ(saved_by_attention(attention("float16", "64"), "sm_90"), bytes / bytes_a_second);
  EXPECT_DOUBLE_EQ(saved_by_attention(attention("float32", "64"), "sm_90"), bytes / bytes_a_second);
}

TEST(SavedByAttention, IsNothingWhereNoBlockDoesIt) {
  EXPECT_GT(saved_by_attention(attention("float16", "64"), "sm_75"), 0);
  EXPECT_GT(saved_by_attention(attention("float16", "20"), "sm_90"), 0);
  EXPECT_GT(saved_by_attention(attention("float16", "512"), "sm_90"), 0);
  const char* product =
      "kernel p(A: float16[64, 64], B: float16[64, 64]) -> (C: float32[64, 64]) {"
      " C[i, j] = sum[k < 64](float32(A[i, k]) * float32(B[k, j])) }";
  EXPECT_EQ(saved_by_attention(kernel_of(product).kernel, "sm_90"), 0);
}

}  // namespace
}  // namespace kiln::predict
