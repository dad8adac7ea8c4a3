// Reductions down columns: the threads of a block divide the rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// The first sketch of a sum over `rows` of a tensor of this shape, and whether it is right.
std::string sketch_of(std::string_view shape, std::string_view rows, std::string_view read,
                      const std::vector<int64_t>& sizes = {}) {
  const language::TextKernel text =
      kernel_of(fmt::format("kernel k(X: float32[{}]) -> (Y: float32[{}]) {{\n"
                            "  Y[j] = sum[{}](X[{}]) }}",
                            shape, shape.substr(shape.rfind(' ') + 1), rows, read));
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, sizes), "") << ir::print(loops);
  return SketchSpace(text.kernel, {}, {TargetKind::Cuda, "sm_90"}, {})
      .stages()
      .at(0)
      .sketches.at(0)
      .name;
}

constexpr const char* kDivided = "rows divided among threads";

// Of the first there would be four rows of threads.
TEST(Columns, AreDividedAlongTheLongestAxis) {
  const language::TextKernel text = kernel_of(
      "kernel k(X: float32[32, 1024, 4096]) -> (Y: float32[4096]) {\n"
      "  Y[j] = sum[a < 32, b < 1024](X[a, b, j]) }");
  const std::string loops = ir::print(gpu_loops(text));
  EXPECT_NE(loops.find("threadIdx.x in 0..512"), std::string::npos) << loops;
  EXPECT_EQ(sketch_of("2, 70, 32", "a < 2, b < 70", "a, b, j"), kDivided);
  EXPECT_EQ(sketch_of("3, n, 40", "a < 3, b < n", "a, b, j", {70}), kDivided);
}

// A few threads would have long sums; of many results each thread has one.
TEST(Columns, ThatAreFewerThanAWarpAreDividedWhereOthersWouldWait) {
  for (const char* const columns : {"8", "3", "1"})
    EXPECT_EQ(sketch_of(fmt::format("600, {}", columns), "i < 600", "i, j"), kDivided);
  EXPECT_EQ(sketch_of("64, 5", "i < 64", "i, j"), kDivided);
  EXPECT_NE(sketch_of("60, 5", "i < 60", "i, j"), kDivided);
  EXPECT_NE(sketch_of("n, 8", "i < n", "i, j", {70}), kDivided);
  const language::TextKernel many = kernel_of(
      "kernel k(X: float32[1000000, 64, 8]) -> (Y: float32[1000000, 8]) {\n"
      "  Y[b, j] = sum[i < 64](X[b, i, j]) }");
  const SketchSpace space(many.kernel, {}, {TargetKind::Cuda, "sm_90"}, {});
  EXPECT_NE(space.stages().at(0).sketches.at(0).name, kDivided);
}

}  // namespace
}  // namespace kiln::testing
