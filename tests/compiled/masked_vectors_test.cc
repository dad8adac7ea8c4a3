// Masked accesses of vectors that are longer than a register, some of whose registers are known to
// be off: what lies behind them is not read, and nothing is written there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

/// The gradient of a convolution with a stride of 3: of a row each lane is on or off for certain,
/// and the row itself is or is not, which its loop says.
language::TextKernel strided_gradient(std::string_view type, int lanes) {
  return kernel_of(
      fmt::format("kernel k(X: {0}[4, 4], H: {0}[3, 3]) -> (Y: {0}[7, {1}]) {{\n"
                  "  Y[y, x] = sum[i < 3, j < 3](H[i, j] * if_then_else(\n"
                  "    0 <= y - i*3 + 2 && y - i*3 < 2 && 0 <= x - j*3 + 2 && x - j*3 < 2,\n"
                  "    X[y - i*3 + 2, x - j*3 + 2], 0.0))\n"
                  "  schedule cpu {{\n"
                  "    split(Y.y, factor=4) reorder(Y.y.outer, Y.i, Y.j, Y.y.inner, Y.x)\n"
                  "    unroll(Y.i) unroll(Y.j) unroll(Y.y.inner) vectorize(Y.x)\n"
                  "  }}\n"
                  "}}\n",
                  type, lanes));
}

// In guarded memory: LLVM's own division of such a load read past the end of X, and added that up.
TEST(MaskedVectors, ReadNothingWhereAllLanesOfARegisterAreOff) {
  for (const std::string_view type : {"float32", "float64"}) {
    for (const int lanes : {8, 16, 32}) {
      SCOPED_TRACE(fmt::format("{} of {}", lanes, type));
      const language::TextKernel text = strided_gradient(type, lanes);
      Random random(1);
      const std::vector<HostTensor> inputs = random_inputs(text.kernel, {}, random);
      const std::vector<HostTensor> expected =
          language::evaluate(text.kernel.definition, text.kernel.names, {}, inputs);
      const std::vector<HostTensor> actual =
          run_on_cpu(text.kernel, text.schedules[0].second, {}, inputs);
      const std::vector<double> errors(expected.size(), 1e-5);
      EXPECT_EQ(difference(actual, expected, errors), "");
    }
  }
}

// In guarded memory, too: the last element that is read is the last there is.
TEST(MaskedVectors, OfEverySecondElementReadNothingElse) {
  for (const std::string_view type : {"float32", "float64", "int32", "int16", "int8", "float16"}) {
    for (const int apart : {2, 3, 4}) {
      for (const int count : {5, 13, 28, 31, 61}) {
        SCOPED_TRACE(fmt::format("{} of {}, {} apart", count, type, apart));
        const language::TextKernel text = kernel_of(
            fmt::format("kernel k(X: {0}[3, {2}]) -> (Y: {0}[3, {1}]) {{ Y[i, x] = X[i, x * {3}]\n"
                        "  schedule cpu {{ split(Y.x, factor=16) vectorize(Y.x.inner) }} }}\n",
                        type, count, (count - 1) * apart + 1, apart));
        Random random(1);
        const std::vector<HostTensor> inputs = random_inputs(text.kernel, {}, random);
        const std::vector<HostTensor> expected =
            language::evaluate(text.kernel.definition, text.kernel.names, {}, inputs);
        for (int call = 0; call < 2; ++call) {
          const std::vector<HostTensor> actual =
              run_on_cpu(text.kernel, text.schedules[0].second, {}, inputs);
          EXPECT_EQ(difference(actual, expected, {}), "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
