/// Axes that follow each other in memory are one loop in automatic schedules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string steps_of(std::string_view text, const CompileOptions& options = {}) {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = "znver4"};
  return language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, options));
}

/// The axes that are one, as "h, w" of fuse(Y.h, Y.w); "" where there are none.
std::string joined(std::string_view text, std::string_view stage = "Y") {
  const std::string steps = steps_of(text);
  const std::string word = fmt::format("fuse({}.", stage);
  std::string axes;
  const size_t begin = steps.find(word);
  if (begin == std::string::npos) return axes;
  for (size_t i = begin + word.size(); steps[i] != ')'; ++i)
    axes += steps[i];
  for (size_t at = 0; (at = axes.find(fmt::format("{}.", stage))) != std::string::npos;)
    axes.erase(at, stage.size() + 1);
  return axes;
}

std::string sum_of(std::string_view value, std::string_view axes = "h < 14, w < 14") {
  return fmt::format(
      "kernel k(X: float32[8, 64, 14, 14], Z: float32[14, 14], T: float32[8, 14, 14, 64],"
      " F: float32[8, 64, 196], I: int64[14], U: float32[8, 64, 28, 14]) ->"
      " (Y: float32[8, 64]) {{ Y[n, c] = sum[{}]({}) }}\n",
      axes, value);
}

TEST(ChooseJoined, ReductionsOverLinesThatFollowEachOtherAreOne) {
  EXPECT_EQ(steps_of(sum_of("X[n, c, h, w]")),
            "schedule cpu {\n"
            "  fuse(Y.h, Y.w)\n"
            "  split(Y.h.w.fused, factor=32)\n"
            "  vectorize(Y.h.w.fused.inner)\n"
            "  parallel(Y.n)\n"
            "  parallel(Y.c)\n"
            "}\n");
  EXPECT_EQ(joined(sum_of("X[n, c, h, w] * Z[h, w]")), "h, w");
  EXPECT_EQ(joined(sum_of("F[n, c, h * 14 + w]")), "h, w");
  // Sums down columns, of one image row after the other.
  EXPECT_EQ(joined(sum_of("T[n, h, w, c]")), "h, w");
  EXPECT_EQ(joined("kernel k(X: float32[8, 64, 14, 14]) -> (Y: float32[]) {"
                   " Y[] = max[n < 8, c < 64, h < 14, w < 14](X[n, c, h, w]) }"),
            "n, c, h, w");
  EXPECT_EQ(joined("kernel k(X: float32[8, 64, 14, 14]) -> (Y: float32[64]) {"
                   " Y[c] = sum[n < 8, h < 14, w < 14](X[n, c, h, w]) }"),
            "h, w");
}

TEST(ChooseJoined, ReductionsInsideOfExpressionsAre) {
  EXPECT_EQ(steps_of("kernel k(X: float32[8, 64, 14, 14]) -> (Y: float32[8, 64]) {"
                     " Y[n, c] = sum[h < 14, w < 14](X[n, c, h, w]) / 196.0 }"),
            "schedule cpu {\n"
            "  parallel(Y.n)\n"
            "  parallel(Y.c)\n"
            "  fuse(Y.h, Y.w)\n"
            "  split(Y.h.w.fused, factor=32)\n"
            "  vectorize(Y.h.w.fused.inner)\n"
            "}\n");
}

TEST(ChooseJoined, OthersAreNot) {
  EXPECT_EQ(joined(sum_of("X[n, c, w, h]")), "");                        // the other way round
  EXPECT_EQ(joined(sum_of("X[n, c, 13 - h, w]")), "");                   // backwards
  EXPECT_EQ(joined(sum_of("U[n, c, h * 2, w]")), "");                    // not all lines
  EXPECT_EQ(joined(sum_of("U[n, c, h + 2, w]", "h < 14, w < 13")), "");  // not all of a line
  EXPECT_EQ(joined(sum_of("X[n, c, I[h], w]")), "");                     // by data
  EXPECT_EQ(joined(sum_of("X[n, c, h, w] * float32(w)")), "");           // which of them it is
  EXPECT_EQ(joined(sum_of("X[n, c, h, w] * Z[w, h]")), "");              // not of both
  EXPECT_EQ(joined(sum_of("U[n, c, h, w]", "1 <= h < 14, w < 14")), "");
}

TEST(ChooseJoined, WhatIsWrittenOutHasToGoOn) {
  const auto through = [](std::string_view value) {
    return fmt::format(
        "kernel k(X: float32[8, 64, 14, 14], Z: float32[14]) -> (Y: float32[8, 64]) {{\n"
        "  E: float32[8, 64, 14, 14]\n  E[n, c, h, w] = {}\n"
        "  Y[n, c] = sum[h < 14, w < 14](E[n, c, h, w]) }}\n",
        value);
  };
  EXPECT_EQ(joined(through("exp(X[n, c, h, w])")), "h, w");
  EXPECT_EQ(joined(through("X[n, c, h, w] + Z[w]")), "");
  EXPECT_EQ(joined(through("select(h > 0, X[n, c, h, w], 0)")), "");
  // What that is computed of, too.
  const auto through_two = [](std::string_view value) {
    return fmt::format(
        "kernel k(X: float32[8, 64, 14, 14], Z: float32[14]) -> (Y: float32[8, 64]) {{\n"
        "  D: float32[8, 64, 14, 14]\n  D[n, c, h, w] = {}\n"
        "  E: float32[8, 64, 14, 14]\n  E[n, c, h, w] = exp(D[n, c, h, w])\n"
        "  Y[n, c] = sum[h < 14, w < 14](E[n, c, h, w]) }}\n",
        value);
  };
  EXPECT_EQ(joined(through_two("exp(X[n, c, h, w])")), "h, w");
  EXPECT_EQ(joined(through_two("exp(X[n, c, h, w] + Z[w])")), "");
}

std::string elements_of(std::string_view value, int width = 14) {
  return fmt::format(
      "kernel k(X: float32[8, 64, 14, {0}], S: float32[64], Z: float32[{0}]) ->"
      " (Y: float32[8, 64, 14, {0}]) {{ Y[n, c, h, w] = {1} }}\n",
      width, value);
}

TEST(ChooseJoined, ElementsOfShortLinesAre) {
  EXPECT_EQ(joined(elements_of("max(X[n, c, h, w] + S[c], 0)")), "h, w");
  EXPECT_EQ(joined(elements_of("X[n, c, h, w] * 2")), "n, c, h, w");
  EXPECT_EQ(joined(elements_of("X[n, c, h, w] + Z[w]")), "");
  // Whole vectors, and lines of which the rest is little.
  EXPECT_EQ(joined(elements_of("X[n, c, h, w] + S[c]", 32)), "");
  EXPECT_EQ(joined(elements_of("X[n, c, h, w] + S[c]", 1001)), "");
}

/// Loops that other stages stand in stay.
TEST(ChooseJoined, NormalisedImagesAreOneLineEach) {
  const std::string text =
      "kernel k(X: float32[8, 64, 14, 14]) -> (Y: float32[8, 64, 14, 14]) {\n"
      "  M: float32[8, 64]\n  M[n, c] = max[h < 14, w < 14](X[n, c, h, w])\n"
      "  Y[n, c, h, w] = X[n, c, h, w] - M[n, c] }\n";
  EXPECT_EQ(joined(text, "M"), "h, w");
  EXPECT_EQ(joined(text, "Y"), "h, w");
  EXPECT_NE(steps_of(text).find("compute_at(M, Y.c)"), std::string::npos);
}

TEST(ChooseJoined, LoopsWithSumsInPartsAreNot) {
  const std::string steps = steps_of(
      "kernel k(X: bfloat16[2, 300, 5, 5], W: bfloat16[4, 300, 3, 3]) ->"
      " (Y: bfloat16[2, 4, 3, 3]) {\n"
      "  S: float32[2, 4, 3, 3]\n"
      "  S[n, f, y, x] = sum[c < 300, i < 3, j < 3](\n"
      "    float32(X[n, c, y + i, x + j]) * float32(W[f, c, i, j]))\n"
      "  Y[n, f, y, x] = bfloat16(S[n, f, y, x]) }\n");
  EXPECT_NE(steps.find("rfactor(S.c.outer)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("compute_at(S, Y.y)"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("fuse("), std::string::npos) << steps;
}

}  // namespace
}  // namespace kiln::testing
