/// 1 + tanh(x) as one exponential, against float64's.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

constexpr int64_t kCount = int64_t{1} << 20;

std::vector<float> computed(std::string_view value, const std::vector<float>& x, bool strict) {
  const language::Kernel kernel =
      kernel_of(fmt::format("kernel k(X: float32[{0}]) -> (Y: float32[{0}]) {{ Y[i] = {1} }}",
                            x.size(), value))
          .kernel;
  const CompileOptions options{.strict = strict};
  return values_of<float>(
      run_on_cpu(kernel, {}, {}, {tensor_of({static_cast<int64_t>(x.size())}, x)}, 2, options)[0]);
}

/// In steps of floats at the exact value.
double steps_off(float actual, double exact) {
  const auto rounded = static_cast<float>(exact);
  return std::abs(actual - exact) / (std::nextafter(rounded, INFINITY) - rounded);
}

TEST(TangentSums, AreNearerToTheExactOnes) {
  std::vector<float> x(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    x[static_cast<size_t>(i)] = static_cast<float>(i - kCount / 2) * (40.0F / kCount);
  for (const int sign : {1, -1}) {
    const std::string value = sign > 0 ? "1.0 + tanh(X[i])" : "1.0 - tanh(X[i])";
    const std::vector<float> actual = computed(value, x, false);
    double most = 0;
    for (size_t i = 0; i < x.size(); ++i)
      most = std::max(most, steps_off(actual[i], 2 / (std::exp(-2.0 * sign * x[i]) + 1)));
    EXPECT_LE(most, 2.5) << value;
  }
}

TEST(TangentSums, OfSpecialValuesAreAsInC) {
  const std::vector<float> x = {INFINITY, -INFINITY, NAN, 0, 100, -100};
  const std::vector<float> sums = computed("1.0 + tanh(X[i])", x, false);
  EXPECT_EQ(sums[0], 2);
  EXPECT_EQ(sums[1], 0);
  EXPECT_TRUE(std::isnan(sums[2]));
  EXPECT_EQ(sums[3], 1);
  EXPECT_EQ(sums[4], 2);
  EXPECT_LT(sums[5], 1e-38F);
}

TEST(TangentSums, AreTheDefinitionsWhereStrictAsksForIt) {
  EXPECT_EQ(computed("1.0 + tanh(X[i])", {-20, -1e-9F}, true), (std::vector<float>{0, 1}));
}

}  // namespace
}  // namespace kiln::testing
