#include <gtest/gtest.h>

#include "tests/autodiff/gradient_check.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

void check(const std::string& text, const Sizes& sizes) {
  expect_gradients({.text = text, .sizes = sizes, .values = {}});
}

constexpr std::string_view kCumsum =
    "kernel k(X: float64[m, n]) -> (S: float64[m, n]) {\n"
    "  scan t {\n    S[0, i] = X[0, i]\n    S[t, i] = S[t - 1, i] + X[t, i]\n  }\n}\n";

TEST(ScanGradients, OfCumsumIsCumsumInReverse) {
  check(std::string(kCumsum), {{"m", 5}, {"n", 2}});
  check(std::string(kCumsum), {{"m", 1}, {"n", 2}});
}

TEST(ScanGradients, OfProductsAndPowers) {
  check(
      "kernel k(X: float64[m, n], a: float64[n]) -> (S: float64[m, n]) {\n"
      "  scan t {\n    S[0, i] = X[0, i] * X[0, i]\n"
      "    S[t, i] = S[t - 1, i] * X[t, i] * a[i] + S[t - 1, i] * S[t - 1, i]\n  }\n}\n",
      {{"m", 4}, {"n", 2}});
}

TEST(ScanGradients, OfSeveralInitialStepsAndLags) {
  check(
      "kernel k(F0: float64[2, n], a: float64[n]) -> (F: float64[m, n]) {\n"
      "  scan t {\n    F[t < 2, i] = F0[t, i]\n"
      "    F[t, i] = F[t - 1, i] * a[i] + F[t - 2, i] * F[t - 2, i]\n  }\n}\n",
      {{"m", 6}, {"n", 2}});
  // Only the second of two initial steps is read.
  check(
      "kernel k(F0: float64[2, n], a: float64[n]) -> (F: float64[m, n]) {\n"
      "  scan t {\n    F[t < 2, i] = F0[t, i]\n    F[t, i] = F[t - 2, i] * a[i]\n  }\n}\n",
      {{"m", 7}, {"n", 2}});
  check(
      "kernel k(F0: float64[2, n], a: float64[n]) -> (F: float64[m, n]) {\n"
      "  scan t {\n    F[t < 2, i] = F0[t, i]\n    F[t, i] = F[t - 1, i] * a[i]\n  }\n}\n",
      {{"m", 5}, {"n", 2}});
}

TEST(ScanGradients, InReverse) {
  check(
      "kernel k(X: float64[m, n], a: float64[n]) -> (S: float64[m, n]) {\n"
      "  scan t reverse {\n    S[m - 1, i] = X[m - 1, i]\n"
      "    S[t, i] = S[t + 1, i] * a[i] + X[t, i] * S[t + 1, i]\n  }\n}\n",
      {{"m", 5}, {"n", 2}});
  check(
      "kernel k(X: float64[m, n]) -> (S: float64[m, n]) {\n"
      "  scan t reverse {\n    S[m - 2 + j, i] = X[m - 2 + j, i]\n"
      "    S[t, i] = S[t + 1, i] * S[t + 1, i] + S[t + 2, i] * 0.25 + X[t, i]\n  }\n}\n",
      {{"m", 6}, {"n", 2}});
}

TEST(ScanGradients, OfSeveralStatesAndStages) {
  check(
      "kernel k(X: float64[m, n]) -> (S: float64[m, n], R: float64[m, l]) {\n"
      "  scan t {\n    S[0, i] = X[0, i]\n    R[0, j] = 0\n"
      "    S[t, i] = S[t - 1, i] * X[t, i]\n"
      "    R[t, j] = R[t - 1, j] * 0.5 + S[t - 1, 0] * S[t - 1, 0]\n  }\n}\n",
      {{"m", 4}, {"n", 2}, {"l", 3}});
  check(
      "kernel k(X: float64[m, n], W: float64[n, n]) -> (H: float64[m, n]) {\n"
      "  P: float64[m, n]\n"
      "  scan t {\n    H[0, i] = X[0, i]\n    P[t, i] = sum[k < n](W[i, k] * H[t - 1, k])\n"
      "    H[t, i] = tanh(P[t, i] + X[t, i])\n  }\n}\n",
      {{"m", 4}, {"n", 3}});
}

TEST(ScanGradients, WithReductionsInsideOfExpressions) {
  check(
      "kernel k(X: float64[m, n]) -> (H: float64[m, n]) {\n"
      "  scan t {\n    H[0, i] = X[0, i]\n"
      "    H[t, i] = H[t - 1, i] / (1 + sum[k < n](H[t - 1, k] * H[t - 1, k])) + X[t, i]\n"
      "  }\n}\n",
      {{"m", 4}, {"n", 3}});
}

constexpr std::string_view kLstm =
    "kernel lstm(X: float64[m, 2, h], W: float64[h, 4, h], U: float64[h, 4, h]) -> (last: "
    "float64[2, h]) {\n"
    "  of_x: float64[m, 2, 4, h]\n  H: float64[m, 2, h]\n  C: float64[m, 2, h]\n"
    "  of_h: float64[m, 2, 4, h]\n"
    "  of_x[t, b, g, i] = sum[k < h](X[t, b, k] * W[k, g, i])\n"
    "  scan t {\n    H[0, b, i] = 0\n    C[0, b, i] = 0\n"
    "    of_h[t, b, g, i] = sum[k < h](H[t - 1, b, k] * U[k, g, i])\n"
    "    C[t, b, i] = sigmoid(of_x[t, b, 1, i] + of_h[t, b, 1, i]) * C[t - 1, b, i]\n"
    "      + sigmoid(of_x[t, b, 0, i] + of_h[t, b, 0, i]) * tanh(of_x[t, b, 2, i] + of_h[t, b, 2, "
    "i])\n"
    "    H[t, b, i] = sigmoid(of_x[t, b, 3, i] + of_h[t, b, 3, i]) * tanh(C[t, b, i])\n  }\n"
    "  last[b, i] = H[m - 1, b, i]\n}\n";

TEST(ScanGradients, OfAnLstmThroughTime) { check(std::string(kLstm), {{"m", 4}, {"h", 2}}); }

TEST(ScanGradients, OfGradients) {
  expect_second_gradients(
      {.text = "kernel k(X: float64[m, n]) -> (H: float64[m, n]) {\n"
               "  scan t {\n    H[0, i] = X[0, i]\n    H[t, i] = tanh(H[t - 1, i] * X[t, i])\n"
               "  }\n}\n",
       .sizes = {{"m", 3}, {"n", 2}},
       .values = {}});
}

}  // namespace
}  // namespace kiln::testing
