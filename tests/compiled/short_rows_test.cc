/// Rows shorter than a vector, which are computed side by side, against the definition's evaluator.

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/text/text.h"
#include "tests/support/random.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

const Target kHost = {TargetKind::Llvm, ""};

/// Its sums are of numbers that are rounded already, so that only their order could differ.
std::string text_of(int rows, int columns) {
  return fmt::format(R"(kernel k(X: float32[{0}, {1}]) -> (Y: float32[{0}, {1}]) {{
    largest: float32[{0}]
    largest[i] = max[k < {1}](X[i, k])
    E: float32[{0}, {1}]
    E[i, j] = max(largest[i] - X[i, j], 0.25)
    total: float32[{0}]
    total[i] = sum[k < {1}](E[i, k])
    Y[i, j] = E[i, j] / total[i]
  }})",
                     rows, columns);
}

/// The same with all reductions inside of expressions, in a stage that is read and in the last one.
std::string text_with_parts(int rows, int columns) {
  return fmt::format(R"(kernel k(X: float32[{0}, {1}]) -> (Y: float32[{0}]) {{
    largest: float32[{0}]
    largest[i] = max(max[k < {1}](X[i, k]), 1.5)
    Y[i] = sum[k < {1}](max(largest[i] - X[i, k], 0.25)) / (min[k < {1}](X[i, k]) - 0.5)
  }})",
                     rows, columns);
}

/// Of a function, which adds nothing.
std::string text_with_functions(int rows, int columns) {
  return fmt::format(R"(kernel k(X: float32[{0}, {1}]) -> (Y: float32[{0}, {1}]) {{
    E: float32[{0}, {1}]
    E[i, j] = max(X[i, j], 0.25) + min(exp(X[i, j] / 1000000.0), 0.0)
    total: float32[{0}]
    total[i] = sum[k < {1}](E[i, k])
    Y[i, j] = E[i, j] / total[i]
  }})",
                     rows, columns);
}

HostTensor fractions(std::vector<int64_t> shape, Random& random) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& value : values)
    value = static_cast<float>(random.between(-1000000, 1000000)) / 1000;
  values[static_cast<size_t>(random.between(0, 100))] = std::numeric_limits<float>::quiet_NaN();
  values[static_cast<size_t>(random.between(0, 100))] = std::numeric_limits<float>::infinity();
  return tensor_of(std::move(shape), values);
}

/// Rows across vectors, against the definition's evaluator.
void expect_same_bits(std::string (*text_of_size)(int rows, int columns),
                      const Target& planned = kHost) {
  const int rounds = fuzz_rounds(20);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t seed = fuzz_seed() + static_cast<uint64_t>(round);
    Random random(seed);
    const int rows = random.between(64, 150);
    const int columns = random.between(2, 15);
    const std::string text = text_of_size(rows, columns);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const language::Kernel kernel = language::parse_text(text, "test")[0].kernel;
    const std::vector<HostTensor> inputs = {fractions({rows, columns}, random)};
    const language::Schedule schedule = choose_schedule(kernel, {}, planned, {});
    const std::vector<float> expected =
        values_of<float>(language::evaluate(kernel.definition, kernel.names, {}, inputs)[0]);
    const std::vector<float> actual = values_of<float>(run_on_cpu(kernel, schedule, {}, inputs)[0]);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(actual[i])) << "element " << i;
      } else {
        ASSERT_EQ(actual[i], expected[i]) << "element " << i;
      }
    }
  }
}

TEST(ShortRows, AreWhatTheDefinitionSaysToTheLastBit) { expect_same_bits(text_of); }

TEST(ShortRows, OfReductionsInsideOfExpressionsAreToo) { expect_same_bits(text_with_parts); }

/// Which go over the registers of AVX2, but for one.
TEST(ShortRows, OfFunctionsAreToo) {
  expect_same_bits(text_with_functions, {TargetKind::Llvm, "x86-64-v3"});
}

}  // namespace
}  // namespace kiln::testing
