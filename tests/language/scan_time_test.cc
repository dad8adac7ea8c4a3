#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/wire/canonical.h"
#include "compiler/language/wire/decode.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"
#include "tests/support/tensors.h"

namespace kiln::language::scan_time {
namespace {

using testing::expect_error;
using testing::kernel_of;
using testing::tensor_of;
using testing::values_of;

std::string id(const TextKernel& kernel) { return id_of(canonical_form(kernel.kernel.definition)); }

std::vector<float> run(const TextKernel& kernel, std::vector<int64_t> sizes,
                       const std::vector<HostTensor>& inputs) {
  return values_of<float>(
      evaluate(kernel.kernel.definition, kernel.kernel.names, sizes, inputs)[0]);
}

using Floats = std::vector<float>;

TEST(ScanTime, IsTheDimensionOfTheInitialSteps) {
  const TextKernel rows = kernel_of(
      "kernel k(X: float32[n, m]) -> (S: float32[n, m]) {\n"
      "  scan t { S[i, 0] = X[i, 0]  S[i, t] = S[i, t - 1] + X[i, t] }\n"
      "}");
  EXPECT_EQ(run(rows, {2, 3}, {tensor_of<float>({2, 3}, {1, 2, 3, 10, 20, 30})}),
            (Floats{1, 3, 6, 10, 30, 60}));
  const TextKernel columns = kernel_of(
      "kernel k(X: float32[n, m]) -> (S: float32[n, m]) {\n"
      "  scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }\n"
      "}");
  EXPECT_NE(id(rows), id(columns));
}

TEST(ScanTime, RunsBackwardsFromTheLastSteps) {
  const TextKernel sums = kernel_of(
      "kernel k(X: float32[m]) -> (S: float32[m]) {\n"
      "  scan t reverse { S[m - 1] = X[m - 1]  S[t] = S[t + 1] + X[t] }\n"
      "}");
  EXPECT_EQ(run(sums, {4}, {tensor_of<float>({4}, {1, 2, 3, 4})}), (Floats{10, 9, 7, 4}));
}

TEST(ScanTime, TakesTheLastStepsInAnyForm) {
  const char* const forms[] = {
      "S[m - 1] = X[m - 1] S[m - 2] = X[m - 2] * 2",
      "S[m - 2 + j] = if_then_else(j == 0, X[m - 2 + j] * 2, X[m - 2 + j])",
  };
  for (const char* form : forms) {
    const TextKernel kernel =
        kernel_of("kernel k(X: float32[m]) -> (S: float32[m]) {\n  scan t reverse { " +
                  std::string(form) + " S[t] = S[t + 1] - S[t + 2] + X[t] }\n}");
    EXPECT_EQ(run(kernel, {4}, {tensor_of<float>({4}, {1, 2, 3, 4})}), (Floats{-1, 4, 6, 4}));
  }
  const TextKernel constant = kernel_of(
      "kernel k(X: float32[3, n]) -> (S: float32[3, n]) {\n"
      "  scan t reverse { S[2, i] = X[2, i] S[t, i] = S[t + 1, i] + X[t, i] }\n"
      "}");
  EXPECT_EQ(run(constant, {1}, {tensor_of<float>({3, 1}, {1, 2, 3})}), (Floats{6, 5, 3}));
}

TEST(ScanTime, OfAStageInTheCellIsTheAxisThatItReadsTheStateAt) {
  const TextKernel kernel = kernel_of(
      "kernel k(X: float32[m, n]) -> (S: float32[m, n]) {\n"
      "  D: float32[n, m]\n"
      "  total: float32[m]\n"
      "  scan t {\n"
      "    S[0, i] = X[0, i]\n"
      "    D[i, u] = S[u - 1, i] * 2\n"
      "    total[v] = sum[i < n](D[i, v])\n"
      "    S[t, i] = D[i, t] + total[t] + X[t, i]\n"
      "  }\n"
      "}");
  EXPECT_EQ(run(kernel, {2, 2}, {tensor_of<float>({2, 2}, {1, 2, 3, 4})}), (Floats{1, 2, 11, 14}));
}

std::string reverse(std::string_view steps) {
  return "kernel k(X: float32[m, n]) -> (S: float32[m, n]) {\n  scan t reverse {\n    " +
         std::string(steps) + "\n  }\n}";
}

TEST(ScanTime, IsReadInItsOwnOrder) {
  const std::pair<std::string, const char*> table[] = {
      {reverse("S[m - 1, i] = X[m - 1, i] S[t, i] = S[t, i]"),
       "scan S: update reads state at t (current step); it may read only t+1"},
      {reverse("S[m - 1, i] = X[m - 1, i] S[t, i] = S[t - 1, i]"),
       "scan S: update reads state at t - 1 (an earlier step); it may read only t+1"},
      {reverse("S[m - 2 + j, i] = X[j, i] S[t, i] = S[t - 1, i]"),
       "scan S: update reads state at t - 1 (an earlier step); it may read only t+1 .. t+2"},
      {reverse("S[m - 1, i] = X[m - 1, i] S[t, i] = S[t + 2, i]"),
       "scan S: update reads state 2 steps ahead but init gives 1"},
      {reverse("S[0, i] = X[0, i] S[t, i] = S[t + 1, i]"),
       "the initial steps of S must be its last, from the end on: expected the extent less 1"},
      {reverse("S[m - 2, i] = X[0, i] S[t, i] = S[t + 1, i]"),
       "the initial steps of S must be its last, from the end on: expected the extent less 1"},
      {reverse("S[t, i] = S[t + 1, i]"), "the scan has no initial step, as in S[m - 1, i] = ..."},
      {"kernel k(X: float32[m, n]) -> (S: float32[m, n]) {\n"
       "  scan t { S[i, 0] = X[i, 0] S[t, i] = S[t - 1, i] }\n}",
       "t is dimension 0 of S, but its initial steps stand at dimension 1"},
      {"kernel k(X: float32[m, m]) -> (S: float32[m, m], R: float32[m, m]) {\n"
       "  scan t { S[i, 0] = X[i, 0] R[0, i] = 0 S[i, t] = S[i, t - 1] R[t, i] = R[t - 1, i] }\n}",
       "the initial steps of R stand at dimension 0, but those of S at dimension 1"},
      {"kernel k(X: float32[m, n]) -> (S: float32[m, n], R: float32[n]) {\n"
       "  scan t { S[i, 0] = X[i, 0] R[0] = 0 }\n}",
       "the initial steps of R stand at dimension 0, but those of S at dimension 1"},
  };
  for (const auto& [text, message] : table) {
    SCOPED_TRACE(text);
    expect_error([&, &text = text] { parse_text(text, "scan.kiln"); }, ErrorKind::InvalidArgument,
                 message);
  }
}

TEST(ScanTime, MustBeADimensionOfEachState) {
  expect_error(
      [] {
        kernel_of(
            "kernel k(H: float32[1]) -> (S: float32[m]) {\n"
            "  size m  s: state float32[m]  u: float32[m]\n"
            "  u[t] = s[t - 1]\n"
            "  S = scan(H, u, s, dimension=1)\n"
            "}");
      },
      ErrorKind::InvalidArgument, "S has no dimension 1, which is to be time");
  Definition definition = kernel_of(
                              "kernel k(X: float32[m]) -> (S: float32[m]) {\n"
                              "  scan t { S[0] = X[0] S[t] = S[t - 1] + X[t] }\n"
                              "}")
                              .kernel.definition;
  std::get<Scan>(definition.stages.back()).dimension = 2;
  expect_error([&] { decode(encode(definition), {}, {}); }, ErrorKind::InvalidArgument,
               "state of scan tensor4 has 1 dimension, so time cannot be dimension 2");
}

}  // namespace
}  // namespace kiln::language::scan_time
