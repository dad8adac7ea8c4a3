#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
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

/// A window of 3 over X[c, n], which is 0 outside, in this form.
std::string window(std::string_view value, std::string_view steps = "cache_padded(X, Y)") {
  return fmt::format(
      "kernel k(X: float32[c, n], W: float32[4, c, 3]) -> (Y: float32[4, n]) {{\n"
      "  Y[f, x] = sum[q < c, r < 3]({} * W[f, q, r])\n"
      "  schedule cpu {{ {} }}\n"
      "}}\n",
      value, steps);
}

/// The stage that a step makes of it, from its storage to the next.
std::string copy_of(std::string_view value) {
  const std::string loops = loops_of(window(value));
  const size_t begin = loops.find("X.padded[ax0, ax1] = ");
  return loops.substr(begin, loops.find('\n', begin) - begin);
}

void expect_refused(std::string_view text, std::string_view why) {
  const Error error = expect_error([&] { loops_of(text); }, ErrorKind::Unsupported,
                                   fmt::format("cannot make a padded copy of X for Y: {}", why));
  EXPECT_EQ(error.reason(), "CACHE_READ");
}

constexpr std::string_view kUsual = "if_then_else(x + r >= 1 && x + r <= n, X[q, x + r - 1], 0)";

TEST(CachePadded, IsAStageThatTheReaderReads) {
  EXPECT_EQ(loops_of(window(kUsual)),
            R"(fn k(X: float32[c, n], W: float32[4, c, 3], Y: float32[4, n]) {
  allocate X.padded: float32[c, n + 2] scope(global)
  for ax0 in 0..c {
    for ax1 in 0..n + 2 {
      X.padded[ax0, ax1] = if_then_else(ax1 >= 1 && ax1 <= n, X[ax0, ax1 - 1], 0.0)
    }
  }
  for f in 0..4 {
    for x in 0..n {
      Y[f, x] = 0.0
      for q in 0..c {
        for r in 0..3 {
          Y[f, x] = Y[f, x] + X.padded[q, x + r]*W[f, q, r]
        }
      }
    }
  }
}
)");
}

TEST(CachePadded, MayStandInsideOfALoopAndHasLoopsOfItsOwn) {
  EXPECT_EQ(loops_of(window(kUsual,
                            "cache_padded(X, Y) split(Y.x, factor=8) reorder(Y.x.outer, Y.f, "
                            "Y.x.inner) compute_at(X.padded, Y.x.outer) "
                            "reorder(X.padded.ax1, X.padded.ax0)")),
            R"(fn k(X: float32[c, n], W: float32[4, c, 3], Y: float32[4, n]) {
  for x.outer in 0..floordiv(n + 7, 8) {
    allocate X.padded: float32[c, 10] scope(global)
    for ax1 in 0..10 {
      if likely(x.outer*8 + ax1 < n + 2) {
        for ax0 in 0..c {
          X.padded[ax0, ax1] = if_then_else(x.outer*8 + ax1 >= 1 && x.outer*8 + ax1 <= n, X[ax0, x.outer*8 + ax1 - 1], 0.0)
        }
      }
    }
    for f in 0..4 {
      for x.inner in 0..8 {
        if likely(x.outer*8 + x.inner < n) {
          Y[f, x.outer*8 + x.inner] = 0.0
          for q in 0..c {
            for r in 0..3 {
              Y[f, x.outer*8 + x.inner] = Y[f, x.outer*8 + x.inner] + X.padded[q, x.inner + r]*W[f, q, r]
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(CachePadded, FindsTheConditionInAnyForm) {
  const auto expect = [](std::string_view value, std::string_view body) {
    EXPECT_EQ(copy_of(value), fmt::format("X.padded[ax0, ax1] = {}", body));
  };
  expect("if_then_else(!(x + r < 1 || n < x + r), X[q, x + r - 1], 0)",
         "if_then_else(ax1 >= 1 && n >= ax1, X[ax0, ax1 - 1], 0.0)");
  expect("if_then_else(x + r < 1 || n < x + r, 5, X[q, x + r - 1])",
         "if_then_else(ax1 < 1 || n < ax1, 5.0, X[ax0, ax1 - 1])");
  expect("if_then_else(x + r - 1 >= 0 && n > x + r - 1, X[q, x + r - 1], 0)",
         "if_then_else(ax1 >= 1 && n + 1 > ax1, X[ax0, ax1 - 1], 0.0)");
  expect("if_then_else(1 - x <= r && r - n <= 0 - x, X[q, x + r - 1], 0)",
         "if_then_else(1 <= ax1 && ax1 <= n, X[ax0, ax1 - 1], 0.0)");
  expect("if_then_else(2*x + 2*r >= 2 && x + r <= n, X[q, x + r - 1], 0)",
         "if_then_else(ax1*2 >= 2 && ax1 <= n, X[ax0, ax1 - 1], 0.0)");
  expect("select(x >= 1, X[q, x], 0)", "if_then_else(ax1 >= 1, X[ax0, ax1], 0.0)");
}

TEST(CachePadded, HasStridesAndDilation) {
  EXPECT_EQ(copy_of("if_then_else(x*2 + r*3 >= 4 && x*2 + r*3 < n + 4, X[q, x*2 + r*3 - 4], 0)"),
            "X.padded[ax0, ax1] = if_then_else(ax1 >= 4 && ax1 < n + 4, X[ax0, ax1 - 4], 0.0)");
}

/// As much as depends on the element and its place alone; what keeps each value stays with the
/// reader.
TEST(CachePadded, HasWhatIsComputedOfSingleElements) {
  const auto loops = [](std::string_view factor, std::string_view types) {
    const std::string text =
        loops_of(fmt::format("kernel k({}, B: float32[5, 6]) -> (C: float32[4, 6]) {{\n"
                             "  C[i, j] = sum[k < 5]({} * B[k, j])\n"
                             "  schedule cpu {{ cache_padded(A, C) }}\n"
                             "}}\n",
                             types, factor));
    const auto line = [&](std::string_view begin) {
      const size_t at = text.find(begin);
      return text.substr(at, text.find('\n', at) - at);
    };
    return line("A.padded[ax0, ax1] = ") + "; " + line("C[i, j] = C[i, j] + ");
  };
  EXPECT_EQ(loops("max(A[i, k], 0)", "A: float32[4, 5]"),
            "A.padded[ax0, ax1] = max(A[ax0, ax1], 0.0); "
            "C[i, j] = C[i, j] + A.padded[i, k]*B[k, j]");
  EXPECT_EQ(
      loops("(A[k, i] * s[i] + A[k, i] * r[k])", "A: float32[5, 4], s: float32[4], r: float32[5]"),
      "A.padded[ax0, ax1] = A[ax0, ax1]*s[ax1] + A[ax0, ax1]*r[ax0]; "
      "C[i, j] = C[i, j] + A.padded[k, i]*B[k, j]");
  EXPECT_EQ(loops("float32(max(A[i, k], float16(0)))", "A: float16[4, 5]"),
            "A.padded[ax0, ax1] = max(A[ax0, ax1], 0.0); "
            "C[i, j] = C[i, j] + float32(A.padded[i, k])*B[k, j]");
  EXPECT_EQ(loops("float32(float16(A[i, k]))", "A: int8[4, 5]"),
            "A.padded[ax0, ax1] = float16(A[ax0, ax1]); "
            "C[i, j] = C[i, j] + float32(A.padded[i, k])*B[k, j]");
  EXPECT_EQ(loops("tf32(A[i, k] * 2)", "A: float32[4, 5]"),
            "A.padded[ax0, ax1] = A[ax0, ax1]*2.0; "
            "C[i, j] = C[i, j] + tf32(A.padded[i, k])*B[k, j]");
}

TEST(CachePadded, HasWhatIsComputedOfAWindow) {
  const std::string loops = loops_of(
      "kernel k(X: float32[20], W: float32[3]) -> (Y: float32[18]) {\n"
      "  Y[x] = sum[r < 3](exp(X[x + r]) * W[r])\n"
      "  schedule cpu { cache_padded(X, Y) }\n"
      "}\n");
  EXPECT_NE(loops.find("X.padded[ax0] = exp(X[ax0])"), std::string::npos) << loops;
  EXPECT_NE(loops.find("X.padded[x + r]*W[r]"), std::string::npos) << loops;
}

TEST(CachePadded, RefusesWhatTheIndicesDoNotTell) {
  const auto expect = [](std::string_view value, std::string_view why) {
    expect_refused(window(value), why);
  };
  expect("if_then_else(f >= 1, X[q, x], 0)", "the condition is about more than the indices of X");
  expect("if_then_else(X[q, x] > 0, X[q, x], 0)",
         "the condition is about more than the indices of X");
  expect("if_then_else(x + r >= 1, X[q, x + r - 1], 0)",
         "it is not certain that the condition keeps all indices inside of X");
  expect("if_then_else(x + r >= 1 && x + r <= n, X[q, x + r - 1], W[0, q, 0])",
         "what stands for X where the condition fails is no constant");
  expect("X[q, x]",
         "Y neither reads X under a condition, with a constant where it fails, nor computes "
         "anything of single elements of it");
}

TEST(CachePadded, IsComputedAfterAllThatItReads) {
  const std::string loops = loops_of(
      "kernel k(X: float32[8, 16]) -> (Y: float32[8, 4]) {\n"
      "  E: float32[8, 16]\n"
      "  E[i, j] = exp(X[i, j])\n"
      "  L: float32[8]\n"
      "  L[i] = sum[j < 16](E[i, j])\n"
      "  Y[i, d] = sum[j < 16](E[i, j] / L[i] * X[d, j])\n"
      "  schedule cpu { cache_padded(E, Y) }\n"
      "}\n");
  EXPECT_LT(loops.find("allocate L"), loops.find("allocate E.padded")) << loops;
}

TEST(CachePadded, RefusesTwoPaddingsOfOneTensor) {
  expect_refused(window(fmt::format("({} + if_then_else(x + r >= 1 && x + r <= n, "
                                    "X[q, x + r - 1], 1))",
                                    kUsual)),
                 "Y reads X under conditions at 2 places");
}

/// The steps that are chosen for a kernel that has these.
std::string chosen_steps(const std::string& text) {
  const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
  const language::Schedule schedule =
      choose_schedule(kernel.kernel, kernel.schedules.at(0).second, {.kind = TargetKind::Llvm}, {});
  return language::print_schedule(kernel.kernel, "cpu", schedule);
}

TEST(ChoosePaddedFactors, MakesAProductOfASumWithPaddingInside) {
  EXPECT_NE(chosen_steps(window(kUsual, "")).find("  cache_padded(X, Y)\n"), std::string::npos);
}

TEST(ChoosePaddedFactors, LeavesStagesWithStepsAlone) {
  EXPECT_EQ(chosen_steps(window(kUsual, "parallel(Y.f)")), "schedule cpu {\n  parallel(Y.f)\n}\n");
}

TEST(ChoosePaddedFactors, LeavesAFactorAloneThatIsReadTooSeldomOrIsNoProduct) {
  const auto has_copy = [](const std::string& text) {
    return chosen_steps(text).find("cache_padded") != std::string::npos;
  };
  constexpr std::string_view kKernel =
      "kernel k(X: float32[64, 100], W: float32[{0}, 64, 3]) -> (Y: float32[{0}, 100]) {{\n"
      "  Y[f, x] = sum[q < 64, r < 3](if_then_else(x + r >= 1 && x + r <= 100,"
      " X[q, x + r - 1], 0) {1} W[f, q, r])\n"
      "  schedule cpu {{ }}\n"
      "}}\n";
  EXPECT_TRUE(has_copy(fmt::format(kKernel, 16, "*")));
  EXPECT_FALSE(has_copy(fmt::format(kKernel, 2, "*")));
  EXPECT_FALSE(has_copy(fmt::format(kKernel, 16, "+")));
}

TEST(ChoosePaddedFactors, CopiesBothFactorsAndUnderAnEpilogue) {
  const std::string steps = chosen_steps(
      "kernel k(X: float32[64, 100], W: float32[24, 64, 2]) -> (Y: float32[24, 100]) {\n"
      "  Y[f, x] = max(sum[q < 64, r < 3](if_then_else(x + r >= 1 && x + r <= 100,"
      " X[q, x + r - 1], 0) * if_then_else(r >= 1, W[f, q, r - 1], 0)), 0)\n"
      "  schedule cpu { }\n"
      "}\n");
  EXPECT_NE(steps.find("  cache_padded(X, Y)\n  cache_padded(W, Y)\n"
                       "  reduction_stage(Y.f, Y.x, Y.q, Y.r, sum)\n"),
            std::string::npos)
      << steps;
}

}  // namespace
}  // namespace kiln::testing
