#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// The loops of two stages, of which C reads three rows of B for each of its own.
std::string loops_of(std::string_view steps, std::string_view reads = "B[i, j] + B[i + 2, j]") {
  const std::string text = fmt::format(
      "kernel k(A: float32[34, 30]) -> (C: float32[32, 30]) {{\n"
      "  B: float32[34, 30]\n"
      "  B[i, j] = A[i, j] + 1\n"
      "  C[i, j] = {1}\n"
      "  schedule cpu {{ {0} }}\n"
      "}}\n",
      steps, reads);
  const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
  return lowered_text(kernel.kernel, kernel.schedules.at(0).second, Target{}, CompileOptions{}, "");
}

TEST(RollingBuffer, ComputesTheRowsThatAreNew) {
  EXPECT_EQ(loops_of("compute_at(B, C.i) rolling_buffer(B)"),
            R"(fn k(A: float32[34, 30], C: float32[32, 30]) {
  allocate B: float32[3, 30] scope(global)
  for i in 0..32 {
    for i_1 in 0..3 {
      if likely(i <= 0 || 2 <= i_1) {
        for j in 0..30 {
          B[floormod(i + i_1, 3), j] = A[i + i_1, j] + 1.0
        }
      }
    }
    for j_1 in 0..30 {
      C[i, j_1] = B[floormod(i, 3), j_1] + B[floormod(i + 2, 3), j_1]
    }
  }
}
)");
}

TEST(RollingBuffer, StartsAgainInEachBlockOfRows) {
  EXPECT_EQ(loops_of("split(C.i, factor=8) parallel(C.i.outer) compute_at(B, C.i.inner) "
                     "rolling_buffer(B)"),
            R"(fn k(A: float32[34, 30], C: float32[32, 30]) {
  for i.outer in 0..4 parallel {
    allocate B: float32[3, 30] scope(global)
    for i.inner in 0..8 {
      for i in 0..3 {
        if likely(i.inner <= 0 || 2 <= i) {
          for j in 0..30 {
            B[floormod(i.outer*8 + i.inner + i, 3), j] = A[i.outer*8 + i.inner + i, j] + 1.0
          }
        }
      }
      for j_1 in 0..30 {
        C[i.outer*8 + i.inner, j_1] = B[floormod(i.outer*8 + i.inner, 3), j_1] + B[floormod(i.outer*8 + i.inner + 2, 3), j_1]
      }
    }
  }
}
)");
}

TEST(RollingBuffer, IsTakenBeforeTheStageIsAttached) {
  EXPECT_EQ(loops_of("rolling_buffer(B) compute_at(B, C.i)"),
            loops_of("compute_at(B, C.i) rolling_buffer(B)"));
}

}  // namespace
}  // namespace kiln::testing
