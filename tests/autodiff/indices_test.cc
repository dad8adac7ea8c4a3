#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/autodiff/gradient_check.h"

namespace kiln::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;

void check(const std::string& text, const Sizes& sizes = {},
           const std::map<std::string, std::vector<double>>& values = {}) {
  expect_gradients({.text = text, .sizes = sizes, .values = values});
}

TEST(Indices, PermutedAndBroadcast) {
  check(
      "kernel k(X: float64[a, b, c]) -> (Y: float64[c, a, b]) { Y[i, j, l] = X[j, l, i] * X[j, l, "
      "i] }",
      {{"a", 2}, {"b", 3}, {"c", 2}});
  check(
      "kernel k(X: float64[n], B: float64[m]) -> (Y: float64[m, n]) { Y[i, j] = X[j] * B[i] + X[j] "
      "}",
      {{"n", 3}, {"m", 4}});
  check("kernel k(X: float64[], Z: float64[n]) -> (Y: float64[n]) { Y[i] = X[] * Z[i] }",
        {{"n", 4}});
  check("kernel k(X: float64[n, n]) -> (Y: float64[n]) { Y[i] = X[i, i] * X[i, i] }", {{"n", 3}});
}

TEST(Indices, SlicedPaddedReversedAndStrided) {
  check("kernel k(X: float64[9]) -> (Y: float64[4]) { Y[i] = X[i * 2 + 1] * X[i * 2 + 1] }");
  check("kernel k(X: float64[5]) -> (Y: float64[5]) { Y[i] = X[4 - i] * X[i] }");
  check("kernel k(X: float64[n]) -> (Y: float64[n]) { Y[i] = X[n - 1 - i] * X[i] }", {{"n", 5}});
  check(
      "kernel k(X: float64[n]) -> (Y: float64[n + 3]) {"
      " Y[i] = if_then_else(i >= 2 && i < n + 2, X[i - 2] * X[i - 2], 1) }",
      {{"n", 4}});
  check("kernel k(X: float64[n]) -> (Y: float64[n]) { Y[i] = X[(i + 2) % n] * 2 }", {{"n", 5}});
}

TEST(Indices, Rolled) {
  check("kernel k(X: float64[5]) -> (Y: float64[5]) { Y[i] = X[(i + 3) % 5] * X[(i + 3) % 5] }");
  check("kernel k(X: float64[5]) -> (Y: float64[12]) { Y[i] = X[(i + 3) % 5] * X[(i + 3) % 5] }");
  EXPECT_EQ(gradient_text("kernel k(X: float32[5]) -> (Y: float32[5]) { Y[i] = X[(i + 3) % 5] }"),
            "kernel k(X: float32[5], Y_head: float32[5]) -> (X_grad: float32[5]) {\n"
            "  X_grad[i0] = Y_head[floormod(i0 + 2, 5)]\n}\n");
}

TEST(Indices, ConcatenatedAndStacked) {
  check(
      "kernel k(A: float64[3], B: float64[4]) -> (Y: float64[7]) {"
      " Y[i] = if_then_else(i < 3, A[i] * A[i], B[i - 3]) }");
}

TEST(Indices, ReshapedFlattenedAndSplit) {
  check(
      "kernel k(X: float64[3, 4]) -> (Y: float64[12]) { Y[i] = X[i // 4, i % 4] * X[i // 4, i % 4] "
      "}");
  check("kernel k(X: float64[12]) -> (Y: float64[3, 4]) { Y[i, j] = X[i * 4 + j] * X[i * 4 + j] }");
  check(
      "kernel k(X: float64[2, 6]) -> (Y: float64[4, 3]) {"
      " Y[i, j] = X[(i * 3 + j) // 6, (i * 3 + j) % 6] * X[(i * 3 + j) // 6, (i * 3 + j) % 6] }");
  check(
      "kernel k(X: float64[n, m]) -> (Y: float64[n * m]) { Y[i] = X[i // m, i % m] * X[i // m, i % "
      "m] }",
      {{"n", 2}, {"m", 3}});
  check(
      "kernel k(X: float64[n * m]) -> (Y: float64[n, m]) { Y[i, j] = X[i * m + j] * X[i * m + j] }",
      {{"n", 2}, {"m", 3}});
}

TEST(Indices, RepeatedAndTiled) {
  check("kernel k(X: float64[4]) -> (Y: float64[12]) { Y[i] = X[i // 3] * X[i // 3] }");
  check("kernel k(X: float64[4]) -> (Y: float64[11]) { Y[i] = X[i // 3] * X[i // 3] }");
  check("kernel k(X: float64[4]) -> (Y: float64[10]) { Y[i] = X[i % 4] * X[i % 4] }");
}

TEST(Indices, OfWindows) {
  check(
      "kernel k(X: float64[2, 8], F: float64[3, 2, 3]) -> (Y: float64[3, 6]) {"
      " Y[o, i] = sum[c < 2, r < 3](X[c, i + r] * F[o, c, r]) }");
  check(
      "kernel k(X: float64[2, 9], F: float64[3, 2, 3]) -> (Y: float64[3, 4]) {"
      " Y[o, i] = sum[c < 2, r < 3](X[c, i * 2 + r] * F[o, c, r]) }");
  check(
      "kernel k(X: float64[2, 9], F: float64[3, 2, 2]) -> (Y: float64[3, 3]) {"
      " Y[o, i] = sum[c < 2, r < 2](X[c, i * 2 + r * 3] * F[o, c, r]) }");
  check(
      "kernel k(X: float64[w], F: float64[r]) -> (Y: float64[w - r + 1]) {"
      " Y[i] = sum[q < r](X[i + q] * F[q]) }",
      {{"w", 7}, {"r", 3}});
  // Steps that are sizes may be 0, so what they read is scattered.
  check(
      "kernel k(X: float64[w], F: float64[r]) -> (Y: float64[(w - (r - 1) * dilation - 1) // "
      "stride + 1]) {"
      " Y[i] = sum[q < r](X[i * stride + q * dilation] * F[q]) }",
      {{"w", 9}, {"r", 3}, {"stride", 2}, {"dilation", 2}});
}

TEST(Indices, OfWindowsWithAStride) {
  for (const int stride : {2, 3}) {
    for (const int window : {1, 2, 3, 5}) {
      for (const int before : {0, 1, 4}) {
        SCOPED_TRACE(
            fmt::format("stride {}, window {}, {} elements before", stride, window, before));
        check(fmt::format(
            "kernel k(X: float64[2, 9], F: float64[2, 2, {1}]) -> (Y: float64[2, 5]) {{"
            " Y[o, i] = sum[c < 2, r < {1}](if_then_else(i*{0} + r >= {2} && i*{0} + r < 9 + {2},"
            " X[c, i*{0} + r - {2}], 0) * F[o, c, r]) }}",
            stride, window, before));
      }
    }
  }
  check(
      "kernel k(X: float64[2, 9, 8], F: float64[2, 3, 2]) -> (Y: float64[4, 3]) {"
      " Y[i, j] = sum[c < 2, r < 3, s < 2](X[c, i*2 + r, j*3 + s] * F[c, r, s]) }");
  check(
      "kernel k(X: float64[2*n + 1], F: float64[3]) -> (Y: float64[n]) {"
      " Y[i] = sum[r < 3](X[i*2 + r] * F[r]) }",
      {{"n", 4}});
  check("kernel k(X: float64[9]) -> (Y: float64[4]) { Y[i] = max[r < 3](X[i*2 + r]) }");
}

/// The gradient of a gradient: in phases, it reads and is read by remainders.
TEST(Indices, OfWindowsWithAStrideTwice) {
  check(
      gradient_text("kernel k(X: float64[2, 9], F: float64[2, 3]) -> (Y: float64[4]) {"
                    " Y[i] = sum[c < 2, r < 3](X[c, i*2 + r] * X[c, i*2 + r] * F[c, r]) }"));
  check(
      gradient_text("kernel k(X: float64[2, 9], F: float64[2, 3]) -> (Y: float64[4]) {"
                    " Y[i] = sum[c < 2, r < 3](X[c, i*2 + r] * F[c, r]) }"));
}

TEST(Indices, ThatDependOnData) {
  check(
      "kernel k(W: float64[5, 3], idx: int32[4]) -> (Y: float64[4, 3]) {"
      " Y[i, j] = W[idx[i], j] * W[idx[i], j] }",
      {}, {{"idx", {1, 4, 1, 0}}});
  check(
      "kernel k(W: float64[5], idx: int32[4]) -> (Y: float64[]) {"
      " Y[] = sum[i < 4](W[idx[i]] * W[i]) }",
      {}, {{"idx", {1, 4, 1, 0}}});
  check(
      "kernel k(W: float64[5], idx: int32[4]) -> (Y: float64[4]) {"
      " Y[i] = if_then_else(idx[i] >= 0, W[idx[i]] * 3, 0) }",
      {}, {{"idx", {1, -4, 1, 0}}});
}

TEST(Indices, OfScatters) {
  const std::map<std::string, std::vector<double>> idx = {{"idx", {1, 4, 1, 0}}};
  for (const std::string scatter : {"scatter_add", "scatter", "scatter_max", "scatter_min"}) {
    SCOPED_TRACE(scatter);
    check(
        "kernel k(B: float64[5], U: float64[4], idx: int64[4]) -> (Y: float64[5]) {\n"
        "  Y = " +
            scatter + "[i < 4](B, idx[i], U[i] * U[i])\n}\n",
        {}, idx);
  }
}

}  // namespace
}  // namespace kiln::testing
