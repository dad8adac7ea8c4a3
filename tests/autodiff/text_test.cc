/// What gradients look like, and how they are scheduled.

#include "compiler/language/text/text.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// The line that computes a tensor.
std::string line_of(const std::string& text, const std::string& tensor) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  " + tensor + "[")) return line.substr(2);
  }
  return "";
}

TEST(GradientText, OfAMatmul) {
  EXPECT_EQ(
      gradient_text("kernel matmul(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {\n"
                    "  C[i, j] = sum[k < l](A[i, k] * B[k, j])\n}\n"),
      "kernel matmul(A: float32[n, l], B: float32[l, m], C_head: float32[n, m])"
      " -> (A_grad: float32[n, l], B_grad: float32[l, m]) {\n"
      "  A_grad[i, k] = sum[j < m](C_head[i, j] * B[k, j])\n"
      "  B_grad[k, j] = sum[i < n](C_head[i, j] * A[i, k])\n"
      "}\n");
}

/// A bias adds up what it was added to, and a sum that is used twice is computed once.
TEST(GradientText, OfALayer) {
  const std::string text = gradient_text(
      "kernel dense(X: float32[n, l], W: float32[m, l], b: float32[m]) -> (Y: float32[n, m]) {\n"
      "  P: float32[n, m]\n"
      "  P[i, j] = sum[k < l](X[i, k] * W[j, k])\n"
      "  Y[i, j] = max(P[i, j] + b[j], 0)\n}\n");
  EXPECT_EQ(line_of(text, "P_grad"),
            "P_grad[i, j] = select(P[i, j] + b[j] > 0.0, Y_head[i, j], 0.0)");
  EXPECT_EQ(line_of(text, "X_grad"), "X_grad[i, k] = sum[j < m](P_grad[i, j] * W[j, k])");
  EXPECT_EQ(line_of(text, "W_grad"), "W_grad[j, k] = sum[i < n](P_grad[i, j] * X[i, k])");
}

/// A condition stands in one factor, as in a padded convolution.
TEST(GradientText, OfAConvolution) {
  const std::string text = gradient_text(
      "kernel conv(X: float32[2, 8, 16, 16], F: float32[16, 8, 3, 3])"
      " -> (Y: float32[2, 16, 14, 14]) {\n"
      "  Y[n, o, y, x] = sum[c < 8, r < 3, s < 3](X[n, c, y + r, x + s] * F[o, c, r, s])\n}\n");
  EXPECT_EQ(line_of(text, "X_grad"),
            "X_grad[n, c, i2, i3] = sum[o < 16, r < 3, s < 3](if_then_else(0 <= i2 - r && "
            "i2 - r < 14 && 0 <= i3 - s && i3 - s < 14, Y_head[n, o, i2 - r, i3 - s], 0.0)"
            " * F[o, c, r, s])");
  EXPECT_EQ(line_of(text, "F_grad"),
            "F_grad[o, c, r, s] = sum[n < 2, y < 14, x < 14](Y_head[n, o, y, x] * X[n, c, r + y, s "
            "+ x])");
}

TEST(GradientText, OfAnUnusedInputIsZero) {
  EXPECT_EQ(line_of(gradient_text("kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {\n"
                                  "  C[i] = A[i]\n}\n"),
                    "B_grad"),
            "B_grad[i0] = 0.0");
}

}  // namespace
}  // namespace kiln::testing
