/// Which loops cores share: those that take longer than waking them, by what the machine does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

bool is_shared(std::string_view text, const std::string& arch = "znver3") {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  const std::string steps =
      language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, {}));
  return steps.find("parallel(") != std::string::npos;
}

std::string of_line(std::string_view value, std::string_view type, std::string_view extent) {
  return fmt::format("kernel k(X: {0}[{1}]) -> (Y: {0}[{1}]) {{ Y[i] = {2} }}\n", type, extent,
                     value);
}

/// Measured on a Zen 3: two cores take as long as one for 4 us of work of one.
TEST(ChooseSharing, AsksWhatElementsTake) {
  EXPECT_FALSE(is_shared(of_line("X[i] + X[i]", "int8", "16384")));
  EXPECT_FALSE(is_shared(of_line("2.0 * X[i] + 1.0", "float32", "32768")));
  EXPECT_TRUE(is_shared(of_line("2.0 * X[i] + 1.0", "float32", "131072")));
  EXPECT_FALSE(is_shared(of_line("exp(X[i])", "float32", "4096")));
  EXPECT_TRUE(is_shared(of_line("exp(X[i])", "float32", "16384")));
  EXPECT_TRUE(is_shared(of_line("exp(X[i])", "float64", "8192")));
}

TEST(ChooseSharing, KnowsFunctionsThatAreCalledLaneByLane) {
  EXPECT_TRUE(is_shared(of_line("cbrt(X[i])", "float64", "1024")));
  EXPECT_FALSE(is_shared(of_line("cbrt(X[i])", "float64", "128")));
}

TEST(ChooseSharing, KnowsThatGatheredElementsComeOneByOne) {
  const auto gather = [](std::string_view extent) {
    return fmt::format(
        "kernel k(X: float32[{0}], I: int32[{0}]) -> (Y: float32[{0}]) {{ Y[i] = X[I[i]] }}\n",
        extent);
  };
  EXPECT_TRUE(is_shared(gather("8192")));
  EXPECT_FALSE(is_shared(gather("1024")));
}

TEST(ChooseSharing, CountsAllStagesOfRows) {
  const auto softmax = [](int rows) {
    return fmt::format(
        "kernel k(X: float32[{0}, 64]) -> (Y: float32[{0}, 64]) {{\n"
        "  M: float32[{0}]\n  M[i] = max[j < 64](X[i, j])\n"
        "  E: float32[{0}, 64]\n  E[i, j] = exp(X[i, j] - M[i])\n"
        "  S: float32[{0}]\n  S[i] = sum[j < 64](E[i, j])\n"
        "  Y[i, j] = E[i, j] / S[i]\n}}\n",
        rows);
  };
  EXPECT_TRUE(is_shared(softmax(256)));
  EXPECT_FALSE(is_shared(softmax(32)));
}

TEST(ChooseSharing, AsksWhatSumsRead) {
  const auto sums = [](int rows) {
    return fmt::format(
        "kernel k(X: float32[{0}, 64]) -> (Y: float32[{0}]) {{ Y[i] = sum[j < 64](X[i, j]) }}\n",
        rows);
  };
  EXPECT_FALSE(is_shared(sums(512)));
  EXPECT_TRUE(is_shared(sums(4096)));
}

/// What one core copies before is not shared.
TEST(ChooseSharing, AsksWhatTheLoopsOfAProductTake) {
  const auto product = [](int size) {
    return fmt::format(
        "kernel k(A: float16[{0}, {0}], B: float16[{0}, {0}]) -> (C: float32[{0}, {0}]) {{\n"
        "  C[i, j] = sum[k < {0}](float32(A[i, k]) * float32(B[k, j]))\n}}\n",
        size);
  };
  EXPECT_FALSE(is_shared(product(40)));
  EXPECT_TRUE(is_shared(product(96)));
}

/// Equal names have equal plans, so that the machine says what is worth it.
TEST(ChooseSharing, AsksTheMachine) {
  const std::string line = of_line("2.0 * X[i] + 1.0", "float32", "49152");
  EXPECT_TRUE(is_shared(line, "znver3"));  // from L2, of 512 KiB
  EXPECT_FALSE(is_shared(line, "sapphirerapids"));
  EXPECT_TRUE(is_shared(of_line("X[i] + X[i]", "int8", "n")));  // nobody knows
}

/// In a loop of one core each step of time goes through all rows.
TEST(ChooseSharing, SharesRowsOfScansSooner) {
  const auto scan = [](int rows) {
    return fmt::format(
        "kernel k(X: float32[{0}, 64]) -> (S: float32[{0}, 64]) {{\n"
        "  scan t {{\n    S[i, 0] = X[i, 0]\n    S[i, t] = S[i, t - 1] + X[i, t]\n  }}\n}}\n",
        rows);
  };
  EXPECT_TRUE(is_shared(scan(128)));
  EXPECT_FALSE(is_shared(scan(16)));
}

}  // namespace
}  // namespace kiln::testing
