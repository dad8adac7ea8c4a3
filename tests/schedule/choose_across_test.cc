/// Automatic schedules of elements that read tensors across: by rows, in blocks, or with squares
/// turned in registers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string steps_of(std::string_view text, const std::string& arch) {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  return language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, {}));
}

std::string transpose(std::string_view type, int rows, int columns) {
  return fmt::format("kernel k(X: {0}[{2}, {1}]) -> (Y: {0}[{1}, {2}]) {{ Y[i, j] = X[j, i] }}\n",
                     type, rows, columns);
}

bool turns(const std::string& steps) { return steps.find("cache_read(X") != std::string::npos; }

/// Squares have as many lines as a register has lanes, and 16 at most.
TEST(ChooseAcross, TurnsSquaresOfAllTypes) {
  for (const char* arch : {"znver3", "znver5", "sapphirerapids", "x86-64-v2"}) {
    for (const std::string_view type : {"int8", "float16", "float32", "int32"})
      EXPECT_TRUE(turns(steps_of(transpose(type, 256, 320), arch))) << arch << ' ' << type;
  }
  EXPECT_NE(
      steps_of(transpose("int8", 256, 320), "znver5").find("split(X.local.j.inner, factor=16)"),
      std::string::npos)
      << steps_of(transpose("int8", 256, 320), "znver5");
}

/// What is read in another type than it is stored in is turned before it is converted.
TEST(ChooseAcross, TurnsWhatIsConverted) {
  const std::string steps = steps_of(
      "kernel k(X: int8[512, 256]) -> (Y: float32[256, 512]) { Y[i, j] = float32(X[j, i]) }\n",
      "znver3");
  EXPECT_TRUE(turns(steps)) << steps;
}

/// A line of a vector's columns is in L1 still when the next row reads it, and a square would have
/// rests on all sides.
TEST(ChooseAcross, KeepsTheOrderOfShortRows) {
  const std::string steps = steps_of(transpose("float64", 7, 24), "znver3");
  EXPECT_FALSE(turns(steps)) << steps;
}

/// Rows of X lie in so few sets of L1 that lines of a block's columns evict each other.
TEST(ChooseAcross, GoesByBlocksWhereLinesDoNotStay) {
  const auto blocks = [](int rows, int columns) {
    const std::string steps =
        steps_of(fmt::format("kernel k(X: float32[{1}, {0}]) -> (Y: float32[{0}, {1}]) "
                             "{{ Y[i, j] = if_then_else(i > 0, X[j, i], 0.0) }}\n",
                             rows, columns),
                 "znver3");
    return steps.find("split(Y.i") != std::string::npos;
  };
  EXPECT_TRUE(blocks(1024, 512));
  EXPECT_FALSE(blocks(1000, 32));
}

/// Between two rows that share lines of X come all of the second axis.
TEST(ChooseAcross, CountsTheRowsBetween) {
  const std::string steps = steps_of(
      "kernel k(X: float32[64, 100, 30]) -> (Y: float32[30, 64, 100]) { Y[c, a, b] = X[a, b, c] "
      "}\n",
      "znver3");
  EXPECT_NE(steps.find("split(Y.c"), std::string::npos) << steps;
}

/// From memory what lies across comes as streams down the rows; what lies along them too is better
/// read that way, in blocks so large that lines across come several at once.
TEST(ChooseAcross, GoesAlongRowsThatAreReadFromMemory) {
  const std::string alone = steps_of(transpose("float32", 2001, 3001), "znver4");
  EXPECT_NE(alone.find("split(Y.j, factor=16)"), std::string::npos) << alone;
  EXPECT_NE(alone.find("reorder(Y.j.outer, Y.i.outer,"), std::string::npos) << alone;
  const std::string beside = steps_of(
      "kernel k(X: float32[2001, 3001], Z: float32[3001, 2001]) -> (Y: float32[3001, 2001]) "
      "{ Y[i, j] = X[j, i] + Z[i, j] }\n",
      "znver4");
  EXPECT_NE(beside.find("split(Y.i, factor=64)"), std::string::npos) << beside;
  EXPECT_NE(beside.find("reorder(Y.i.outer, Y.j.outer,"), std::string::npos) << beside;
}

}  // namespace
}  // namespace kiln::testing
