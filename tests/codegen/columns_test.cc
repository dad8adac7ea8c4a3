// Reductions down columns: the threads of a block divide the rows.
#include <algorithm>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/support/fuzz_case.h"
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

/// A reduction over the first dimensions of a tensor but, perhaps, one: one extent in eight is
/// open.
struct DrawnColumns {
  std::string text;
  std::vector<int64_t> sizes;
};

DrawnColumns drawn_columns(Random& random) {
  DrawnColumns drawn;
  const auto extent = [&](int least, int most) {
    const int length = random.between(least, most);
    if (!random.chance(0.125)) return fmt::to_string(length);
    drawn.sizes.push_back(length);
    return fmt::format("n{}", drawn.sizes.size());
  };
  std::vector<std::string> names = {"b"};
  std::vector<std::string> rows = {extent(60, random.chance(0.5) ? 4000 : 200)};
  if (random.chance(0.5)) {
    names.emplace_back("a");
    rows.push_back(extent(1, 5));
  }
  std::vector<std::string> reduced;
  for (size_t i = 0; i < names.size(); ++i)
    reduced.push_back(fmt::format("{} < {}", names[i], rows[i]));
  std::string result = "j";
  const std::string columns = extent(1, random.chance(0.5) ? 8 : 70);
  std::string result_shape = columns;
  if (random.chance(0.4)) {
    const std::string others = extent(1, 4);
    result = "o, j";
    result_shape = fmt::format("{}, {}", others, columns);
    names.emplace_back("o");
    rows.push_back(others);
  }
  if (random.chance(0.5)) {
    std::ranges::reverse(names);
    std::ranges::reverse(rows);
  }
  const bool is_byte = random.chance(0.3);
  drawn.text = fmt::format(
      "kernel k(X: {0}[{1}, {2}]) -> (Y: float32[{3}]) {{\n"
      "  S: {4}[{3}]\n  S[{5}] = {6}[{7}]({4}(X[{8}, j]))\n  Y[{5}] = {9}\n}}\n",
      is_byte ? "int8" : "float32", fmt::join(rows, ", "), columns, result_shape,
      is_byte ? "int32" : "float32", result, random.chance(0.7) ? "sum" : "max",
      fmt::join(reduced, ", "), fmt::join(names, ", "),
      fmt::format("{}(S[{}]) * 0.5", is_byte ? "float32" : "abs", result));
  return drawn;
}

TEST(ColumnsFuzz, DrawnAtRandomAreRight) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(40));
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    const DrawnColumns drawn = drawn_columns(random);
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, drawn.text));
    const language::TextKernel text = kernel_of(drawn.text);
    const ir::Kernel loops = gpu_loops(text);
    EXPECT_EQ(gpu_difference(text, loops, drawn.sizes), "") << ir::print(loops);
  }
}

}  // namespace
}  // namespace kiln::testing
