#include <gtest/gtest.h>

#include "tests/autodiff/gradient_check.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
using Values = std::map<std::string, std::vector<double>>;

void check(const std::string& text, const Sizes& sizes = {}, const Values& values = {}) {
  expect_gradients({.text = text, .sizes = sizes, .values = values});
}

TEST(Reductions, Sums) {
  check("kernel k(X: float64[n, m]) -> (Y: float64[n]) { Y[i] = sum[k < m](X[i, k] * X[i, k]) }",
        {{"n", 3}, {"m", 4}});
  check(
      "kernel k(X: float64[n, m]) -> (Y: float64[]) { Y[] = sum[i < n, j < m](X[i, j] * X[i, j]) }",
      {{"n", 3}, {"m", 4}});
  check(
      "kernel k(X: float64[n]) -> (Y: float64[n]) { Y[i] = sum[k < n](X[k] * X[k], where=k <= i) }",
      {{"n", 5}});
  check("kernel k(X: float64[n]) -> (Y: float64[n]) { Y[i] = sum[k < i + 1](X[k] * X[k]) }",
        {{"n", 5}});
  check(
      "kernel k(X: float64[9]) -> (Y: float64[3]) { Y[i] = sum[i * 3 <= k < i * 3 + 3](X[k] * "
      "X[k]) }");
}

TEST(Reductions, InsideOfExpressions) {
  check(
      "kernel k(X: float64[n]) -> (Y: float64[n]) {"
      " Y[i] = X[i] * rsqrt(sum[k < n](X[k] * X[k]) / float64(n) + 0.1) }",
      {{"n", 4}});
  check(
      "kernel k(X: float64[n, m]) -> (Y: float64[n]) {"
      " Y[i] = exp(sum[j < m](X[i, j])) * sum[j < m](X[i, j] * X[i, j]) }",
      {{"n", 2}, {"m", 3}});
  check(
      "kernel k(X: float64[n]) -> (Y: float64[n]) {"
      " Y[i] = if_then_else(i > 0, sum[k < n](X[k] * X[i - 1]), X[i]) }",
      {{"n", 4}});
}

TEST(Reductions, Products) {
  const std::string text =
      "kernel k(X: float64[2, n]) -> (Y: float64[2]) { Y[i] = prod[k < n](X[i, k]) }";
  check(text, {{"n", 4}});
  // One factor is 0 in the first row, two are in the second.
  check(text, {{"n", 3}}, {{"X", {0.5, 0, 0.25, 0, 0.5, 0}}});
  expect_second_gradients({.text = text, .sizes = {{"n", 3}}, .values = {}});
}

TEST(Reductions, Extremes) {
  for (const std::string name : {"max", "min"}) {
    check("kernel k(X: float64[n, m]) -> (Y: float64[n]) { Y[i] = " + name +
              "[k < m](X[i, k] * X[i, k]) }",
          {{"n", 3}, {"m", 4}});
  }
}

/// What is largest twice gets half of it each time.
TEST(Reductions, EqualExtremesShare) {
  EXPECT_EQ(gradient_text("kernel k(X: float32[n]) -> (Y: float32[]) { Y[] = max[k < n](X[k]) }"),
            "kernel k(X: float32[n], Y_head: float32[]) -> (X_grad: float32[n]) {\n"
            "  Y: float32[]\n"
            "  Y[] = max[k < n](X[k])\n"
            "  Y_ties: float32[]\n"
            "  Y_ties[] = sum[k < n](select(X[k] == Y[], 1.0, 0.0))\n"
            "  X_grad[k] = select(X[k] == Y[], Y_head[] / Y_ties[], 0.0)\n"
            "}\n");
}

TEST(Reductions, OfTheUsersOwn) {
  expect_error(
      [] {
        gradient_of(kernel_of("kernel k(X: float32[n]) -> (Y: float32[]) {\n"
                              "  reducer larger(a: float32, b) = max(a * 2, b) identity 0\n"
                              "  Y[] = larger[k < n](X[k])\n}\n")
                        .kernel);
      },
      ErrorKind::Unsupported,
      "Y reduces by larger, whose gradient is not known; sum, prod, min and max have one");
}

}  // namespace
}  // namespace kiln::testing
