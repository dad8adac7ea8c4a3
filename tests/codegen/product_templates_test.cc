// Of the templates that serve a product that has the fewest cycles is taken.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/autoschedule/templates/block_tiles.h"
#include "compiler/autoschedule/templates/matrix_tiles.h"
#include "compiler/autoschedule/templates/split_products.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string product(int rows, int columns, int steps) {
  return fmt::format(
      "kernel k(A: float16[{0}, {2}], B: float16[{2}, {1}]) -> (C: float32[{0}, {1}]) {{"
      " C[i, j] = sum[k < {2}](float32(A[i, k]) * float32(B[k, j])) }}",
      rows, columns, steps);
}

TEST(ProductTemplates, AreThoseWithTheFewestCycles) {
  int both = 0;
  for (const std::string_view arch : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    for (const auto& [rows, columns, steps] :
         {std::tuple(17, 70, 80), {33, 64, 128}, {100, 100, 100}, {24, 4096, 128}, {300, 20, 80}}) {
      const language::TextKernel text = kernel_of(product(rows, columns, steps));
      const CompileOptions options;
      const schedule::StageGraph graph = schedule::build_stage_graph(text.kernel);
      const autoschedule::Chooser chooser{graph, options, {}, arch};
      const schedule::StageId stage = graph.stage_of_id.back();
      const auto matrices = autoschedule::matrix_tile_cycles(chooser, stage);
      const auto blocks = autoschedule::block_tile_cycles(chooser, stage);
      ASSERT_TRUE(matrices && blocks);
      if (autoschedule::split_of_product(chooser, stage)) continue;
      ++both;
      const SketchSpace space(text.kernel, {}, {TargetKind::Cuda, std::string(arch)}, options);
      const std::string& taken = space.stages()[0].sketches[0].name;
      EXPECT_EQ(taken.starts_with("matrix instructions"), matrices(1) <= blocks(1)) << taken;
    }
  }
  EXPECT_GT(both, 8);
}

/// Tensor cores want the filters of a convolution with channels first in another order, which takes
/// a launch: of few places lanes are done before.
TEST(ProductTemplates, AreLanesWhereTensorCoresWouldWaitForACopy) {
  const auto taken = [](int images, int channels) {
    const language::TextKernel text = kernel_of(fmt::format(
        "kernel k(X: float16[{0}, {1}, 34, 34], F: float16[64, {1}, 3, 3]) -> (Y: float32[{0}, 64, "
        "32, 32]) {{ Y[n, f, y, x] = sum[c < {1}, r < 3, s < 3](float32(X[n, c, y + r, x + s]) *"
        " float32(F[f, c, r, s])) }}",
        images, channels));
    const SketchSpace space(text.kernel, {}, {TargetKind::Cuda, "sm_90"}, {});
    return space.stages().back().sketches[0].name;
  };
  EXPECT_EQ(taken(1, 8), "a tile a block, 4 x 2 a thread");
  EXPECT_TRUE(taken(8, 64).starts_with("matrix instructions of all axes")) << taken(8, 64);
}

}  // namespace
}  // namespace kiln::testing
