#include "compiler/language/text/text.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "compiler/language/wire/canonical.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::language::text {
namespace {

using testing::expect_error;
using testing::kernel_of;

std::string id(const Kernel& kernel) { return id_of(canonical_form(kernel.definition)); }

/// print -> parse gives the same definition, the same tensor names and the same schedules.
void expect_round_trip(const TextKernel& kernel) {
  const std::string text = print_text(kernel);
  SCOPED_TRACE(text);
  const std::vector<TextKernel> again = parse_text(text, "again.kiln");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(id(again[0].kernel), id(kernel.kernel));
  EXPECT_EQ(print_text(again[0]), text);
  const CanonicalKernel before = canonicalize(kernel.kernel, {});
  const CanonicalKernel after = canonicalize(again[0].kernel, {});
  EXPECT_EQ(after.kernel.names.kernel, before.kernel.names.kernel);
  EXPECT_EQ(after.kernel.names.variables, before.kernel.names.variables);
  EXPECT_EQ(after.kernel.names.axes, before.kernel.names.axes);
  EXPECT_EQ(after.kernel.names.stages, before.kernel.names.stages);
  ASSERT_EQ(again[0].schedules.size(), kernel.schedules.size());
  for (size_t i = 0; i < kernel.schedules.size(); ++i) {
    EXPECT_EQ(again[0].schedules[i].first, kernel.schedules[i].first);
    EXPECT_EQ(canonical_form(again[0].kernel.definition, again[0].schedules[i].second),
              canonical_form(kernel.kernel.definition, kernel.schedules[i].second));
  }
}

void expect_round_trip(std::string_view text) { expect_round_trip(kernel_of(text)); }

class TestKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(TestKernels, AreReadAndPrinted) {
  for (const TextKernel& kernel : parse_text(testing::kernel_file(GetParam()), GetParam())) {
    expect_round_trip(kernel);
  }
}

INSTANTIATE_TEST_SUITE_P(Text, TestKernels,
                         ::testing::Values("cumsum", "two_stage_scan", "two_state_scan",
                                           "row_cumsum", "backward", "lstm", "fibonacci", "matmul",
                                           "softmax", "conv2d", "elementwise"));

TEST(Text, ReadsTheExamplesOfItsPage) {
  std::ifstream stream(std::string(KILN_DOCS) + "/kernel_files.md");
  std::stringstream page;
  page << stream.rdbuf();
  const std::string text = page.str();
  int blocks = 0;
  for (size_t at = 0; (at = text.find("```kiln\n", at)) != std::string::npos; ++blocks) {
    at += 8;
    const std::string block = text.substr(at, text.find("```", at) - at);
    SCOPED_TRACE(block);
    for (const TextKernel& kernel : parse_text(block, "kernel_files.md")) {
      expect_round_trip(kernel);
    }
    EXPECT_NO_THROW(parse_programs(block, "kernel_files.md"));
  }
  EXPECT_EQ(blocks, 7);
}

TEST(Text, PrintsWhatItRead) {
  const std::string text =
      "kernel cumsum(X: float32[m, n]) -> (S: float32[m, n]) {\n"
      "  scan t {\n"
      "    S[0, i] = X[0, i]\n"
      "    S[t, i] = S[t - 1, i] + X[t, i]\n"
      "  }\n"
      "  schedule cpu {\n"
      "    split(S.update.i, factor=32)\n"
      "    vectorize(S.update.i.inner)\n"
      "    split(S.idx, factor=4)\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(print_text(kernel_of(text)), text);
}

TEST(Text, PrintsBoundsTypesAndConstants) {
  const std::string text =
      "kernel mixed(A: float16[n, m + 1], B: int8[n], out C: float16[n], D: bool[n]) {\n"
      "  size shift\n"
      "  T: int64[n]\n"
      "  T[i] = int64(B[i]) * shift - -3\n"
      "  C[i] = sum[1 <= k < m](A[i, k + 1] * 0.5)\n"
      "}\n";
  EXPECT_EQ(print_text(kernel_of(text)),
            "kernel mixed(A: float16[n, m + 1], B: int8[n], out C: float16[n], D: bool[n]) {\n"
            "  C[i] = sum[1 <= k < m](A[i, k + 1] * 0.5)\n"
            "}\n");
}

TEST(Text, KeepsEveryShapeOfAnExpression) {
  for (const char* body :
       {"A[i] - (A[i] - A[i])", "-A[i] * A[i]", "-(A[i] * A[i])", "A[i] * (A[i] + 1.5)",
        "select(i < 3 && !(A[i] == 0.0) || i % 2 == 1, A[i], 2)", "float32(float64(A[i]) * 0.1)",
        "float32(1) * A[i]", "float32(int64(3) + 4)", "pow(A[i], 2) + A[i] ** -1",
        "max(A[i], -inf) + nan", "float32(uint64(18446744073709551615))", "1e-7 + A[i] * 1e30",
        "float32(i // 2 * 2 + (i & 3 | 1 ^ 2 << 1))", "float32(-9223372036854775808)",
        "fma(A[i], A[i], 0.25)", "if_then_else(isnan(A[i]), 0, A[i])",
        "float32(float16(0.5) < float16(0.25))", "float32(popcount(-7 + i))", "negative(3.5)"}) {
    SCOPED_TRACE(body);
    expect_round_trip("kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = " + std::string(body) +
                      " }");
  }
}

TEST(Text, KeepsReductionsOfEveryKind) {
  for (const char* body :
       {"sum[k < n](A[k])", "prod[k < i](A[k])", "max[2 <= k < 7](A[k])", "min[i <= k < n](A[k])",
        "sum[i <= k < i + 3](A[k])", "sum[k < n, j < k + 1](A[j])"}) {
    SCOPED_TRACE(body);
    expect_round_trip("kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = " + std::string(body) +
                      " }");
  }
  expect_round_trip("kernel k(A: float32[n]) -> (B: bool[]) { B[] = any[k < n](A[k] > 1) }");
}

TEST(Text, KeepsReductionsInsideExpressions) {
  const std::string text =
      "kernel mean(A: float32[m, n]) -> (B: float32[m]) {\n"
      "  B[i] = sum[k < n](A[i, k] * max[j < n](A[j, k])) / float32(n)\n"
      "}\n";
  EXPECT_EQ(print_text(kernel_of(text)), text);
  expect_round_trip(text);
  expect_round_trip(
      "kernel twice(A: float32[n]) -> (B: float32[]) {\n"
      "  B[] = sum[k < n](A[k]) + prod[r < n](A[r])\n"
      "}");
}

TEST(Text, KeepsTuplesAndExplicitScans) {
  expect_round_trip(
      "kernel pair(A: float32[n]) -> (P: float32[n], Q: int64[n]) {\n"
      "  P[i], Q[i] = A[i] * 2, i + 1\n"
      "}");
  expect_round_trip(
      "kernel two(A: float32[n, l]) -> (P: float32[n], Q: float32[n]) {\n"
      "  P[i], Q[i] = sum[k < l](A[i, k]), max[k < l](A[i, k])\n"
      "}");
  expect_round_trip(
      "kernel scans(X: float32[m, n], H: float32[1, n]) -> (S: float32[m, n]) {\n"
      "  s_state: state float32[m, n]\n"
      "  s_update: float32[m, n]\n"
      "  s_update[t, i] = s_state[t - 1, i] + X[t, i]\n"
      "  S = scan(H, s_update, s_state, axis=time)\n"
      "  schedule cpu { unroll(time) parallel(s_update.i) }\n"
      "}");
  expect_round_trip(
      "kernel both(X: float32[m, n]) -> (scan.v0: float32[m, n], scan.v1: float32[m]) {\n"
      "  scan t {\n"
      "    scan.v0[0, i] = X[0, i]\n"
      "    scan.v1[0] = 1\n"
      "    scan.v0[t, i] = scan.v0[t - 1, i] + scan.v1[t - 1]\n"
      "    scan.v1[t] = scan.v1[t - 1] * 2\n"
      "  }\n"
      "}");
}

TEST(Text, KeepsTheDimensionAndDirectionOfTime) {
  const char* const blocks[] = {
      "scan t { S[i, 0] = X[i, 0] S[i, t] = S[i, t - 1] + X[i, t] }",
      "scan t { S[i, u < 2] = X[i, u] S[i, t] = S[i, t - 2] + X[i, t] }",
      "scan t reverse { S[n - 1, i] = X[n - 1, i] S[t, i] = S[t + 1, i] + X[t, i] }",
      "scan t reverse { S[i, (m) - 2 + j] = X[i, j] S[i, t] = S[i, t + 2] + X[i, t] }",
      "scan t reverse { S[n - 1, i] = X[n - 1, i] S[n - 2, i] = 0 S[t, i] = S[t + 2, i] }",
      "D: float32[m, n] scan t { S[0, i] = X[0, i] D[i, u] = S[u - 1, i] S[t, i] = D[i, t] }",
  };
  for (const char* block : blocks) {
    const std::string text =
        "kernel k(X: float32[n, m]) -> (S: float32[n, m]) { " + std::string(block) + " }";
    expect_round_trip(text);
    EXPECT_NE(print_text(kernel_of(text)).find("scan "), std::string::npos);
  }
  expect_round_trip(
      "kernel k(X: float32[m + 1, 20]) -> (S: float32[m + 1, 20], R: float32[20]) {\n"
      "  scan t reverse {\n"
      "    S[m, i] = X[m, i]\n"
      "    S[t, i] = S[t + 1, i] + X[t, i]\n"
      "  }\n"
      "  scan t reverse { R[18 + j] = X[0, j]  R[t] = R[t + 1] + R[t + 2] }\n"
      "}");
  expect_round_trip(
      "kernel k(H: float32[n, 1]) -> (S: float32[n, 9]) {\n"
      "  s: state float32[n, 9]  u: float32[n, 9]\n"
      "  u[i, t] = s[i, t + 1] * 2\n"
      "  S = scan(H, u, s, axis=time, dimension=1, reverse)\n"
      "}");
}

TEST(Text, ReadsSeveralInitialRows) {
  expect_round_trip(
      "kernel rows(X: float32[m, n]) -> (S: float32[m, n]) {\n"
      "  scan t {\n"
      "    S[0, i] = X[0, i]\n"
      "    S[1, i] = X[1, i] * 2\n"
      "    S[t, i] = S[t - 1, i] + S[t - 2, i]\n"
      "  }\n"
      "}");
}

TEST(Text, CastsAnIntegerIndex) {
  expect_round_trip(
      "kernel gather(A: float32[n], I: int32[m]) -> (B: float32[m]) { B[i] = A[I[i]] }");
}

TEST(Text, MakesNamesThatCanBeRead) {
  TextKernel kernel = kernel_of("kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] + 1 }");
  kernel.kernel.names.stages = {"my tensor", "nan"};
  kernel.kernel.names.axes = {"0"};
  EXPECT_EQ(print_text(kernel),
            "kernel k(my_tensor: float32[n]) -> (nan_: float32[n]) {\n"
            "  nan_[_0] = my_tensor[_0] + 1.0\n"
            "}\n");
}

struct Wrong {
  const char* text;
  const char* message;
  const char* note;  // the last one
};

/// `body` in a kernel with inputs A: float32[n, l], B: int32[n] and output C: float32[n].
std::string around(std::string_view body) {
  return "kernel k(A: float32[n, l], B: int32[n]) -> (C: float32[n]) {\n" + std::string(body) +
         "\n}";
}

TEST(Text, SaysWhereTheSyntaxIsWrong) {
  const Wrong table[] = {
      {"C[i] = A[i, 0] +", "expected an expression, but found }", "line 3, column 1\n}\n^"},
      {"C[i] = A[i, 0", "expected , or ], but found }", "line 3, column 1\n}\n^"},
      {"C[i] = A[i 0]", "expected , or ], but found 0",
       "line 2, column 12\nC[i] = A[i 0]\n           ^"},
      {"C = A[0, 0]", "C needs its indices on the left: C[i] = ..., or C[] = ... without any",
       "line 2, column 1\nC = A[0, 0]\n^"},
      {"C[i] = $", "unexpected character $", "line 2, column 8\nC[i] = $\n       ^"},
      {"C[i] = 3x", "3x is neither a number nor a name", "line 2, column 8\nC[i] = 3x\n       ^"},
      {"C[i] = caf\xe9", "byte 0xe9 begins no character of UTF-8; save the file as UTF-8",
       "line 2, column 11\nC[i] = caf?\n          ^"},
      {"C[i] = A[i, q]", "unknown name q", "line 2, column 13\nC[i] = A[i, q]\n            ^"},
      {"C[i] = A[i, 0] + expp(A[i, 0])", "unknown function expp; did you mean exp",
       "line 2, column 18\nC[i] = A[i, 0] + expp(A[i, 0])\n                 ^"},
      {"C[i] = A[i]", "A has 2 dimensions, but is read with 1 index",
       "line 2, column 8\nC[i] = A[i]\n       ^"},
      {"C[i] = sum(A[i, 0], i)", "sum reduces over axes: write sum[k < n](...)",
       "line 2, column 8\nC[i] = sum(A[i, 0], i)\n       ^"},
      {"C[i] = if A[i, 0] > 0 then A[i, 0] else 0",
       "there is no if; write if_then_else(condition, a, b)",
       "line 2, column 8\nC[i] = if A[i, 0] > 0 then A[i, 0] else 0\n       ^"},
      {"C[i] += A[i, 0]",
       "there is no +=, since an element is assigned once; a sum over k is sum[k < n](...)",
       "line 2, column 1\nC[i] += A[i, 0]\n^"},
      {"for i in 0..m { C[i] = A[i, 0] }",
       "unexpected ..; there are no loops to write: an assignment to C[i] is made for every i",
       "line 2, column 12\nfor i in 0..m { C[i] = A[i, 0] }\n           ^"},
      {"C[i] = A[i, 0] + B[i]", "add takes numbers of one type, but got float32 and int32",
       "line 2, column 16\nC[i] = A[i, 0] + B[i]\n               ^"},
      {"C[i] = B[i]", "C is float32, but its value is int32; cast it, as in float32(...)",
       "line 2, column 8\nC[i] = B[i]\n       ^"},
      {"C[i] = float32(B[i] / 2)",
       "/ divides floating numbers; write // to round down or truncdiv to round to zero, or cast",
       "line 2, column 21\nC[i] = float32(B[i] / 2)\n                    ^"},
      {"C[i] = float32(B[i] + 0.5)", "0.5 is not an int32",
       "line 2, column 23\nC[i] = float32(B[i] + 0.5)\n                      ^"},
      {"C[i] = float32(int8(300))", "300 does not fit int8",
       "line 2, column 21\nC[i] = float32(int8(300))\n                    ^"},
      {"C[i] = A[i, 0] * -1e39", "-1e39 does not fit float32; infinity is written inf",
       "line 2, column 19\nC[i] = A[i, 0] * -1e39\n                  ^"},
      {"C[i] = float32(float64(A[i, 0]) + 1e400)",
       "1e400 does not fit float64; infinity is written inf",
       "line 2, column 35\nC[i] = float32(float64(A[i, 0]) + 1e400)\n                              "
       "    ^"},
      {"D[i] = A[i, 0]", "D has no type; declare it before, as in D: float32[n]",
       "line 2, column 1\nD[i] = A[i, 0]\n^"},
      {"D: flot32[n]", "unknown type flot32; did you mean float32",
       "line 2, column 4\nD: flot32[n]\n   ^"},
      {"C[i, j] = A[i, j]", "C has 1 dimension, but has 2 indices on the left",
       "line 2, column 1\nC[i, j] = A[i, j]\n^"},
      {"C[n] = A[n, 0]", "n is a size already; give the axis another name",
       "line 2, column 3\nC[n] = A[n, 0]\n  ^"},
      {"C[0] = A[0, 0]", "the left side names an axis for each dimension, as in C[i, j]",
       "line 2, column 3\nC[0] = A[0, 0]\n  ^"},
      {"A[i, j] = 0",
       "A is an input and cannot be computed; outputs stand behind ->, as in -> (A: ...)",
       "line 2, column 1\nA[i, j] = 0\n^"},
      {"C[i] = 1 C[i] = 2", "C is computed twice",
       "line 2, column 10\nC[i] = 1 C[i] = 2\n         ^"},
      {"C[i] = sum[k](A[i, k])", "expected a range such as k < n or 1 <= k < n",
       "line 2, column 12\nC[i] = sum[k](A[i, k])\n           ^"},
      {"C[i] = sun[k < l](A[i, k])", "unknown reducer sun; did you mean sum",
       "line 2, column 8\nC[i] = sun[k < l](A[i, k])\n       ^"},
      {"C[i] = max(A[i, 0])", "max takes 2 operands, but got 1",
       "line 2, column 8\nC[i] = max(A[i, 0])\n       ^"},
      {"scan t { C[0] = 0 C[t] = C[t - 1] C[t] = 1 }", "C is computed twice",
       "line 2, column 35\nscan t { C[0] = 0 C[t] = C[t - 1] C[t] = 1 }\n                          "
       "        ^"},
      {"scan t { C[t] = 0 }", "the scan has no initial step, as in S[0, i] = ...",
       "line 2, column 1\nscan t { C[t] = 0 }\n^"},
      {"scan t { C[0] = 0 }", "C has an initial step but no C[t, ...] = ...",
       "line 2, column 10\nscan t { C[0] = 0 }\n         ^"},
      {"scan t { C[1] = 0 C[t] = C[t - 1] }",
       "the initial steps of C must be 0, 1, ... in order; expected C[0, ...]",
       "line 2, column 10\nscan t { C[1] = 0 C[t] = C[t - 1] }\n         ^"},
      {"D: float32[n]", "C is an output, but nothing computes it",
       "line 1, column 45\nkernel k(A: float32[n, l], B: int32[n]) -> (C: float32[n]) {\n"
       "                                            ^"},
  };
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(wrong.text);
    const Error error = expect_error([&] { parse_text(around(wrong.text), "k.kiln"); },
                                     ErrorKind::InvalidArgument, wrong.message);
    ASSERT_FALSE(error.notes().empty());
    EXPECT_EQ(error.notes().back(), wrong.note);
    EXPECT_EQ(error.location().file, "k.kiln");
  }
}

TEST(Text, SaysWhatIsWrongInASchedule) {
  const std::pair<const char*, const char*> table[] = {
      {"splt(C.i, factor=2)", "unknown step splt; did you mean split"},
      {"split(C.j, factor=2)", "unknown axis C.j; did you mean C.i"},
      {"split(C.i, fctor=2)", "split has no fctor; known: factor, parts"},
      {"split(C.i factor=2)", "expected , or ) after an argument, but found factor"},
      {"split(C.i, factor=)", "expected an axis or a number, but found )"},
      {"split(C.i, parts=0)", "the parts must be at least 1"},
      {"split(C.i, factor=0)", "split(i, factor=0): the factor must be at least 1"},
      {"compute_inline(D)", "unknown stage D"},
      {"compute_inline(C, C)", "compute_inline takes no more than 1 argument"},
      {"split(C.i, factor=2) vectorize(C.i)", "axis i was split into i.outer, i.inner at line 2"},
  };
  for (const auto& [steps, message] : table) {
    SCOPED_TRACE(steps);
    expect_error(
        [&, steps = steps] {
          parse_text("kernel k(A: float32[n]) -> (C: float32[n]) { C[i] = A[i] }\nschedule cpu { " +
                         std::string(steps) + " }",
                     "k.kiln");
        },
        ErrorKind::InvalidArgument, message);
  }
}

/// Whose parts, rounded up to whole tiles, would be past the end of int64.
TEST(Text, RefusesAxesNearTheEndOfInt64) {
  expect_error([] { parse_text(around("C[i] = sum[k < 9223372036854775807](A[i, k])"), "k.kiln"); },
               ErrorKind::ResourceExhausted,
               "axis k has 9223372036854775807 iterations; the limit is 140737488355328");
  expect_error(
      [] { parse_text(around("C[i] = sum[-9223372036854775807 <= k < 4](A[i, k])"), "k.kiln"); },
      ErrorKind::ResourceExhausted,
      "axis k begins at -9223372036854775807; the limit is -140737488355328");
}

TEST(Text, CastsOneOperand) {
  expect_error([] { parse_text(around("C[i] = float32(A[i, 0], 2)"), "k.kiln"); },
               ErrorKind::InvalidArgument, "float32 takes 1 operand, but got 2");
}

TEST(Text, SaysWhatIsWrongWithAFile) {
  expect_error([] { parse_text("", "k.kiln"); }, ErrorKind::InvalidArgument,
               "expected a kernel, but the file has none");
  expect_error([] { parse_text("program p {}", "k.kiln"); }, ErrorKind::InvalidArgument,
               "expected a kernel, but the file has none");
  const std::string kernel = "kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = A[i] }\n";
  expect_error([&] { parse_text(kernel + kernel, "k.kiln"); }, ErrorKind::InvalidArgument,
               "the file has two kernels k");
  expect_error([&] { parse_text(kernel + "schedule gpu {}", "k.kiln"); },
               ErrorKind::InvalidArgument, "unknown target gpu; known: cpu, cuda");
}

TEST(Text, RefusesDeepNesting) {
  const std::string deep = std::string(600, '(') + "1" + std::string(600, ')');
  expect_error([&] { parse_text(around("C[i] = " + deep), "k.kiln"); },
               ErrorKind::ResourceExhausted, "an expression has 513 levels; the limit is 512");
  std::string sum = "A[i, 0]";
  for (int i = 0; i < 600; ++i) {
    sum += " + 1";
  }
  expect_error([&] { parse_text(around("C[i] = " + sum), "k.kiln"); }, ErrorKind::ResourceExhausted,
               "an expression has 513 levels; the limit is 512");
}

TEST(Text, LocatesMistakesOfMeaning) {
  const Error error = expect_error(
      [] {
        parse_text(
            "kernel k(X: float32[m, n]) -> (S: float32[m, n]) {\n"
            "  scan t {\n"
            "    S[0, i] = X[0, i]\n"
            "    S[t, i] = S[t, i] + X[t, i]\n"
            "  }\n"
            "}\n",
            "k.kiln");
      },
      ErrorKind::InvalidArgument,
      "scan S: update reads state at t (current step); it may read only t-1");
  EXPECT_EQ(error.location().line, 4);
  EXPECT_EQ(error.location().file, "k.kiln");
}

/// Not at the last step, up to which all of them are taken.
TEST(ParseText, PointsAtTheStepThatIsWrong) {
  const std::string text =
      "kernel k(A: float32[64]) -> (C: float32[64]) {\n"
      "  C[i] = A[i] * 2\n"
      "  schedule cpu {\n"
      "    split(C.i, factor=4)\n"
      "    split(C.i, factor=8)\n"
      "    parallel(C.i.outer)\n"
      "  }\n"
      "}\n";
  const Error error =
      testing::expect_error([&] { parse_text(text, "twice.kiln"); }, ErrorKind::InvalidArgument,
                            "axis i was split into i.outer, i.inner at line 4");
  EXPECT_EQ(error.location().line, 5);
  EXPECT_EQ(error.notes().back(), "line 5, column 5\n    split(C.i, factor=8)\n    ^");
}

}  // namespace
}  // namespace kiln::language::text
