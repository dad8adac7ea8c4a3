/// What follows a sum of products element by element, in its tiles.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string result(std::string_view element, std::string_view type = "bfloat16",
                   const std::string& arch = "sapphirerapids") {
  const std::string text = fmt::format(
      "kernel k(A: bfloat16[64, 64], B: bfloat16[64, 64], b: float32[64]) -> (O: {}[64, 64]) {{\n"
      "  C: float32[64, 64]\n"
      "  C[i, j] = sum[k < 64](float32(A[i, k]) * float32(B[k, j]))\n"
      "  O[i, j] = {}\n"
      "}}\n",
      type, element);
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  const std::string steps_of_all =
      language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, {}));
  const size_t begin = steps_of_all.find("  split(O.");
  return begin == std::string::npos ? "" : steps_of_all.substr(begin);
}

bool is_in_tiles(const std::string& steps) { return steps.find("split(O.i") != std::string::npos; }

TEST(ChooseFollowed, ACastIsInTheTilesOfItsProduct) {
  EXPECT_EQ(result("bfloat16(C[i, j] + b[j])"),
            "  split(O.i, factor=32)\n"
            "  split(O.j, factor=32)\n"
            "  reorder(O.j.outer, O.i.outer, O.i.inner, O.j.inner)\n"
            "  vectorize(O.j.inner)\n"
            "  unroll(O.i.inner)\n"
            "}\n");
  EXPECT_TRUE(is_in_tiles(result("bfloat16(max(C[i, j], 0.0))", "bfloat16", "znver4")));
}

/// Where sums may lie where the results go, and beside long functions, rows follow rows.
TEST(ChooseFollowed, OthersAreBehindIt) {
  EXPECT_FALSE(is_in_tiles(result("max(C[i, j] + b[j], 0.0)", "float32")));
  EXPECT_FALSE(is_in_tiles(result("bfloat16(erf(C[i, j]))")));
}

}  // namespace
}  // namespace kiln::testing
