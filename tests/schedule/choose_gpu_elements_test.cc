// What element-wise stages become on a GPU, where no step says how they run: they are computed
// where they are read.
#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string automatic(std::string_view definition) {
  const language::TextKernel text = kernel_of(definition);
  const Target target{TargetKind::Cuda, "sm_90"};
  return lowered_text(text.kernel, choose_schedule(text.kernel, {}, target, {}), target, {}, "");
}

/// Tensors that a kernel allocates in the GPU's memory.
int64_t stored_between(std::string_view definition) {
  const std::string lowered = automatic(definition);
  constexpr std::string_view kGlobal = "scope(global)";
  int64_t count = 0;
  for (size_t at = lowered.find(kGlobal); at != std::string::npos;
       at = lowered.find(kGlobal, at + 1))
    ++count;
  return count;
}

TEST(ChooseGpuElements, AChainIsOneLaunch) {
  EXPECT_EQ(automatic(R"(kernel k(X: float32[8, 64], B: float32[64]) -> (Y: float32[8, 64]) {
  S: float32[8, 64]
  S[i, j] = X[i, j] + B[j]
  T: float32[8, 64]
  T[i, j] = S[i, j] * 2.0
  Y[i, j] = max(T[i, j], 0.0)
})"),
            R"(fn k(X: float32[8, 64], B: float32[64], Y: float32[8, 64]) {
  for blockIdx.x in 0..2 bind {
    for threadIdx.x in 0..256 bind {
      Y[blockIdx.x*4 + floordiv(threadIdx.x, 64), floormod(threadIdx.x, 64)] = max((X[blockIdx.x*4 + floordiv(threadIdx.x, 64), floormod(threadIdx.x, 64)] + B[floormod(threadIdx.x, 64)])*2.0, 0.0)
    }
  }
}
)");
}

TEST(ChooseGpuElements, AnElementMayBeNamedOften) {
  EXPECT_EQ(stored_between(R"(kernel k(X: float32[8, 64]) -> (Y: float32[8, 64]) {
  T: float32[8, 64]
  T[i, j] = X[i, j] + 1.0
  U: float32[8, 64]
  U[i, j] = tanh(T[i, j])
  Y[i, j] = T[i, j] * U[i, j] + T[i, j]
})"),
            0);
}

// As text a chain of squares doubles with each: 2, 4, .. 1024 reads.
TEST(ChooseGpuElements, WhatWouldBeLongWrittenOutIsStored) {
  std::string definition = "kernel k(T0: float32[64]) -> (T10: float32[64]) {\n";
  for (int i = 1; i <= 10; ++i) {
    if (i < 10) definition += fmt::format("  T{}: float32[64]\n", i);
    definition += fmt::format("  T{0}[i] = T{1}[i] * T{1}[i]\n", i, i - 1);
  }
  EXPECT_EQ(stored_between(definition + "}"), 1);
}

// Heads side by side again: what is read of T is another element for each of Y, by its digits.
TEST(ChooseGpuElements, AViewOfOtherExtentsIsReadInOneLaunch) {
  EXPECT_EQ(stored_between(R"(kernel k(X: float32[4, 8, 128, 16]) -> (Y: float32[512, 128]) {
  T: float32[4, 128, 8, 16]
  T[b, s, h, d] = X[b, h, s, d]
  Y[i, j] = T[i // 128, i % 128, j // 16, j % 16]
})"),
            0);
  // One of a flat tensor, whose elements are counted by sums; and one that reads some of them
  // twice.
  EXPECT_EQ(stored_between(R"(kernel k(X: float32[4096]) -> (Y: float32[4, 16, 64]) {
  T: float32[4096]
  T[i] = X[i] * 2.0
  Y[a, b, c] = T[a*1024 + b*64 + c]
})"),
            0);
  EXPECT_EQ(stored_between(R"(kernel k(X: float32[4096]) -> (Y: float32[4, 16, 64]) {
  T: float32[4096]
  T[i] = tanh(X[i])
  Y[a, b, c] = T[a*1024 + b*63 + c]
})"),
            1);
}

// What is made of rows and of their mean is computed with it, and so is a view of it whose first
// dimensions are those of the rows or parts of one.
TEST(ChooseGpuElements, AViewOfRowsIsPartOfTheirLaunch) {
  const auto view = [](std::string_view shape, std::string_view place) {
    return fmt::format(R"(kernel k(X: float32[16, 4, 32]) -> (Y: float32[{}]) {{
  M: float32[16]
  M[a] = sum[b < 4, c < 32](X[a, b, c])
  T: float32[16, 4, 32]
  T[a, b, c] = X[a, b, c] - M[a]
  {}
}})",
                       shape, place);
  };
  EXPECT_EQ(stored_between(view("64, 32", "Y[i, j] = T[i // 4, i % 4, j]")), 0);
  EXPECT_EQ(stored_between(view("16, 128", "Y[i, j] = T[i, j // 32, j % 32]")), 0);
  // Parts of the only dimension have no loop of their own along their elements.
  EXPECT_EQ(stored_between(view("2048", "Y[i] = T[i // 128, i // 32 % 4, i % 32]")), 1);
}

// Its elements would be read one by one from other lines of X.
TEST(ChooseGpuElements, AViewOfATransposeIsMadeOfAStoredOne) {
  EXPECT_EQ(stored_between(R"(kernel k(X: float32[64, 512]) -> (Y: float32[256, 128]) {
  T: float32[512, 64]
  T[i, j] = X[j, i]
  Y[i, j] = T[i*2 + j // 64, j % 64]
})"),
            1);
}

// What is named once grows no longer, however much it reads itself.
TEST(ChooseGpuElements, ALongStageThatIsNamedOnceIsNotStored) {
  std::string sum = "X[i]";
  for (int i = 1; i < 70; ++i)
    sum += fmt::format(" + X[i + {}]", i);
  EXPECT_EQ(stored_between(fmt::format("kernel k(X: float32[200]) -> (Y: float32[64]) {{\n"
                                       "  T: float32[64]\n  T[i] = {}\n"
                                       "  Y[i] = max(T[i], 0.0)\n}}",
                                       sum)),
            0);
}

TEST(ChooseGpuElements, WhatIsReadAtOtherPlacesOrByTwoIsStored) {
  EXPECT_EQ(stored_between(R"(kernel k(X: float32[66]) -> (Y: float32[64]) {
  T: float32[66]
  T[i] = X[i] * 2.0
  Y[i] = T[i] + T[i + 2]
})"),
            1);
  EXPECT_EQ(stored_between(
                R"(kernel k(X: float32[64], B: float32[8, 64]) -> (Y: float32[8, 64]) {
  T: float32[64]
  T[i] = exp(X[i])
  Y[i, j] = B[i, j] * T[j]
})"),
            1);
  EXPECT_EQ(stored_between(
                R"(kernel k(X: float32[64]) -> (Y: float32[64], Z: float32[64]) {
  T: float32[64]
  T[i] = exp(X[i])
  Y[i] = T[i] + 1.0
  Z[i] = T[i] - 1.0
})"),
            1);
}

TEST(ChooseGpuElements, WhatASumReadsIsComputedInIt) {
  const std::string lowered = automatic(R"(kernel k(X: float32[64, 512]) -> (S: float32[64]) {
  T: float32[64, 512]
  T[i, j] = X[i, j] * X[i, j]
  S[i] = sum[j < 512](T[i, j])
})");
  EXPECT_NE(lowered.find("for blockIdx.x in 0..64 bind"), std::string::npos) << lowered;
  EXPECT_NE(lowered.find("vectorize"), std::string::npos) << lowered;
  EXPECT_EQ(lowered.find("scope(global)"), std::string::npos) << lowered;
}

// What is read across is seen through the stage between, and turned in shared memory.
TEST(ChooseGpuElements, WhatIsTurnedMayBeReadThroughAnotherStage) {
  const std::string lowered = automatic(R"(kernel k(X: float32[64, 96]) -> (Y: float32[96, 64]) {
  T: float32[96, 64]
  T[j, i] = X[i, j] * 3.0
  Y[j, i] = max(T[j, i], 0.0)
})");
  EXPECT_NE(lowered.find("allocate X.shared: float32[32, 32] scope(shared) swizzle(128)"),
            std::string::npos)
      << lowered;
  EXPECT_EQ(lowered.find("scope(global)"), std::string::npos) << lowered;
}

// A row's maximum that a stage between names with the axes swapped is not of the reader's own row.
TEST(ChooseGpuElements, ARowIsSeenThroughTheStageBetween) {
  const std::string lowered = automatic(R"(kernel k(X: float32[64, 96]) -> (Y: float32[96, 64]) {
  M: float32[64]
  M[i] = max[j < 96](X[i, j])
  D: float32[64, 96]
  D[i, j] = X[i, j] - M[i]
  Y[j, i] = exp(D[i, j])
})");
  EXPECT_NE(lowered.find("allocate M: float32[64] scope(global)"), std::string::npos) << lowered;
}

}  // namespace
}  // namespace kiln::testing
