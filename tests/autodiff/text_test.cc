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
  EXPECT_EQ(line_of(text, "P_grad"), "P_grad[i, j] = select(Y[i, j] > 0.0, Y_head[i, j], 0.0)");
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

/// What a softmax takes off before it exponentiates cancels, so nothing flows through it.
TEST(GradientText, OfASoftmaxHasNoExtremeInIt) {
  const std::string text = gradient_text(
      "kernel softmax(X: float32[n, m]) -> (Y: float32[n, m]) {\n"
      "  top: float32[n]\n  E: float32[n, m]\n  total: float32[n]\n"
      "  top[i] = max[k < m](X[i, k])\n"
      "  E[i, j] = exp(X[i, j] - top[i])\n"
      "  total[i] = sum[k < m](E[i, k])\n"
      "  Y[i, j] = E[i, j] / total[i]\n}\n");
  EXPECT_EQ(text.find("top_grad"), std::string::npos) << text;
  EXPECT_EQ(text.find("_ties"), std::string::npos) << text;
}

/// Padding is undone where the sum is, and computes nothing of the border.
TEST(GradientText, OfAPaddedConvolutionHasNoBorder) {
  const std::string text = gradient_text(
      "kernel conv(X: float32[8, 16], F: float32[16, 8, 3]) -> (Y: float32[16, 16]) {\n"
      "  P: float32[8, 18]\n"
      "  P[c, x] = if_then_else(x >= 1 && x < 17, X[c, x - 1], 0)\n"
      "  Y[o, x] = sum[c < 8, r < 3](P[c, x + r] * F[o, c, r])\n}\n");
  EXPECT_EQ(line_of(text, "X_grad"),
            "X_grad[c, i1] = sum[o < 16, r < 3](if_then_else(0 <= i1 - r + 1 && i1 - r + 1 < 16,"
            " Y_head[o, i1 - r + 1], 0.0) * F[o, c, r])");
  EXPECT_EQ(text.find("P_grad"), std::string::npos) << text;
}

/// Even and odd elements have sums of their own, of every second element of the window.
TEST(GradientText, OfAConvolutionWithAStrideIsInPhases) {
  const std::string text = gradient_text(
      "kernel conv(X: float32[8, 17], F: float32[16, 8, 3]) -> (Y: float32[16, 8]) {\n"
      "  Y[o, x] = sum[c < 8, r < 3](X[c, x*2 + r] * F[o, c, r])\n}\n");
  EXPECT_EQ(line_of(text, "X_grad_phases0"),
            "X_grad_phases0[i1_phase, c, i1] = sum[o < 16, q < 2](if_then_else(0 <= i1 - q && "
            "i1 - q < 8, Y_head[o, i1 - q], 0.0) * if_then_else(i1_phase + q * 2 < 3, F[o, c, "
            "i1_phase + q * 2], 0.0))");
  EXPECT_EQ(line_of(text, "X_grad"),
            "X_grad[c, i1] = X_grad_phases0[floormod(i1, 2), c, floordiv(i1, 2)]");
}

/// Of a window of one, elements between the steps get nothing, and need no sum to say so.
TEST(GradientText, OfAStrideThatSkipsElements) {
  const std::string text = gradient_text(
      "kernel conv(X: float32[8, 17], F: float32[16, 8]) -> (Y: float32[16, 6]) {\n"
      "  Y[o, x] = sum[c < 8](X[c, x*3] * F[o, c])\n}\n");
  EXPECT_EQ(line_of(text, "X_grad_phases0"),
            "X_grad_phases0[c, i1] = sum[o < 16](Y_head[o, i1] * F[o, c])");
  EXPECT_EQ(line_of(text, "X_grad"),
            "X_grad[c, i1] = if_then_else(floormod(i1, 3) < 1, X_grad_phases0[c, floordiv(i1, 3)], "
            "0.0)");
}

/// What the chosen schedule of a stage is called.
std::string sketch_of(const language::Kernel& kernel, const std::string& stage) {
  const SketchSpace space(kernel, {}, {.kind = TargetKind::Llvm}, {});
  for (const autoschedule::StageSketches& stages : space.stages()) {
    if (kernel.names.stages[stages.stage] == stage) return stages.sketches[0].name;
  }
  return "none";
}

TEST(GradientSchedules, OfContractionsAreContractions) {
  const language::Kernel matmul =
      kernel_of(
          "kernel k(A: float32[512, 512], B: float32[512, 512]) -> (C: float32[512, 512]) {\n"
          "  C[i, j] = sum[k < 512](A[i, k] * B[k, j])\n}\n")
          .kernel;
  const std::string forward = sketch_of(matmul, "C");
  const language::Kernel gradient = gradient_of(matmul).kernel;
  EXPECT_EQ(sketch_of(gradient, "A_grad"), "outer products of packed panels");
  EXPECT_EQ(sketch_of(gradient, "B_grad"), forward);
}

TEST(GradientSchedules, OfBatchedContractionsAreContractions) {
  const language::Kernel gradient =
      gradient_of(kernel_of("kernel k(A: float32[8, 256, 256], B: float32[8, 256, 256]) -> (C: "
                            "float32[8, 256, 256]) {\n"
                            "  C[b, i, j] = sum[k < 256](A[b, i, k] * B[b, k, j])\n}\n")
                      .kernel)
          .kernel;
  EXPECT_EQ(sketch_of(gradient, "A_grad"), "outer products of packed panels");
  EXPECT_EQ(sketch_of(gradient, "B_grad"), "outer products of packed panels");
}

TEST(GradientSchedules, OfConvolutionsAreContractions) {
  const language::Kernel convolution =
      kernel_of(
          "kernel k(X: float32[4, 64, 58, 58], F: float32[64, 64, 3, 3]) -> (Y: float32[4, 64, 56, "
          "56]) {\n"
          "  Y[n, o, y, x] = sum[c < 64, r < 3, s < 3](X[n, c, y + r, x + s] * F[o, c, r, s])\n}\n")
          .kernel;
  const language::Kernel gradient = gradient_of(convolution).kernel;
  EXPECT_EQ(sketch_of(gradient, "X_grad"), "outer products");
  EXPECT_EQ(sketch_of(gradient, "F_grad"), "vectors of channels");
}

TEST(GradientSchedules, OfConvolutionsWithAStrideAreContractions) {
  const language::Kernel convolution =
      kernel_of(
          "kernel k(X: float32[4, 64, 57, 57], F: float32[64, 64, 3, 3]) -> (Y: float32[4, 64, 28, "
          "28]) {\n"
          "  Y[n, o, y, x] = sum[c < 64, r < 3, s < 3](X[n, c, y*2 + r, x*2 + s] * F[o, c, r, s])\n"
          "}\n")
          .kernel;
  const language::Kernel gradient = gradient_of(convolution).kernel;
  EXPECT_EQ(sketch_of(gradient, "X_grad_phases0"), "outer products");
  EXPECT_EQ(sketch_of(gradient, "F_grad"), "vectors of channels");
}

/// Without a head there is no identity to multiply with: it says which element is meant.
TEST(GradientText, OfAJacobian) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(X: float32[n], w: float32[]) -> (Y: float32[n]) {\n"
          "  T: float32[]\n  T[] = sum[k < n](X[k] * w[])\n  Y[i] = X[i] * T[]\n}\n")
          .kernel;
  autodiff::GradientRequest request = autodiff::whole_request(kernel);
  request.identity = true;
  const std::string text =
      language::print_text({autodiff::differentiate(kernel, request).kernel, {}});
  EXPECT_EQ(line_of(text, "X_grad"),
            "X_grad[q0, i] = if_then_else(q0 - i == 0, T[], 0.0) + X[q0] * w[]");
}

TEST(GradientText, OfAnUnusedInputIsZero) {
  EXPECT_EQ(line_of(gradient_text("kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {\n"
                                  "  C[i] = A[i]\n}\n"),
                    "B_grad"),
            "B_grad[i0] = 0.0");
}

}  // namespace
}  // namespace kiln::testing
