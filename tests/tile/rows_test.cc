// Rows, columns and transposes as programs on tiles (tests/tile/rows), whose machine code
// tests/bench/tile_rows.py compares with the CUDA C of the same: that they compute that.
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "compiler/tile/interpret.h"
#include "compiler/tile/text.h"
#include "compiler/tile/verify.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"
#include "tests/tile/attentions.h"
#include "tests/tile/block_axes.h"

namespace kiln::testing {
namespace {

/// The program of a file, of so many rows in place of 8192.
tile::Program program_of(const std::string& name, int64_t rows) {
  std::ifstream file(fmt::format("{}/{}.tile", KILN_TEST_TILE_ROWS, name));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  constexpr std::string_view kRows = "8192";
  size_t count = 0;
  for (size_t at = text.find(kRows); at != std::string::npos; at = text.find(kRows, at), ++count)
    text.replace(at, kRows.size(), fmt::to_string(rows));
  EXPECT_GE(count, 2u) << name;
  return tile::parse(text);
}

void expect_computes(const std::string& name, int64_t rows, const std::string& definition,
                     double most) {
  SCOPED_TRACE(name);
  const tile::Program program = program_of(name, rows);
  tile::verify(program);
  expect_disjoint_blocks(program);
  const language::Kernel kernel = kernel_of(definition).kernel;
  Random random(1);
  std::vector<HostTensor> inputs;
  for (const tile::Parameter& parameter : program.parameters) {
    if (parameter.is_output) continue;
    std::vector<int64_t> shape;
    for (const tile::Extent& extent : parameter.shape)
      shape.push_back(extent.at({}));
    inputs.push_back(drawn_floats(parameter.type, std::move(shape), random));
  }
  const HostTensor actual = tile::interpret(program, {}, inputs).at(0);
  const HostTensor expected = language::evaluate(kernel.definition, kernel.names, {}, inputs).at(0);
  ASSERT_EQ(actual.shape, expected.shape);
  double largest = 0;
  for (int64_t i = 0; i < element_count(actual.shape); ++i) {
    const double other = language::read_element(expected, i).floating;
    largest = std::max(largest, std::abs(language::read_element(actual, i).floating - other));
  }
  EXPECT_LE(largest, most);
}

std::string softmax(std::string_view type, int64_t rows, int64_t columns) {
  return fmt::format(R"(kernel softmax(X: {t}[{r}, {c}]) -> (Y: {t}[{r}, {c}]) {{
    M: float32[{r}]
    M[i] = max[j < {c}](float32(X[i, j]))
    E: float32[{r}, {c}]
    E[i, j] = exp(float32(X[i, j]) - M[i])
    L: float32[{r}]
    L[i] = sum[j < {c}](E[i, j])
    Y[i, j] = {t}(E[i, j] / L[i]) }})",
                     fmt::arg("t", type), fmt::arg("r", rows), fmt::arg("c", columns));
}

TEST(TileRows, AreSoftmaxes) {
  expect_computes("softmax_1024", 16, softmax("float32", 16, 1024), 1e-7);
  expect_computes("softmax_4096", 8, softmax("float32", 8, 4096), 1e-7);
  expect_computes("softmax_4096_halves", 8, softmax("float16", 8, 4096), 1e-5);
}

TEST(TileRows, AreALayerNorm) {
  expect_computes("layer_norm_1024", 32,
                  R"(kernel norm(X: float32[32, 1024], G: float32[1024], B: float32[1024]) ->
                     (Y: float32[32, 1024]) {
    M: float32[32]
    M[i] = sum[j < 1024](X[i, j]) / 1024.0
    V: float32[32]
    V[i] = sum[j < 1024]((X[i, j] - M[i]) * (X[i, j] - M[i])) / 1024.0
    Y[i, j] = (X[i, j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j] + B[j] })",
                  1e-5);
}

TEST(TileRows, AreSums) {
  expect_computes("row_sums_4096", 16,
                  R"(kernel sums(X: float32[16, 4096]) -> (Y: float32[16]) {
    Y[i] = sum[j < 4096](X[i, j]) })",
                  1e-3);
  expect_computes("column_sums_4096", 256,
                  R"(kernel sums(X: float32[256, 4096]) -> (Y: float32[4096]) {
    Y[j] = sum[i < 256](X[i, j]) })",
                  1e-4);
}

TEST(TileRows, AreTransposes) {
  for (const auto& [name, type] :
       {std::pair("transpose", "float32"), std::pair("transpose_halves", "float16")}) {
    expect_computes(name, 256,
                    fmt::format(R"(kernel turned(X: {0}[4096, 256]) -> (Y: {0}[256, 4096]) {{
      Y[i, j] = X[j, i] }})",
                                type),
                    0);
  }
}

}  // namespace
}  // namespace kiln::testing
