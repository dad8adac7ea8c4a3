/// Products of few rows whose columns are read once, against loops.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/language/text/text.h"
#include "tests/support/random.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

/// C[b, i, j] = sum(A * B); whole numbers, whose sums are exact in any order.
struct Product {
  int batch = 1;
  int rows = 1;
  int steps = 1;
  int columns = 1;
  bool has_own_columns = true;  // each of the batch
  bool is_transposed = false;   // A lies along its rows
  bool has_epilogue = false;

  std::string text() const {
    const std::string a = is_transposed ? fmt::format("A: float32[{}, {}, {}]", batch, steps, rows)
                                        : fmt::format("A: float32[{}, {}, {}]", batch, rows, steps);
    const std::string value =
        fmt::format("sum[k < {}](A[b, {}] * B[{}, k, j])", steps, is_transposed ? "k, i" : "i, k",
                    has_own_columns ? "b" : "0");
    const std::string shape = fmt::format("float32[{}, {}, {}]", batch, rows, columns);
    return fmt::format(
        "kernel k({}, B: float32[{}, {}, {}]) -> (C: {}) {{\n{}}}\n", a,
        has_own_columns ? batch : 1, steps, columns, shape,
        has_epilogue
            ? fmt::format("  P: {}\n  P[b, i, j] = {}\n  C[b, i, j] = max(P[b, i, j], 1.0)\n",
                          shape, value)
            : fmt::format("  C[b, i, j] = {}\n", value));
  }
};

HostTensor whole_numbers(std::vector<int64_t> shape, Random& random) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& value : values)
    value = static_cast<float>(random.between(-8, 8));
  return tensor_of(std::move(shape), values);
}

std::vector<float> computed(const Product& product, const std::vector<float>& a,
                            const std::vector<float>& b) {
  const auto at = [](int i) { return static_cast<size_t>(i); };
  std::vector<float> c(at(product.batch) * at(product.rows) * at(product.columns));
  for (int n = 0; n < product.batch; ++n) {
    const float* const columns =
        b.data() + (product.has_own_columns ? at(n) * at(product.steps) * at(product.columns) : 0);
    for (int i = 0; i < product.rows; ++i) {
      float* const sums = c.data() + (at(n) * at(product.rows) + at(i)) * at(product.columns);
      for (int k = 0; k < product.steps; ++k) {
        const size_t place = product.is_transposed ? at(k) * at(product.rows) + at(i)
                                                   : at(i) * at(product.steps) + at(k);
        const float factor = a[at(n) * at(product.rows) * at(product.steps) + place];
        for (int j = 0; j < product.columns; ++j)
          sums[j] += factor * columns[at(k) * at(product.columns) + at(j)];
      }
      if (!product.has_epilogue) continue;
      for (int j = 0; j < product.columns; ++j)
        sums[j] = std::max(sums[j], 1.0F);
    }
  }
  return c;
}

/// Compares one; whether its columns were read once.
bool is_right_and_streamed(const Product& product, const Target& planned, Random& random) {
  const std::string text = product.text();
  SCOPED_TRACE(text);
  const language::Kernel kernel = language::parse_text(text, "test")[0].kernel;
  const int a_rows = product.is_transposed ? product.steps : product.rows;
  const int a_columns = product.is_transposed ? product.rows : product.steps;
  const std::vector<HostTensor> inputs = {
      whole_numbers({product.batch, a_rows, a_columns}, random),
      whole_numbers({product.has_own_columns ? product.batch : 1, product.steps, product.columns},
                    random)};
  const language::Schedule schedule = choose_schedule(kernel, {}, planned, {});
  const std::vector<HostTensor> outputs = run_on_cpu(kernel, schedule, {}, inputs);
  EXPECT_TRUE(values_of<float>(outputs[0]) ==
              computed(product, values_of<float>(inputs[0]), values_of<float>(inputs[1])));
  return language::print_schedule(kernel, "cpu", schedule).find("cache_write") != std::string::npos;
}

TEST(StreamedColumns, ComputeWhatTheLoopsSay) {
  constexpr int kL2Floats = 512 * 1024 / 4;
  const int rounds = fuzz_rounds(40);
  int streamed = 0;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t seed = fuzz_seed() + static_cast<uint64_t>(round);
    SCOPED_TRACE(seed);
    Random random(seed);
    Product product{.batch = random.between(0, 3) == 0 ? 3 : 1,
                    .rows = random.between(1, random.between(0, 3) == 0 ? 66 : 20),
                    .has_own_columns = random.between(0, 3) != 0,
                    .is_transposed = random.between(0, 2) == 0,
                    .has_epilogue = random.between(0, 2) == 0};
    product.columns = random.between(64, 1500);
    product.steps = kL2Floats / product.columns + random.between(2, 40);
    streamed += is_right_and_streamed(product, {TargetKind::Llvm, "znver3"}, random) ? 1 : 0;
  }
  EXPECT_GE(streamed, rounds / 4);
}

/// Of CPUs with 32 registers, past L3.
TEST(StreamedColumns, OfManyRegistersComputeWhatTheLoopsSay) {
  Random random(fuzz_seed());
  const Product product{.rows = 7, .steps = 2901, .columns = 2923};
  EXPECT_TRUE(is_right_and_streamed(product, {TargetKind::Llvm, "znver4"}, random));
}

}  // namespace
}  // namespace kiln::testing
