#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// The loops of a kernel under its schedule for the CPU.
std::string loops_of(std::string_view text) {
  const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
  return lowered_text(kernel.kernel, kernel.schedules.at(0).second,
                      Target{.kind = TargetKind::Llvm}, CompileOptions{}, "");
}

/// A kernel of A[8, 16], B[16, 32] and C[8, 32] of this expression.
std::string kernel_of(std::string_view expression, std::string_view steps) {
  return fmt::format(
      "kernel k(A: float32[8, 16], B: float32[16, 32]) -> (C: float32[8, 32]) {{\n"
      "  C[i, j] = {}\n"
      "  schedule cpu {{ {} }}\n"
      "}}\n",
      expression, steps);
}

std::string product(std::string_view steps) {
  return kernel_of("exp(sum[k < 16](A[i, k] * B[k, j]))", steps);
}

void expect_refused(std::string_view text, std::string_view message) {
  const Error error = expect_error([&] { loops_of(text); }, ErrorKind::InvalidArgument, message);
  EXPECT_EQ(error.reason(), "REDUCTION_STAGE");
}

TEST(ReductionStage, HasLoopsOfItsOwn) {
  EXPECT_EQ(loops_of(product("reduction_stage(C.i, C.j, C.k, sum) reorder(C.sum.k, C.sum.j)")),
            R"(fn k(A: float32[8, 16], B: float32[16, 32], C: float32[8, 32]) {
  allocate C.sum: float32[8, 32] scope(global)
  for i in 0..8 {
    for j in 0..32 {
      C.sum[i, j] = 0.0
    }
    for k in 0..16 {
      for j_1 in 0..32 {
        C.sum[i, j_1] = C.sum[i, j_1] + A[i, k]*B[k, j_1]
      }
    }
  }
  for i_1 in 0..8 {
    for j_2 in 0..32 {
      C[i_1, j_2] = exp(C.sum[i_1, j_2])
    }
  }
}
)");
}

TEST(ReductionStage, IsAttachedTiledAndFactoredAsAnyStage) {
  EXPECT_EQ(loops_of(product("reduction_stage(C.i, C.j, C.k, total) compute_at(C.total, C.i) "
                             "split(C.total.k, factor=4) rfactor(C.total.k.inner, factor_axis=2) "
                             "compute_at(C.total.rf, C.i)")),
            R"(fn k(A: float32[8, 16], B: float32[16, 32], C: float32[8, 32]) {
  for i in 0..8 {
    allocate C.total.rf: float32[1, 32, 4] scope(global)
    for j in 0..32 {
      for k.inner in 0..4 {
        C.total.rf[0, j, k.inner] = 0.0
        for k.outer in 0..4 {
          C.total.rf[0, j, k.inner] = C.total.rf[0, j, k.inner] + A[i, k.outer*4 + k.inner]*B[k.outer*4 + k.inner, j]
        }
      }
    }
    allocate C.total: float32[1, 32] scope(global)
    for j_1 in 0..32 {
      C.total[0, j_1] = 0.0
      for k.inner.v in 0..4 {
        C.total[0, j_1] = C.total[0, j_1] + C.total.rf[0, j_1, k.inner.v]
      }
    }
    for j_2 in 0..32 {
      C[i, j_2] = exp(C.total[0, j_2])
    }
  }
}
)");
}

TEST(ReductionStage, LeavesTheOthersInside) {
  EXPECT_EQ(loops_of(kernel_of("sum[k < 16](A[i, k] * B[k, j]) / max[l < 16](A[i, l])",
                               "reduction_stage(C.i, C.j, C.k, sum) split(C.l, factor=4)")),
            R"(fn k(A: float32[8, 16], B: float32[16, 32], C: float32[8, 32]) {
  allocate C.sum: float32[8, 32] scope(global)
  for i in 0..8 {
    for j in 0..32 {
      C.sum[i, j] = 0.0
      for k in 0..16 {
        C.sum[i, j] = C.sum[i, j] + A[i, k]*B[k, j]
      }
    }
  }
  for i_1 in 0..8 {
    allocate C.max: float32[1] scope(global)
    C.max[0] = -inf
    for l.outer in 0..4 {
      for l.inner in 0..4 {
        C.max[0] = max(C.max[0], A[i_1, l.outer*4 + l.inner])
      }
    }
    for j_1 in 0..32 {
      C[i_1, j_1] = C.sum[i_1, j_1]/C.max[0]
    }
  }
}
)");
}

TEST(ReductionStage, OfAnotherReductionStandsBeforeIt) {
  EXPECT_EQ(loops_of(kernel_of("sum[k < 16](A[i, k] - max[l < 16](A[i, l])) + B[i, j]",
                               "reduction_stage(C.i, C.k, sum)")),
            R"(fn k(A: float32[8, 16], B: float32[16, 32], C: float32[8, 32]) {
  allocate C.max: float32[8] scope(global)
  for i in 0..8 {
    C.max[i] = -inf
    for l in 0..16 {
      C.max[i] = max(C.max[i], A[i, l])
    }
  }
  allocate C.sum: float32[8] scope(global)
  for i_1 in 0..8 {
    C.sum[i_1] = 0.0
    for k in 0..16 {
      C.sum[i_1] = C.sum[i_1] + (A[i_1, k] - C.max[i_1])
    }
  }
  for i_2 in 0..8 {
    for j in 0..32 {
      C[i_2, j] = C.sum[i_2] + B[i_2, j]
    }
  }
}
)");
}

TEST(ReductionStage, MayHaveBoundsThatDependOnItsAxes) {
  EXPECT_EQ(loops_of(kernel_of("exp(sum[k < i + 1](A[i, k])) + B[i, j]",
                               "reduction_stage(C.i, C.k, sum)")),
            R"(fn k(A: float32[8, 16], B: float32[16, 32], C: float32[8, 32]) {
  allocate C.sum: float32[8] scope(global)
  for i in 0..8 {
    C.sum[i] = 0.0
    for k in 0..i + 1 {
      C.sum[i] = C.sum[i] + A[i, k]
    }
  }
  for i_1 in 0..8 {
    for j in 0..32 {
      C[i_1, j] = exp(C.sum[i_1]) + B[i_1, j]
    }
  }
}
)");
}

TEST(ReductionStage, InACellIsComputedAtEachStep) {
  const std::string_view text =
      "kernel k(x: float32[9, 8], W: float32[8, 8], s0: float32[1, 8]) -> (s: float32[9, 8]) {\n"
      "  scan t {\n"
      "    s[0, j] = s0[0, j]\n"
      "    s[t, j] = tanh(sum[k < 8](s[t - 1, k] * W[k, j]) + sum[l < 8](x[t, l] * W[l, j]))\n"
      "  }\n"
      "  schedule cpu {\n"
      "    reduction_stage(s.update.t, s.update.j, s.update.k, sum)\n"
      "    reduction_stage(s.update.t, s.update.j, s.update.l, sum)\n"
      "    parallel(s.update.sum_1.t)\n"
      "  }\n"
      "}\n";
  // What needs no state is there before the first step.
  EXPECT_EQ(loops_of(text),
            R"(fn k(x: float32[9, 8], W: float32[8, 8], s0: float32[1, 8], s: float32[9, 8]) {
  allocate s.update.sum_1: float32[9, 8] scope(global)
  for t in 0..9 parallel {
    for j in 0..8 {
      s.update.sum_1[t, j] = 0.0
      for l in 0..8 {
        s.update.sum_1[t, j] = s.update.sum_1[t, j] + x[t, l]*W[l, j]
      }
    }
  }
  for j_1 in 0..8 {
    s[0, j_1] = s0[0, j_1]
  }
  for s.idx in 0..8 {
    allocate s.update.sum: float32[1, 8] scope(global)
    for j_2 in 0..8 {
      s.update.sum[0, j_2] = 0.0
      for k in 0..8 {
        s.update.sum[0, j_2] = s.update.sum[0, j_2] + s[s.idx, k]*W[k, j_2]
      }
    }
    for j_3 in 0..8 {
      s[s.idx + 1, j_3] = tanh(s.update.sum[0, j_3] + s.update.sum_1[s.idx + 1, j_3])
    }
  }
}
)");
}

TEST(ReductionStage, NamesTheAxesThatTheReductionUses) {
  expect_refused(product("reduction_stage(C.i, C.k, sum)"),
                 "the reduction over k inside C uses i, j; write "
                 "reduction_stage(C.i, C.j, C.k, sum)");
  expect_refused(product("reduction_stage(C.j, C.i, C.k, sum)"),
                 "the reduction over k inside C uses i, j; write "
                 "reduction_stage(C.i, C.j, C.k, sum)");
  expect_refused(kernel_of("B[i, j] + sum[k < 16](B[k, 0])", "reduction_stage(C.i, C.k, sum)"),
                 "the reduction over k inside C uses no other axis; write "
                 "reduction_stage(C.k, sum)");
}

TEST(ReductionStage, NamesAReductionInsideTheExpression) {
  expect_refused(product("reduction_stage(C.i, C.j, sum)"),
                 "reduction_stage names no axis that a reduction inside the expression of C runs "
                 "over; such axes come last");
  expect_refused(kernel_of("B[i, j] + A[i, 0]", "reduction_stage(C.i, C.j, sum)"),
                 "C has no reduction inside its expression that could become a stage");
  expect_refused(
      kernel_of("sum[k < 16](A[i, k] * B[k, j])", "reduction_stage(C.i, C.j, C.k, sum)"),
      "the reduction over k is all that C computes, so it is a stage of its own already");
  expect_refused(
      product("reduction_stage(C.k, C.i, C.j, sum)"),
      "reduction_stage takes the axes that a reduction uses before those that it reduces "
      "over: i before k");
  expect_refused(
      product("split(C.i, factor=4) reduction_stage(C.i.outer, C.j, C.k, sum)"),
      "reduction_stage takes axes that the expression of C uses, but i.outer was made by "
      "a step");
}

TEST(ReductionStage, EndsWithAWord) {
  const std::string message =
      "reduction_stage ends with a word for the new stage, of letters, digits and _, as in "
      "reduction_stage(C.i, C.j, C.k, sum)";
  expect_refused(product("reduction_stage(C.i, C.j, C.k)"), message);
  expect_refused(product("reduction_stage(C.i, C.j, C.k, a.b)"), message);
}

TEST(ReductionStage, IsTakenOnce) {
  const Error error = expect_error(
      [&] { loops_of(product("reduction_stage(C.i, C.j, C.k, sum) split(C.k, factor=4)")); },
      ErrorKind::InvalidArgument,
      "the reduction over k inside C is the stage C.sum now; name the axes of C.sum");
  EXPECT_EQ(error.reason(), "CONSUMED_AXIS");
}

TEST(ReductionStage, ComesBeforeStepsOnItsLoops) {
  expect_error([&] { loops_of(product("vectorize(C.k) reduction_stage(C.i, C.j, C.k, sum)")); },
               ErrorKind::InvalidArgument,
               "axis k of C was vectorized at line 3; reduction_stage C before that");
  expect_error(
      [&] { loops_of(product("split(C.k, factor=4) reduction_stage(C.i, C.j, C.k, sum)")); },
      ErrorKind::InvalidArgument, "axis k was split into k.outer, k.inner at line 3");
  expect_refused(product("cache_write(C, local) reduction_stage(C.local.i.c, C.local.j.c, "
                         "C.local.k, sum)"),
                 "cannot make a stage of the reduction over k inside C.local, whose layout is that "
                 "of the loops of C; take reduction_stage of C before its cache_write");
}

TEST(ReductionStage, OfAScanOrAScatterIsNone) {
  expect_refused(
      "kernel k(B: float32[8], at: int64[4]) -> (H: float32[8]) {\n"
      "  H = scatter_add[r < 4](B, at[r], 1.0)\n"
      "  schedule cpu { reduction_stage(H.r, sum) }\n"
      "}\n",
      "reduction_stage takes a reduction inside the expression of a compute, but H is a scatter");
  expect_refused(
      "kernel k(X: float32[9, 8]) -> (S: float32[9, 8]) {\n"
      "  scan t {\n"
      "    S[0, i] = X[0, i]\n"
      "    S[t, i] = S[t - 1, i] + X[t, i]\n"
      "  }\n"
      "  schedule cpu { reduction_stage(S.idx, sum) }\n"
      "}\n",
      "reduction_stage takes a reduction inside the expression of a compute, but S is a scan");
}

TEST(ReductionStage, CannotHaveADimensionThatIsReduced) {
  expect_refused(kernel_of("exp(sum[k < 16](A[i, k] * sum[l < 16](B[k, l])))",
                           "reduction_stage(C.k, C.l, sum)"),
                 "cannot make a stage of the reduction over l inside C: it uses k, over which C "
                 "reduces too; write it as a stage of its own in the definition");
}

TEST(ReductionStage, OfABranchIsComputedEverywhere) {
  const std::string_view branch = "if_then_else(i < 4, sum[k < 16](A[{}, k] * B[k, j]), 0.0)";
  EXPECT_EQ(loops_of(kernel_of(fmt::format(fmt::runtime(branch), "i"),
                               "reduction_stage(C.i, C.j, C.k, sum)")),
            R"(fn k(A: float32[8, 16], B: float32[16, 32], C: float32[8, 32]) {
  allocate C.sum: float32[8, 32] scope(global)
  for i in 0..8 {
    for j in 0..32 {
      C.sum[i, j] = 0.0
      for k in 0..16 {
        C.sum[i, j] = C.sum[i, j] + A[i, k]*B[k, j]
      }
    }
  }
  for i_1 in 0..8 {
    for j_1 in 0..32 {
      C[i_1, j_1] = if_then_else(i_1 < 4, C.sum[i_1, j_1], 0.0)
    }
  }
}
)");
  // So what it reads must be there without the condition.
  expect_error(
      [&] {
        loops_of(kernel_of(fmt::format(fmt::runtime(branch), "i + 4"),
                           "reduction_stage(C.i, C.j, C.k, sum)"));
      },
      ErrorKind::InvalidArgument,
      "reductions are only allowed at the top level of compute: the one in an if_then_else of C "
      "reads A, which is not proved to be in bounds without the condition; put the condition "
      "inside "
      "the reduction");
}

}  // namespace
}  // namespace kiln::testing
