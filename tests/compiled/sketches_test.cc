#include <bit>
#include <random>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/compile.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/text/text.h"
#include "runtime/core/cpu_name.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

using autoschedule::Candidate;
using autoschedule::Sketch;

const Target kHost{TargetKind::Llvm, host_cpu()};

struct Case {
  const char* name;
  const char* text;
  std::vector<int64_t> sizes;
};

std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"matmul",
     "kernel k(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {"
     " C[i, j] = sum[k < l](A[i, k] * B[k, j]) }",
     {67, 53, 81}},
    {"constant_matmul",
     "kernel k(A: float32[64, 100], B: float32[100, 96]) -> (C: float32[64, 96]) {"
     " C[i, j] = sum[k < 100](A[i, k] * B[k, j]) }",
     {}},
    {"ragged_matmul",
     "kernel k(A: float32[37, 29], B: float32[29, 31]) -> (C: float32[37, 31]) {"
     " C[i, j] = sum[k < 29](A[i, k] * B[k, j]) }",
     {}},
    {"matmul_of_few_rows",
     "kernel k(A: float32[35, 144], B: float32[144, 100]) -> (C: float32[35, 100]) {"
     " C[i, j] = sum[k < 144](A[i, k] * B[k, j]) }",
     {}},
    {"means_of_images",
     "kernel k(X: float32[3, 37, 7, 7]) -> (Y: float32[3, 37]) {"
     " Y[n, c] = sum[h < 7, w < 7](X[n, c, h, w]) / 49.0 }",
     {}},
    {"sums_of_products_of_images",
     "kernel k(X: float32[3, 37, 7, 7], Z: float32[3, 37, 7, 7]) -> (Y: float32[37]) {"
     " Y[c] = sum[n < 3, h < 7, w < 7](X[n, c, h, w] * Z[n, c, h, w]) }",
     {}},
    {"sum_of_images",
     "kernel k(X: float32[11, 64, 14, 14]) -> (Y: float32[]) {"
     " Y[] = sum[n < 11, c < 64, h < 14, w < 14](X[n, c, h, w]) }",
     {}},
    {"normalised_images",
     "kernel k(X: float32[3, 37, 7, 7], B: float32[37]) -> (Y: float32[3, 37, 7, 7]) {"
     " M: float32[3, 37]\n M[n, c] = max[h < 7, w < 7](X[n, c, h, w])"
     " S: float32[3, 37]\n S[n, c] = sum[h < 7, w < 7](X[n, c, h, w] - M[n, c])"
     " Y[n, c, h, w] = (X[n, c, h, w] - M[n, c]) / (S[n, c] - 1.0) + B[c] }",
     {}},
    {"complex_products",
     "kernel k(A: float32[77, 53, 2], B: float32[77, 53, 2]) -> (C: float32[77, 53, 2]) {"
     " C[i, j, p] = select(p == 0, A[i, j, 0]*B[i, j, 0] - A[i, j, 1]*B[i, j, 1],"
     " A[i, j, 0]*B[i, j, 1] + A[i, j, 1]*B[i, j, 0]) }",
     {}},
    {"shifted_colours",
     "kernel k(X: float32[3, 101, 3], M: float32[3], S: float32[3]) -> (Y: float32[3, 101, 3]) {"
     " Y[n, w, c] = (X[n, w, c] - M[c]) * S[c] }",
     {}},
    {"places_of_the_largest",
     "kernel k(X: float32[3, 37, 145]) -> (I: int64[3, 37], V: float32[3, 37]) {"
     " reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), select(v >= w, v, w)"
     " identity -1, -inf\n"
     " I[n, i], V[n, i] = argmax[k < 145](k, X[n, i, k]) }",
     {}},
    {"matmul_of_halves",
     "kernel k(A: bfloat16[70, 128], B: bfloat16[128, 96]) -> (C: float32[70, 96]) {"
     " C[i, j] = sum[k < 128](float32(A[i, k]) * float32(B[k, j])) }",
     {}},
    {"matmul_of_bytes",
     "kernel k(A: int8[70, 404], B: int8[404, 50]) -> (C: int32[70, 50]) {"
     " C[i, j] = sum[k < 404](int32(A[i, k]) * int32(B[k, j])) }",
     {}},
    {"convolution_of_halves",
     "kernel k(X: bfloat16[1, 64, 5, 9], F: bfloat16[40, 64, 3, 3]) -> (Y: float32[1, 40, 3, 7]) {"
     " Y[n, o, y, x] = sum[c < 64, r < 3, s < 3](float32(X[n, c, y + r, x + s]) * "
     "float32(F[o, c, r, s])) }",
     {}},
    {"convolution_of_bytes",
     "kernel k(X: int8[2, 12, 7, 7], F: int8[26, 12, 3, 3]) -> (Y: int32[2, 26, 5, 5]) {"
     " Y[n, o, y, x] = sum[c < 12, r < 3, s < 3](int32(X[n, c, y + r, x + s]) * "
     "int32(F[o, c, r, s])) }",
     {}},
    {"matmul_of_steps_of_one_sequence",
     "kernel k(A: float32[37, 1, 90], B: float32[90, 70]) -> (C: float32[37, 1, 70]) {"
     " C[t, b, j] = sum[k < 90](A[t, b, k] * B[k, j]) }",
     {}},
    {"matmul_of_one_row",
     "kernel k(A: float32[1, 517], B: float32[517, 2100]) -> (C: float32[1, 2100]) {"
     " C[i, j] = sum[k < 517](A[i, k] * B[k, j]) }",
     {}},
    {"matmul_of_few_columns",
     "kernel k(A: float32[131, 300], B: float32[300, 7]) -> (C: float32[131, 7]) {"
     " C[i, j] = sum[k < 300](A[i, k] * B[k, j]) }",
     {}},
    {"matmul_of_one_column",
     "kernel k(A: float32[131, 300], B: float32[300, 1]) -> (C: float32[131, 1]) {"
     " C[i, j] = sum[k < 300](A[i, k] * B[k, j]) }",
     {}},
    {"matmul_of_few_rows_and_a_large_factor",
     "kernel k(A: float32[5, 600], B: float32[600, 457]) -> (C: float32[5, 457]) {"
     " C[i, j] = sum[k < 600](A[i, k] * B[k, j]) }",
     {}},
    {"matmul_in_blocks",
     "kernel k(A: float32[40, 131], B: float32[40, 213]) -> (C: float32[131, 213]) {"
     " C[i, j] = sum[k < 40](A[k, i] * B[k, j]) }",
     {}},
    {"matmul_of_far_rows",
     "kernel k(A: float32[160, 2, 521], B: float32[160, 2, 513]) -> (C: float32[2, 110, 45]) {"
     " C[h, i, j] = sum[k < 160](A[k, h, i + 3] * B[k, h, j]) }",
     {}},
    {"matmul_of_far_rows_in_order",
     "kernel k(A: float32[160, 2, 1030], B: float32[160, 2, 45]) -> (C: float32[2, 1030, 45]) {"
     " C[h, i, j] = sum[k < 160](A[k, h, i] * B[k, h, j]) }",
     {}},
    {"bytes_read_across",
     "kernel k(X: int8[70, 45], Z: int8[45, 70]) -> (Y: int8[45, 70]) {"
     " Y[i, j] = X[j, i] + Z[i, j] }",
     {}},
    {"read_across_and_converted",
     "kernel k(X: bfloat16[n, 5, 37]) -> (Y: float32[37, 5, n]) {"
     " Y[i, h, j] = float32(X[j, h, i]) * 0.5 }",
     {51}},
    {"doubles_read_across_twice",
     "kernel k(X: float64[64, 33], Z: float64[64, 33]) -> (Y: float64[33, 64]) {"
     " Y[i, j] = X[j, i] * Z[j, i] + X[j, i] }",
     {}},
    {"transposed_matmul",
     "kernel k(A: float32[n, l], B: float32[m, l]) -> (C: float32[n, m]) {"
     " C[i, j] = sum[k < l](A[i, k] * B[j, k]) }",
     {37, 70, 41}},
    {"dot_products",
     "kernel k(A: float32[19, 300], B: float32[27, 300]) -> (C: float32[19, 27]) {"
     " C[i, j] = sum[k < 300](A[i, k] * B[j, k]) }",
     {}},
    {"sums_over_two_axes_the_other_way_round",
     "kernel k(A: float32[37, 19, 24], B: float32[41, 24, 19]) -> (C: float32[37, 41]) {"
     " C[i, j] = sum[k < 24, l < 19](A[i, l, k] * B[j, k, l]) }",
     {}},
    {"a_tensor_times_itself",
     "kernel k(X: float32[300, 61]) -> (Y: float32[61, 61]) {"
     " Y[i, j] = sum[k < 300](X[k, i] * X[k, j]) }",
     {}},
    {"squared_distances",
     "kernel k(X: float32[23, 45], Y: float32[17, 45]) -> (D: float32[23, 17]) {"
     " D[i, j] = sum[k < 45]((X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])) }",
     {}},
    {"weighted_differences",
     "kernel k(X: float64[3, 9, 32], Y: float64[3, 14, 32], W: float64[32]) -> (D: float64[3, 9, "
     "14])"
     " { D[h, i, j] = max[k < 32](abs(X[h, i, k] - Y[h, j, k]) * W[k]) }",
     {}},
    {"points",
     "kernel k(X: float32[n, 3], M: float32[3, 3]) -> (Y: float32[n, 3]) {"
     " Y[i, j] = sum[k < 3](X[i, k] * M[k, j]) }",
     {37}},
    {"points_of_doubles",
     "kernel k(X: float64[5, 31, 2], M: float64[5, 2, 2]) -> (Y: float64[5, 31, 2]) {"
     " Y[b, i, j] = sum[k < 2](X[b, i, k] * M[b, k, j]) }",
     {}},
    {"small_matrices",
     "kernel k(A: float32[29, 3, 2], B: float32[29, 2, 3]) -> (C: float32[29, 3, 3]) {"
     " C[h, i, j] = sum[k < 2](A[h, i, k] * B[h, k, j]) }",
     {}},
    {"largest_of_three_bytes",
     "kernel k(X: int8[70, 3]) -> (Y: int8[70]) { Y[i] = max[k < 3](X[i, k]) }",
     {}},
    {"batched_matmul",
     "kernel k(A: float64[b, n, 20], B: float64[b, 20, m]) -> (C: float64[b, n, m]) {"
     " C[h, i, j] = sum[k < 20](A[h, i, k] * B[h, k, j]) }",
     {3, 30, 50}},
    {"side_by_side",
     "kernel k(A: float32[13, 7, 9], B: float32[11, 7, 9]) -> (C: float32[13, 11, 7]) {"
     " C[i, j, h] = sum[k < 9](A[i, h, k] * B[j, h, k]) }",
     {}},
    {"side_by_side_of_any_size",
     "kernel k(A: float64[l, n, b], B: float64[l, b, m]) -> (C: float64[m, n, b]) {"
     " C[j, i, h] = sum[k < l](A[k, i, h] * B[k, h, j]) }",
     {19, 13, 21, 9}},
    {"turned_products",
     "kernel k(A: float32[37, 29, 5], B: float32[29, 5, 41]) -> (C: float32[37, 41, 5]) {"
     " P: float32[37, 41, 5]"
     " P[i, j, h] = sum[k < 29](A[i, k, h] * B[k, h, j])"
     " C[i, j, h] = max(P[i, j, h], 0.5) }",
     {}},
    {"turned_products_of_one_tensor",
     "kernel k(A: float64[43, 5, 3, 11]) -> (C: float64[43, 43, 5]) {"
     " C[i, j, h] = sum[k < 3, l < 11](A[i, h, k, l] * A[j, h, k, l]) }",
     {}},
    {"products_whose_factors_lie_side_by_side",
     "kernel k(A: float32[37, 3, 13, 5], B: float32[41, 13, 3, 5]) -> (C: float32[5, 37, 41]) {"
     " C[h, i, j] = sum[k < 3, l < 13](A[i, k, l, h] * B[j, l, k, h]) }",
     {}},
    {"conv_of_channels_last",
     "kernel k(X: float32[2, 8, 15, 13], F: float32[25, 13, 3, 3]) -> (Y: float32[2, 6, 13, 25]) {"
     " Y[n, y, x, f] = sum[q < 13, r < 3, s < 3](X[n, y + r, x + s, q] * F[f, q, r, s]) }",
     {}},
    {"strided_rows",
     "kernel k(X: float32[66, 12, 19], F: float32[20, 66, 1, 1]) -> (Y: float32[20, 6, 9]) {"
     " Y[f, y, x] = sum[q < 66, r < 1, s < 1](X[q, y * 2 + r, x * 2 + s] * F[f, q, r, s]) }",
     {}},
    {"conv",
     "kernel k(X: float32[3, 20, 40], F: float32[8, 3, 3, 3]) -> (Y: float32[8, 18, 38]) {"
     " Y[o, i, j] = sum[c < 3, y < 3, x < 3](X[c, i + y, j + x] * F[o, c, y, x]) }",
     {}},
    {"padded_conv",
     "kernel k(X: float32[5, 14, 15], F: float32[20, 5, 3, 3]) -> (Y: float32[20, 14, 15]) {"
     " P: float32[5, 16, 17]"
     " P[c, i, j] = if_then_else(i >= 1 && i < 15 && j >= 1 && j < 16, X[c, i - 1, j - 1], 0)"
     " Y[o, i, j] = sum[c < 5, y < 3, x < 3](P[c, i + y, j + x] * F[o, c, y, x]) }",
     {}},
    {"strided_conv_of_a_batch",
     "kernel k(X: float32[2, 3, 21, 23], F: float32[16, 3, 5, 3]) -> (Y: float32[2, 16, 9, 10]) {"
     " Y[n, o, i, j] = sum[c < 3, y < 5, x < 3]("
     "X[n, c, i * 2 + y, j * 2 + x * 2] * F[o, c, y, x]) }",
     {}},
    {"conv_of_groups",
     "kernel k(X: float32[2, 3, 9, 12], F: float32[2, 35, 3, 3, 2]) -> (Y: float32[2, 35, 7, 11]) {"
     " Y[g, o, i, j] = sum[c < 3, y < 3, x < 2](X[g, c, i + y, j + x] * F[g, o, c, y, x]) }",
     {}},
    {"pointwise_conv",
     "kernel k(X: float32[2, 6, 9, 11], F: float32[70, 6]) -> (Y: float32[2, 70, 9, 11]) {"
     " Y[n, o, i, j] = sum[c < 6](X[n, c, i, j] * F[o, c]) }",
     {}},
    {"small_images",
     "kernel k(X: float64[9, 4, 7, 7], F: float64[40, 4, 3, 3]) -> (Y: float64[9, 40, 5, 5]) {"
     " Y[n, o, i, j] = sum[c < 4, y < 3, x < 3](X[n, c, i + y, j + x] * F[o, c, y, x]) }",
     {}},
    {"padded_conv_that_begins_with_the_window",
     "kernel k(X: float32[2, 4, 5, 6], F: float32[20, 3, 3, 4]) -> (Y: float32[2, 20, 5, 6]) {"
     " P: float32[2, 4, 7, 8]"
     " P[n, c, i, j] = if_then_else(i >= 1 && i < 6 && j >= 1 && j < 7, X[n, c, i - 1, j - 1], 0)"
     " Y[n, o, i, j] = sum[y < 3, x < 3, c < 4](P[n, c, i + y, j + x] * F[o, y, x, c]) }",
     {}},
    {"depthwise_conv",
     "kernel k(X: float32[5, 19, 37], F: float32[5, 3, 3]) -> (Y: float32[5, 17, 35]) {"
     " Y[c, i, j] = sum[y < 3, x < 3](X[c, i + y, j + x] * F[c, y, x]) }",
     {}},
    {"pooling",
     "kernel k(X: float32[5, n, m]) -> (Y: float32[5, n - 2, m - 2]) {"
     " Y[c, i, j] = max[y < 3, x < 3](X[c, i + y, j + x]) }",
     {23, 41}},
    {"elements",
     "kernel k(A: float32[n, m], B: float32[m]) -> (C: float32[n, m]) {"
     " C[i, j] = exp(A[i, j]) * B[j] + 1 }",
     {33, 71}},
    {"one_dimension", "kernel k(A: int32[n]) -> (C: int32[n]) { C[i] = A[i] * 3 }", {1001}},
    {"transpose",
     "kernel k(A: float32[n, m]) -> (C: float32[m, n]) { C[i, j] = A[j, i] }",
     {75, 41}},
    {"axes_in_another_order",
     "kernel k(A: float32[19, 41, 33], B: float32[33, 19, 41]) -> (C: float32[33, 19, 41]) {"
     " C[i, j, l] = max(A[j, l, i] * B[i, j, l], 0) }",
     {}},
    {"conv_padded_inside_of_the_product",
     "kernel k(X: float32[5, 14, 15], F: float32[20, 5, 3, 3]) -> (Y: float32[20, 14, 15]) {"
     " Y[o, i, j] = sum[c < 5, y < 3, x < 3](if_then_else("
     "i + y >= 1 && i + y < 15 && j + x >= 1 && j + x < 16, X[c, i + y - 1, j + x - 1], 0)"
     " * F[o, c, y, x]) }",
     {}},
    {"rows",
     "kernel k(A: float32[n, m]) -> (C: float32[n]) { C[i] = sum[k < m](A[i, k]) }",
     {60, 333}},
    {"columns",
     "kernel k(A: float32[m, n]) -> (C: float32[n]) { C[i] = max[k < m](A[k, i]) }",
     {60, 133}},
    {"constant_rows",
     "kernel k(A: float32[72, 16384]) -> (C: float32[72]) { C[i] = sum[k < 16384](A[i, k]) }",
     {}},
    {"ragged_rows",
     "kernel k(A: float32[72, 16390]) -> (C: float32[72]) { C[i] = sum[k < 16390](A[i, k]) }",
     {}},
    {"constant_columns",
     "kernel k(A: float32[1030, 1100]) -> (C: float32[1100]) { C[i] = sum[k < 1030](A[k, i]) }",
     {}},
    {"softmax",
     "kernel k(X: float32[n, m]) -> (Y: float32[n, m]) {"
     " M: float32[n] M[i] = max[k < m](X[i, k])"
     " E: float32[n, m] E[i, j] = exp(X[i, j] - M[i])"
     " S: float32[n] S[i] = sum[k < m](E[i, k])"
     " Y[i, j] = E[i, j] / S[i] }",
     {19, 77}},
    {"cumsum",
     "kernel k(X: float32[m, n]) -> (S: float32[m, n]) {"
     " scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] } }",
     {20, 300}},
};

class Sketches : public ::testing::TestWithParam<Case> {
 protected:
  Sketches()
      : kernel_(language::parse_text(GetParam().text, "test")[0].kernel),
        space_(kernel_, {}, kHost, {}),
        inputs_(inputs_of(kernel_.definition, sizes())) {}

  static const std::vector<int64_t>& sizes() { return GetParam().sizes; }

  static std::vector<HostTensor> inputs_of(const language::Definition& definition,
                                           const std::vector<int64_t>& sizes) {
    std::mt19937 random(3);
    std::uniform_int_distribution<int> bits(0, (1 << 23) - 1);
    std::vector<HostTensor> inputs;
    for (const language::TensorId parameter : definition.parameters) {
      if (definition.is_output(parameter)) continue;
      std::vector<int64_t> shape;
      for (const language::ExprId extent : definition.shape_of(parameter))
        shape.push_back(language::evaluate_size(definition, extent, sizes));
      const auto count = static_cast<size_t>(element_count(shape));
      std::vector<double> values(count);
      for (double& value : values)
        value = bits(random) / double(1 << 23) - 0.5;
      switch (definition.type_of(parameter)) {
        case DType::Float64: inputs.push_back(tensor_of(shape, values)); break;
        case DType::Int32:
          inputs.push_back(tensor_of(shape, std::vector<int32_t>(count, 7)));
          break;
        case DType::Int8: {
          std::vector<int8_t> bytes;
          for (const double value : values)
            bytes.push_back(static_cast<int8_t>(value * 255));
          inputs.push_back(tensor_of(shape, bytes));
          break;
        }
        case DType::BFloat16: {
          // The upper half of a float32.
          std::vector<uint16_t> halves;
          for (const double value : values)
            halves.push_back(
                static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
          inputs.push_back(tensor_of(shape, halves));
          inputs.back().type = DType::BFloat16;
          break;
        }
        default:
          inputs.push_back(tensor_of(shape, std::vector<float>(values.begin(), values.end())));
      }
    }
    return inputs;
  }

  std::vector<HostTensor> outputs_of(const Candidate& candidate,
                                     const CompileOptions& options = {}) const {
    return run_on_cpu(kernel_, space_.schedule(candidate), sizes(), inputs_, 2, options);
  }

  /// With the text of the schedule where they differ.
  void expect_same_bits(const Candidate& candidate, const std::vector<HostTensor>& expected) const {
    const std::vector<HostTensor> actual = outputs_of(candidate);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(actual[i].bytes == expected[i].bytes)
          << language::print_schedule(kernel_, "cpu", space_.schedule(candidate));
    }
  }

  const language::Kernel kernel_;
  const SketchSpace space_;
  const std::vector<HostTensor> inputs_;
};

TEST_P(Sketches, OfAnyKindComputeTheSameBits) {
  const std::vector<HostTensor> expected = outputs_of(space_.preferred());
  for (size_t stage = 0; stage < space_.stages().size(); ++stage) {
    const std::vector<Sketch>& sketches = space_.stages()[stage].sketches;
    for (uint32_t sketch = 0; sketch < sketches.size(); ++sketch) {
      Candidate candidate = space_.preferred();
      candidate.stages[stage] = {sketch, sketches[sketch].preferred()};
      SCOPED_TRACE(sketches[sketch].name);
      expect_same_bits(candidate, expected);
    }
  }
}

TEST_P(Sketches, WithAnyValuesComputeTheSameBits) {
  const std::vector<HostTensor> expected = outputs_of(space_.preferred());
  std::mt19937 random(17);
  for (int round = 0; round < 12; ++round) {
    Candidate candidate;
    for (const autoschedule::StageSketches& stage : space_.stages()) {
      const auto sketch = static_cast<uint32_t>(random() % stage.sketches.size());
      candidate.stages.push_back({sketch, {}});
      for (const autoschedule::Parameter& parameter : stage.sketches[sketch].parameters)
        candidate.stages.back().values.push_back(
            parameter.values[random() % parameter.values.size()]);
    }
    try {
      expect_same_bits(candidate, expected);
    } catch (const Error& error) {
      // Many rows of long vectors: more code than a kernel may have.
      EXPECT_EQ(error.reason(), "CODE_LIMIT") << error.what();
    }
  }
}

TEST_P(Sketches, PreferWhatIsAmongTheirValues) {
  for (const autoschedule::StageSketches& stage : space_.stages()) {
    for (const Sketch& sketch : stage.sketches)
      EXPECT_TRUE(sketch.has(sketch.preferred())) << sketch.name;
  }
}

TEST_P(Sketches, ForKnownSizesComputeTheSameBits) {
  if (sizes().empty()) GTEST_SKIP() << "all sizes are constants already";
  const std::vector<HostTensor> expected = outputs_of(space_.preferred());
  const std::string_view name = GetParam().name;
  const CompileOptions options{.sizes = sizes()};
  if (name == "rows" || name == "softmax") {
    // The last lanes of a row are added up in the order that its length gives.
    expect_error([&] { outputs_of(space_.preferred(), options); }, ErrorKind::Unsupported,
                 "there are no variants of k for known sizes: they would add up floats in another "
                 "order");
    return;
  }
  const std::vector<HostTensor> actual = outputs_of(space_.preferred(), options);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(actual[i].bytes == expected[i].bytes);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Sketches, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

TEST(SketchSpace, RefusesTheCandidateOfAnotherKernel) {
  const language::Kernel kernel = language::parse_text(kCases[0].text, "test")[0].kernel;
  const SketchSpace space(kernel, {}, kHost, {});
  Candidate candidate = space.preferred();
  candidate.stages[0].values[0] = 3;
  try {
    space.schedule(candidate);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    EXPECT_EQ(error.message(), "the candidate's stage 0 is of another kernel");
  }
}

}  // namespace
}  // namespace kiln::testing
