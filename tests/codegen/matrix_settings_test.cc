// Whatever a tile of matrix instructions is set to, its code has these.
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// Of rows that end inside of a tile, and of a sum that ends inside of an iteration.
TEST(MatrixSettings, HaveMatrixInstructionsWithAnyNumberOfMemories) {
  const language::TextKernel text = kernel_of(
      "kernel k(A: float16[1000, 1000], B: float16[1000, 1000]) -> (C: float32[1000, 1000]) {"
      " C[i, j] = sum[k < 1000](float32(A[i, k]) * float32(B[k, j])) }");
  const Target target{TargetKind::Cuda, "sm_80"};
  const SketchSpace space(text.kernel, {}, target, {});
  const autoschedule::Sketch& sketch = space.stages().at(0).sketches[0];
  ASSERT_EQ(sketch.parameters.size(), 2U) << sketch.name;
  ASSERT_EQ(sketch.parameters[1].name, "stages");
  LoweringObserver silent;
  for (const int64_t stages : sketch.parameters[1].values) {
    const autoschedule::Candidate candidate{{{0, {sketch.preferred()[0], stages}}}};
    const std::string source = source_of(
        lower(text.kernel, space.schedule(candidate), target, {}, Layout::Compact, silent));
    EXPECT_NE(source.find("kiln_multiply<"), std::string::npos) << stages << source;
  }
}

}  // namespace
}  // namespace kiln::testing
