/// Automatic schedules of stages that compute element by element.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string steps_of(std::string_view text, const std::string& arch) {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  return language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, {}));
}

/// Whether the elements of a kernel, whose output is Y along i, are split into vectors of so many.
void expect_lanes(int lanes, std::string_view text, const std::string& arch) {
  const std::string steps = steps_of(text, arch);
  EXPECT_NE(steps.find(fmt::format("split(Y.i, factor={})", lanes)), std::string::npos)
      << arch << '\n'
      << text << steps;
}

std::string of_line(std::string_view value, std::string_view extent = "n") {
  return fmt::format("kernel k(X: float32[{0}]) -> (Y: float32[{0}]) {{ Y[i] = {1} }}\n", extent,
                     value);
}

/// What functions compute is a chain, of which a Zen 5 has place for four vectors.
TEST(ChooseElements, GivesChainsMoreVectorsWhereTheCoreHasPlace) {
  expect_lanes(64, of_line("exp(X[i])"), "znver5");
  expect_lanes(64, of_line("1.0 / (1.0 + exp(-X[i]))", "100000"), "znver5");
  expect_lanes(64, of_line("tanh(X[i])", "192"), "znver5");
  expect_lanes(64, of_line("exp(X[i])"), "znver4");
  for (const char* arch : {"sapphirerapids", "znver3", "x86-64-v3"})
    expect_lanes(32, of_line("exp(X[i])"), arch);
}

TEST(ChooseElements, GivesNoMoreVectorsToWhatIsShortOrNoChain) {
  expect_lanes(32, of_line("max(X[i] * 2.0 + 1.0, 0.0)"), "znver5");
  expect_lanes(32, of_line("sqrt(X[i])"), "znver5");
  expect_lanes(32, of_line("exp(X[i])", "200"), "znver5");
}

/// Without masks what is left of a row goes in shorter vectors, each with all of a function.
TEST(ChooseElements, LanesAreRowsThatAreShort) {
  const auto has_rows_as_lanes = [](std::string_view element, int columns, const char* arch) {
    const std::string steps =
        steps_of(fmt::format("kernel k(X: float32[1000, {0}]) -> (Y: float32[1000, {0}]) {{\n"
                             "  E: float32[1000, {0}]\n  E[i, j] = {1}\n"
                             "  S: float32[1000]\n  S[i] = sum[j < {0}](E[i, j])\n"
                             "  Y[i, j] = E[i, j] / S[i]\n}}\n",
                             columns, element),
                 arch);
    return steps.find("vectorize(Y.i") != std::string::npos;
  };
  EXPECT_TRUE(has_rows_as_lanes("exp(X[i, j])", 15, "znver3"));
  EXPECT_FALSE(has_rows_as_lanes("exp(X[i, j])", 16, "znver3"));
  EXPECT_FALSE(has_rows_as_lanes("X[i, j] * X[i, j]", 7, "znver3"));
  EXPECT_TRUE(has_rows_as_lanes("X[i, j] * X[i, j]", 15, "znver4"));
  EXPECT_FALSE(has_rows_as_lanes("exp(X[i, j])", 16, "znver4"));
}

TEST(ChooseElements, FindsFunctionsInWhatIsComputedInline) {
  expect_lanes(64,
               "kernel k(X: float32[n]) -> (Y: float32[n]) {\n"
               "  T: float32[n]\n"
               "  T[i] = exp(X[i])\n"
               "  Y[i] = T[i] + 1.0\n"
               "}\n",
               "znver5");
}

/// Elements in so many rows of this length.
std::string of_rows(int rows, std::string_view length) {
  return fmt::format(
      "kernel k(X: float32[{0}, {1}]) -> (Y: float32[{0}, {1}]) {{ Y[i, j] = X[i, j] + 1.0 }}\n",
      rows, length);
}

TEST(ChooseElements, OfFewRowsAreSharedAlongThem) {
  for (const char* const length : {"1000000", "n"}) {
    const std::string one = steps_of(of_rows(1, length), "znver4");
    EXPECT_NE(one.find("parallel(Y.j.outer)"), std::string::npos) << one;
  }
  const std::string three = steps_of(of_rows(3, "1000000"), "znver4");
  EXPECT_NE(three.find("split(Y.j.outer, factor=140)"), std::string::npos) << three;
  EXPECT_NE(three.find("parallel(Y.i)"), std::string::npos) << three;
  EXPECT_NE(three.find("parallel(Y.j.outer.outer)"), std::string::npos) << three;
}

TEST(ChooseElements, OfManyOrShortRowsAreSharedByRows) {
  for (const std::string& text : {of_rows(64, "1000000"), of_rows(3, "30000"), of_rows(3, "n")}) {
    const std::string steps = steps_of(text, "znver4");
    EXPECT_NE(steps.find("parallel(Y.i)"), std::string::npos) << steps;
    EXPECT_EQ(steps.find("parallel(Y.j"), std::string::npos) << steps;
  }
}

/// A complex product, of which neither part is computed as the other one is.
TEST(ChooseElements, MembersOfShortGroupsHaveVectorsOfTheirOwn) {
  EXPECT_EQ(steps_of("kernel k(A: float32[5000, 2], B: float32[5000, 2]) -> (C: float32[5000, 2]) {"
                     " C[i, p] = select(p == 0, A[i, 0]*B[i, 0] - A[i, 1]*B[i, 1],"
                     " A[i, 0]*B[i, 1] + A[i, 1]*B[i, 0]) }",
                     "znver4"),
            "schedule cpu {\n"
            "  split(C.i, factor=32)\n"
            "  reorder(C.i.outer, C.p, C.i.inner)\n"
            "  unroll(C.p)\n"
            "  vectorize(C.i.inner)\n"
            "  parallel(C.i.outer)\n"
            "}\n");
  const auto has_groups = [](std::string_view shape, std::string_view value) {
    const std::string steps = steps_of(
        fmt::format("kernel k(X: float32[5000, {0}], T: float32[{0}, 5000], I: int64[5000]) ->"
                    " (Y: float32[5000, {0}]) {{ Y[i, p] = {1} }}",
                    shape, value),
        "znver4");
    return steps.find("unroll(Y.p)") != std::string::npos;
  };
  EXPECT_TRUE(has_groups("4", "select(p == 3, 1, X[i, p])"));
  EXPECT_FALSE(has_groups("3", "select(p == 0, 1, X[i, p])"));
  EXPECT_FALSE(has_groups("8", "select(p == 0, 1, X[i, p])"));
  EXPECT_FALSE(has_groups("2", "select(p == 0, 1, X[I[i], p])"));
  // One line, whatever its groups.
  EXPECT_FALSE(has_groups("2", "X[i, p] + 1"));
}

/// A shift for each of three colours, as often as fills vectors.
TEST(ChooseElements, WhatShortRowsHaveAlikeIsRepeated) {
  EXPECT_EQ(steps_of("kernel k(X: float32[8, 224, 3], M: float32[3]) -> (Y: float32[8, 224, 3]) {"
                     " Y[n, w, c] = X[n, w, c] - M[c] }",
                     "znver4"),
            "schedule cpu {\n"
            "  fuse(Y.w, Y.c)\n"
            "  split(Y.w.c.fused, factor=48)\n"
            "  split(Y.w.c.fused.inner, factor=16)\n"
            "  unroll(Y.w.c.fused.inner.outer)\n"
            "  vectorize(Y.w.c.fused.inner.inner)\n"
            "  cache_read(M, global, Y, Y.w.c.fused.inner.outer, Y.w.c.fused.inner.inner)\n"
            "}\n");
  const auto is_repeated = [](int length, std::string_view value) {
    const std::string steps =
        steps_of(fmt::format("kernel k(X: float32[5000, {0}], M: float32[{0}], Z: float32[5000]) ->"
                             " (Y: float32[5000, {0}]) {{ Y[i, c] = {1} }}",
                             length, value),
                 "znver4");
    return steps.find("cache_read(M") != std::string::npos;
  };
  EXPECT_TRUE(is_repeated(10, "max(X[i, c] + M[c], 0)"));
  EXPECT_FALSE(is_repeated(16, "X[i, c] + M[c]"));
  EXPECT_FALSE(is_repeated(11, "X[i, c] + M[c]"));  // eleven vectors
  EXPECT_FALSE(is_repeated(3, "X[i, c] + M[c] + M[2 - c]"));
  EXPECT_FALSE(is_repeated(3, "X[i, c] + M[c] + Z[i]"));
}

/// Rows that data chooses are vectors as others are; elements that it chooses are not.
TEST(ChooseElements, RowsThatDataChoosesAreVectors) {
  const auto has = [](const std::string& steps, std::string_view part) {
    return steps.find(part) != std::string::npos;
  };
  const std::string rows = steps_of(
      "kernel k(T: float32[3000, 256], I: int64[512]) -> (Y: float32[512, 256]) {"
      " Y[i, j] = T[I[i], j] }",
      "znver4");
  EXPECT_TRUE(has(rows, "vectorize(Y.j.inner)")) << rows;
  const std::string sums = steps_of(
      "kernel k(T: float32[3000, 256], I: int64[512, 20]) -> (Y: float32[512, 256]) {"
      " Y[i, j] = sum[q < 20](T[I[i, q], j]) }",
      "znver4");
  EXPECT_TRUE(has(sums, "vectorize(Y.j.inner)")) << sums;
  const std::string along = steps_of(
      "kernel k(T: float32[3000, 256], I: int64[512]) -> (Y: float32[512]) {"
      " Y[i] = max[q < 256](T[I[i], q]) }",
      "znver4");
  EXPECT_TRUE(has(along, "vectorize(Y.q.inner)")) << along;
  for (const char* element : {"T[I[j], j]", "T[i, I[j]]"}) {
    const std::string steps = steps_of(
        fmt::format("kernel k(T: float32[256, 256], I: int64[256]) -> (Y: float32[256, 256]) {{"
                    " Y[i, j] = {} }}",
                    element),
        "znver4");
    EXPECT_FALSE(has(steps, "vectorize")) << steps;
  }
}

}  // namespace
}  // namespace kiln::testing
