#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// The loops of two stages, B of two dimensions read by C the other way round.
std::string loops_of(std::string_view steps, std::string_view columns = "30") {
  const std::string text = fmt::format(
      "kernel k(A: float32[12, {1}]) -> (C: float32[{1}, 12]) {{\n"
      "  B: float32[12, {1}]\n"
      "  B[i, j] = A[i, j] + 1\n"
      "  C[j, i] = B[i, j] * 2\n"
      "  schedule cpu {{ {0} }}\n"
      "}}\n",
      steps, columns);
  const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
  return lowered_text(kernel.kernel, kernel.schedules.at(0).second, Target{}, CompileOptions{}, "");
}

TEST(TransformLayout, PutsDimensionsInAnotherOrder) {
  EXPECT_EQ(loops_of("transform_layout(B.j, B.i, 1, 1)"),
            R"(fn k(A: float32[12, 30], C: float32[30, 12]) {
  allocate B: float32[30, 12] scope(global)
  for i in 0..12 {
    for j in 0..30 {
      B[j, i] = A[i, j] + 1.0
    }
  }
  for j_1 in 0..30 {
    for i_1 in 0..12 {
      C[j_1, i_1] = B[j_1, i_1]*2.0
    }
  }
}
)");
}

TEST(TransformLayout, LaysATensorInBlocks) {
  EXPECT_EQ(loops_of("transform_layout(B.i, B.j, B.i, 4, 1, 1)"),
            R"(fn k(A: float32[12, 30], C: float32[30, 12]) {
  allocate B: float32[3, 30, 4] scope(global)
  for i in 0..12 {
    for j in 0..30 {
      B[floordiv(i, 4), j, floormod(i, 4)] = A[i, j] + 1.0
    }
  }
  for j_1 in 0..30 {
    for i_1 in 0..12 {
      C[j_1, i_1] = B[floordiv(i_1, 4), j_1, floormod(i_1, 4)]*2.0
    }
  }
}
)");
}

TEST(TransformLayout, PadsWhereTheFactorDoesNotDivide) {
  EXPECT_EQ(loops_of("transform_layout(B.j, B.i, B.j, 8, 1, 1)"),
            R"(fn k(A: float32[12, 30], C: float32[30, 12]) {
  allocate B: float32[4, 12, 8] scope(global)
  for i in 0..12 {
    for j in 0..30 {
      B[floordiv(j, 8), i, floormod(j, 8)] = A[i, j] + 1.0
    }
  }
  for j_1 in 0..30 {
    for i_1 in 0..12 {
      C[j_1, i_1] = B[floordiv(j_1, 8), i_1, floormod(j_1, 8)]*2.0
    }
  }
}
)");
}

TEST(TransformLayout, IsOfThePartThatIsComputedAtALoop) {
  EXPECT_EQ(loops_of("transform_layout(B.j, B.i, B.j, 8, 1, 1) split(C.j, factor=16) "
                     "compute_at(B, C.j.outer)"),
            R"(fn k(A: float32[12, 30], C: float32[30, 12]) {
  for j.outer in 0..2 {
    allocate B: float32[2, 12, 8] scope(global)
    for i in 0..12 {
      for j in 0..16 {
        if likely(j.outer*16 + j < 30) {
          B[floordiv(j, 8), i, floormod(j, 8)] = A[i, j.outer*16 + j] + 1.0
        }
      }
    }
    for j.inner in 0..16 {
      if likely(j.outer*16 + j.inner < 30) {
        for i_1 in 0..12 {
          C[j.outer*16 + j.inner, i_1] = B[floordiv(j.inner, 8), i_1, floormod(j.inner, 8)]*2.0
        }
      }
    }
  }
}
)");
}

TEST(TransformLayout, DoesNotNeedConstantSizes) {
  EXPECT_EQ(loops_of("transform_layout(B.j, B.i, B.j, 8, 1, 1)", "n"),
            R"(fn k(A: float32[12, n], C: float32[n, 12]) {
  allocate B: float32[floordiv(n + 7, 8), 12, 8] scope(global)
  for i in 0..12 {
    for j in 0..n {
      B[floordiv(j, 8), i, floormod(j, 8)] = A[i, j] + 1.0
    }
  }
  for j_1 in 0..n {
    for i_1 in 0..12 {
      C[j_1, i_1] = B[floordiv(j_1, 8), i_1, floormod(j_1, 8)]*2.0
    }
  }
}
)");
}

}  // namespace
}  // namespace kiln::testing
