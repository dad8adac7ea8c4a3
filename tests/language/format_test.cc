#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::language {
namespace {

using testing::expect_error;
using testing::kernel_of;

/// Formats, and sees that a second time changes nothing.
std::string formatted(std::string_view text) {
  const std::string once = format_text(text, "test.kiln");
  EXPECT_EQ(format_text(once, "test.kiln"), once);
  return once;
}

TEST(Format, PutsAStatementOnALine) {
  EXPECT_EQ(formatted("kernel f(A:float32[n],B : float32[ n,m ])->(C: float32[n]) { D: float32[n]"
                      " D[i]=-A[i]*2; C[ i ] = sum [k<m] ( B[i,k] ) - (-D[i]) "
                      "schedule cpu{split(C.i,factor = 8)vectorize( C.i.inner )} }"),
            "kernel f(A: float32[n], B: float32[n, m]) -> (C: float32[n]) {\n"
            "  D: float32[n]\n"
            "  D[i] = -A[i] * 2\n"
            "  C[i] = sum[k < m](B[i, k]) - (-D[i])\n"
            "  schedule cpu {\n"
            "    split(C.i, factor=8)\n"
            "    vectorize(C.i.inner)\n"
            "  }\n"
            "}\n");
}

TEST(Format, SetsScansOnLevelsOfTheirOwn) {
  EXPECT_EQ(formatted("kernel f(X: float32[m, n]) -> (S: float32[m, n]) { scan t { S[0, i] = X[0, "
                      "i]  S[t, i] = S[t - 1, i] + X[t, i] } }"),
            "kernel f(X: float32[m, n]) -> (S: float32[m, n]) {\n"
            "  scan t {\n"
            "    S[0, i] = X[0, i]\n"
            "    S[t, i] = S[t - 1, i] + X[t, i]\n"
            "  }\n"
            "}\n");
}

TEST(Format, KeepsCommentsAtTheirPlaces) {
  EXPECT_EQ(formatted("# What it is.  \n#second\n\n\nkernel f(A: float32[n]) -> (B: float32[n]) {# "
                      "head\n# before\nB[i] = A[i] # behind\n\n\n  # last\n }\n# end"),
            "# What it is.\n"
            "#second\n"
            "\n"
            "kernel f(A: float32[n]) -> (B: float32[n]) {  # head\n"
            "  # before\n"
            "  B[i] = A[i]  # behind\n"
            "\n"
            "  # last\n"
            "}\n"
            "# end\n");
}

TEST(Format, KeepsACommentInsideAStatement) {
  EXPECT_EQ(formatted("kernel f(A: float32[n],  # what comes in\n B: float32[n]) -> (C: "
                      "float32[n]) {\n C[i] = A[i]\n   # and more\n + B[i]\n}"),
            "kernel f(A: float32[n],  # what comes in\n"
            "    B: float32[n]) -> (C: float32[n]) {\n"
            "  C[i] = A[i]\n"
            "      # and more\n"
            "      + B[i]\n"
            "}\n");
}

TEST(Format, SetsCommentsOfNeighboursInOneColumn) {
  EXPECT_EQ(formatted("kernel f(A: float32[n]) -> (B: float32[n]) {\n  C: float32[n] # a\n"
                      "  C[i] = A[i] * 2 # b\n\n  B[i] = C[i] # c\n}\n"),
            "kernel f(A: float32[n]) -> (B: float32[n]) {\n"
            "  C: float32[n]    # a\n"
            "  C[i] = A[i] * 2  # b\n"
            "\n"
            "  B[i] = C[i]  # c\n"
            "}\n");
}

TEST(Format, KeepsOneBlankLineAndSetsOneBetweenKernels) {
  EXPECT_EQ(formatted("kernel f(A: float32[n]) -> (B: float32[n]) {\n\n\n  C: float32[n]\n\n\n\n  "
                      "C[i] = A[i]\n  B[i] = C[i]\n\n}\nkernel g(A: float32[n]) -> (B: float32[n]) "
                      "{ B[i] = A[i] }"),
            "kernel f(A: float32[n]) -> (B: float32[n]) {\n"
            "  C: float32[n]\n"
            "\n"
            "  C[i] = A[i]\n"
            "  B[i] = C[i]\n"
            "}\n"
            "\n"
            "kernel g(A: float32[n]) -> (B: float32[n]) {\n"
            "  B[i] = A[i]\n"
            "}\n");
}

TEST(Format, BreaksLongLinesWhereBracketsAreFewest) {
  EXPECT_EQ(
      formatted(
          "kernel f(first: float32[n, m], second: float32[n, m], third: float32[n, m], fourth: "
          "float32[n, m]) -> (B: float32[n, m]) { B[i, j] = max(first[i, j] + second[i, j], "
          "third[i, j]) * fourth[i, j] + max(second[i, j], fourth[i, j]) }"),
      "kernel f(first: float32[n, m], second: float32[n, m], third: float32[n, m], fourth: "
      "float32[n, m])\n"
      "    -> (B: float32[n, m]) {\n"
      "  B[i, j] = max(first[i, j] + second[i, j], third[i, j]) * fourth[i, j]\n"
      "      + max(second[i, j], fourth[i, j])\n"
      "}\n");
}

TEST(Format, TakesScheduleFiles) {
  EXPECT_EQ(formatted("# for the small host\nschedule cpu{parallel(C.i)} schedule cuda{bind(C.i, "
                      "blockIdx.x)}"),
            "# for the small host\n"
            "schedule cpu {\n"
            "  parallel(C.i)\n"
            "}\n"
            "schedule cuda {\n"
            "  bind(C.i, blockIdx.x)\n"
            "}\n");
}

TEST(Format, RefusesWhatIsNoKernel) {
  expect_error([] { format_text("kernel f(", "test.kiln"); }, ErrorKind::InvalidArgument,
               "expected the name of a tensor, but found the end of the file");
  expect_error([] { format_text("# nothing\n", "test.kiln"); }, ErrorKind::InvalidArgument,
               "expected a kernel, but the file has none");
  expect_error([] { format_text("program p { }", "test.kiln"); }, ErrorKind::InvalidArgument,
               "expected a kernel, but the file has none");
  expect_error([] { format_text("schedule cpu { } kernel f", "test.kiln"); },
               ErrorKind::InvalidArgument, "expected a schedule, but found kernel");
}

bool has_long_line(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 100) return true;
  }
  return false;
}

/// What the printer says is laid out already, but for long lines, which it does not break.
TEST(Format, AgreesWithThePrinter) {
  for (const char* name : {"cumsum", "two_stage_scan", "two_state_scan", "fibonacci", "matmul",
                           "softmax", "conv2d", "elementwise"}) {
    for (const TextKernel& kernel : parse_text(testing::kernel_file(name), name)) {
      const std::string printed = print_text(kernel);
      const std::string result = formatted(printed);
      EXPECT_EQ(print_text(kernel_of(result)), printed);
      EXPECT_EQ(result == printed, !has_long_line(printed)) << printed;
    }
  }
}

TEST(Format, KeepsTheMeaningOfTheExamplesOfItsPage) {
  std::ifstream stream(std::string(KILN_DOCS) + "/kernel_files.md");
  std::stringstream page;
  page << stream.rdbuf();
  const std::string text = page.str();
  size_t examples = 0;
  const std::string fence = "```kiln\n";
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    const std::string example = text.substr(begin, text.find("```", begin) - begin);
    const std::string result = formatted(example);
    const auto before = parse_text(example, "page");
    const auto after = parse_text(result, "page");
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(print_text(before[i]), print_text(after[i]));
    }
    ++examples;
  }
  EXPECT_GE(examples, 4U);
}

constexpr const char* kAxpy =
    "# y = a x + y\n"
    "kernel axpy(X: float32[n], Y: float32[n]) -> (Z: float32[n]) {\n"
    "  T: float32[n]  # twice\n"
    "  T[i] = 2 * X[i]\n"
    "  Z[i] = T[i] + Y[i]\n"
    "\n"
    "  schedule cpu {\n"
    "    parallel(Z.i)  # old\n"
    "  }\n"
    "}\n";

TEST(ScheduleText, IsReadForItsKernel) {
  const TextKernel kernel = kernel_of(kAxpy);
  const TargetSchedules schedules = parse_schedules(
      "schedule cpu { split(Z.i, factor=4) unroll(Z.i.inner) }", "fast.kiln", kernel.kernel);
  ASSERT_EQ(schedules.size(), 1U);
  EXPECT_EQ(schedules[0].first, "cpu");
  EXPECT_EQ(print_schedule(kernel.kernel, "cpu", schedules[0].second),
            "schedule cpu {\n"
            "  split(Z.i, factor=4)\n"
            "  unroll(Z.i.inner)\n"
            "}\n");
}

TEST(ScheduleText, TakesThePlaceOfTheOldOne) {
  EXPECT_EQ(apply_schedules(kAxpy, "axpy.kiln", "axpy",
                            "# fast\nschedule cpu { vectorize(Z.i)  # wide\n }", "fast.kiln"),
            "# y = a x + y\n"
            "kernel axpy(X: float32[n], Y: float32[n]) -> (Z: float32[n]) {\n"
            "  T: float32[n]  # twice\n"
            "  T[i] = 2 * X[i]\n"
            "  Z[i] = T[i] + Y[i]\n"
            "\n"
            "  schedule cpu {\n"
            "    vectorize(Z.i)  # wide\n"
            "  }\n"
            "}\n");
}

TEST(ScheduleText, StandsAtTheEndOfAKernelThatHasNone) {
  EXPECT_EQ(apply_schedules("kernel f(A: float32[n]) -> (B: float32[n]) { B[i] = A[i]  # copy\n}",
                            "f.kiln", "",
                            "schedule cpu { parallel(B.i) } schedule cuda { bind(B.i, threadIdx.x) "
                            "}",
                            "s.kiln"),
            "kernel f(A: float32[n]) -> (B: float32[n]) {\n"
            "  B[i] = A[i]  # copy\n"
            "\n"
            "  schedule cpu {\n"
            "    parallel(B.i)\n"
            "  }\n"
            "\n"
            "  schedule cuda {\n"
            "    bind(B.i, threadIdx.x)\n"
            "  }\n"
            "}\n");
}

TEST(ScheduleText, MendsAScheduleThatIsRefused) {
  const std::string broken =
      "kernel f(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] schedule cpu { bake(B.i) } }";
  EXPECT_EQ(apply_schedules(broken, "f.kiln", "f", "schedule cpu { parallel(B.i) }", "s.kiln"),
            "kernel f(A: float32[n]) -> (B: float32[n]) {\n"
            "  B[i] = A[i]\n"
            "  schedule cpu {\n"
            "    parallel(B.i)\n"
            "  }\n"
            "}\n");
}

TEST(ScheduleText, RefusesWhatDoesNotFit) {
  const auto apply = [](std::string_view kernel, std::string_view schedule) {
    return [=] { apply_schedules(kAxpy, "axpy.kiln", kernel, schedule, "s.kiln"); };
  };
  expect_error(apply("axpy", "schedule cpu { parallel(Z.j) }"), ErrorKind::InvalidArgument,
               "unknown axis Z.j; did you mean Z.i");
  expect_error(apply("axpy", "schedule cpu { parallel(Z.i) } schedule cpu { }"),
               ErrorKind::InvalidArgument, "the kernel has two schedules for cpu");
  expect_error(apply("gemm", "schedule cpu { }"), ErrorKind::NotFound,
               "axpy.kiln has no kernel gemm; it has axpy");
  expect_error(
      [] { apply_schedules("schedule cpu { }", "axpy.kiln", "", "schedule cpu { }", "s"); },
      ErrorKind::InvalidArgument, "expected a kernel, but found schedule");
  expect_error(apply("axpy", kAxpy), ErrorKind::InvalidArgument,
               "expected a schedule, but found kernel");
  expect_error([] { parse_text("schedule cpu { }", "s.kiln"); }, ErrorKind::InvalidArgument,
               "expected a kernel, but found schedule");
  const std::string two =
      "kernel f(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] } kernel g(A: float32[n]) -> (B: "
      "float32[n]) { B[i] = A[i] }";
  expect_error([&] { apply_schedules(two, "two.kiln", "", "schedule cpu { }", "s.kiln"); },
               ErrorKind::InvalidArgument, "two.kiln has several kernels: choose one of f, g");
}

/// Two axes of one stage may have one name; a schedule can tell them apart all the same.
TEST(ScheduleText, NamesTheSecondOfTwoAxes) {
  const TextKernel kernel = kernel_of(
      "kernel f(A: float32[n, m]) -> (B: float32[n]) {\n"
      "  B[i] = sum[k < m](A[i, k]) / max[k < m](A[i, k])\n"
      "  schedule cpu { unroll(B.k_1) }\n"
      "}");
  ASSERT_EQ(kernel.schedules.size(), 1U);
  const Step& step = kernel.schedules[0].second.steps[0];
  EXPECT_EQ(kernel.kernel.names.axes[step.axes[0]], "k");
  EXPECT_EQ(print_schedule(kernel.kernel, "cpu", kernel.schedules[0].second),
            "schedule cpu {\n  unroll(B.k_1)\n}\n");
}

}  // namespace
}  // namespace kiln::language
