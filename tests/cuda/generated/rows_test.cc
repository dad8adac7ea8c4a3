// Rows, columns and transposes without a step, as the threads of a GPU compute them: in the
// interpreter, which looks for threads that do not wait for each other, and as their CUDA C on the
// host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::rows {
namespace {

struct Case {
  const char* name;
  std::string text;
  std::vector<int64_t> sizes = {};
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

std::string softmax(int64_t length, std::string_view type = "float32") {
  return fmt::format(R"(kernel k(X: {1}[3, {0}]) -> (Y: {1}[3, {0}]) {{
      M: float32[3]
      M[i] = max[k < {0}](float32(X[i, k]))
      E: float32[3, {0}]
      E[i, j] = exp(float32(X[i, j]) - M[i])
      T: float32[3]
      T[i] = sum[k < {0}](E[i, k])
      Y[i, j] = {1}(E[i, j] / T[i]) }})",
                     length, type);
}

std::string norm(int64_t length) {
  return fmt::format(
      R"(kernel k(X: float32[2, 3, {0}], G: float32[{0}]) -> (Y: float32[2, 3, {0}]) {{
      S: float32[2, 3]
      S[h, i] = sum[k < {0}](X[h, i, k])
      V: float32[2, 3]
      V[h, i] = sum[k < {0}]((X[h, i, k] - S[h, i] / {0}.0) * (X[h, i, k] - S[h, i] / {0}.0))
      Y[h, i, j] = (X[h, i, j] - S[h, i] / {0}.0) / sqrt(V[h, i] / {0}.0 + 0.001) * G[j] }})",
      length);
}

/// Of images of 6 channels in 3 groups, as topi.nn.group_norm has it.
std::string group_norm(int64_t height, int64_t width) {
  return fmt::format(
      R"(kernel k(X: float32[2, 6, {0}, {1}], G: float32[6], B: float32[6])
          -> (Y: float32[2, 6, {0}, {1}]) {{
      R: float32[2, 3, 2, {0}, {1}]
      R[n, g, c, y, x] = X[n, g * 2 + c, y, x]
      M: float32[2, 3, 1, 1, 1]
      M[n, g, u, v, w] = sum[c < 2, y < {0}, x < {1}](R[n, g, c, y, x]) / {2}.0
      V: float32[2, 3, 1, 1, 1]
      V[n, g, u, v, w] = sum[c < 2, y < {0}, x < {1}](
        (R[n, g, c, y, x] - M[n, g, 0, 0, 0]) * (R[n, g, c, y, x] - M[n, g, 0, 0, 0])) / {2}.0
      S: float32[2, 3, 2, {0}, {1}]
      S[n, g, c, y, x] = (R[n, g, c, y, x] - M[n, g, 0, 0, 0]) *
                         rsqrt(V[n, g, 0, 0, 0] + 0.001)
      Y[n, c, y, x] = S[n, c // 2, c % 2, y, x] * G[c] + B[c] }})",
      height, width, 2 * height * width);
}

/// Over two axes, and scaled by what each place has.
std::string norm_of_two(int64_t height, int64_t width) {
  return fmt::format(
      R"(kernel k(X: float32[3, {0}, {1}], G: float32[{0}, {1}]) -> (Y: float32[3, {0}, {1}]) {{
      M: float32[3]
      M[i] = sum[y < {0}, x < {1}](X[i, y, x]) / {2}.0
      V: float32[3]
      V[i] = sum[y < {0}, x < {1}]((X[i, y, x] - M[i]) * (X[i, y, x] - M[i])) / {2}.0
      Y[i, y, x] = (X[i, y, x] - M[i]) * rsqrt(V[i] + 0.001) * G[y, x] }})",
      height, width, height * width);
}

std::string softmax_of_two(int64_t height, int64_t width) {
  return fmt::format(R"(kernel k(X: float32[3, {0}, {1}]) -> (Y: float32[3, {0}, {1}]) {{
      M: float32[3]
      M[i] = max[y < {0}, x < {1}](X[i, y, x])
      E: float32[3, {0}, {1}]
      E[i, y, x] = exp(X[i, y, x] - M[i])
      T: float32[3]
      T[i] = sum[y < {0}, x < {1}](E[i, y, x])
      Y[i, y, x] = E[i, y, x] / T[i] }})",
                     height, width);
}

std::string transpose(int64_t rows, int64_t columns, std::string_view type = "float32") {
  return fmt::format(R"(kernel k(X: {2}[{1}, {0}]) -> (Y: {2}[{0}, {1}]) {{ Y[i, j] = X[j, i] }})",
                     rows, columns, type);
}

std::string columns(int64_t rows, int64_t columns, std::string_view how = "sum",
                    std::string_view type = "float32") {
  return fmt::format(R"(kernel k(X: {3}[{0}, {1}]) -> (Y: {3}[{1}]) {{
      Y[j] = {2}[k < {0}](X[k, j]) }})",
                     rows, columns, how, type);
}

const Case kCases[] = {
    {"a_warp_a_row", softmax(128)},
    {"a_row_that_ends_in_a_warp", softmax(100)},
    {"a_row_of_no_vectors", softmax(67)},
    {"a_row_of_a_block", softmax(2052)},
    {"a_row_of_halves", softmax(136, "float16")},
    {"a_row_that_fits_no_registers", softmax(40000)},
    {"a_row_of_any_length",
     R"(kernel k(X: float32[m, n]) -> (Y: float32[m]) { Y[i] = sum[k < n](X[i, k]) })",
     {3, 261}},
    {"a_norm", norm(132)},
    {"a_norm_of_a_block", norm(1028)},
    {"sums_of_rows",
     R"(kernel k(X: float32[5, 1028]) -> (Y: float32[5]) { Y[i] = sum[k < 1028](X[i, k]) })"},
    {"the_best_of_rows",
     R"(kernel k(X: int8[5, 1040]) -> (Y: int8[5]) { Y[i] = max[k < 1040](X[i, k]) })"},
    {"a_matrix_and_a_vector",
     R"(kernel k(A: float32[5, 200], v: float32[200]) -> (Y: float32[5]) {
          Y[i] = sum[k < 200](A[i, k] * v[k]) })"},
    {"rows_of_several_axes",
     R"(kernel k(X: float32[3, 2, 7, 8]) -> (Y: float32[2]) {
          Y[c] = max[n < 3, y < 7, x < 8](X[n, c, y, x]) })"},
    {"rows_of_groups_that_keep_dimensions",
     R"(kernel k(X: float32[2, 6, 5, 8]) -> (Y: float32[2, 3, 2, 5, 8]) {
          S: float32[2, 3, 1, 1, 1]
          S[n, g, u, v, w] = sum[c < 2, y < 5, x < 8](X[n, g * 2 + c, y, x])
          Y[n, g, c, y, x] = X[n, g * 2 + c, y, x] - S[n, g, 0, 0, 0] / 80.0 })"},
    {"a_group_norm", group_norm(5, 8)},
    {"a_group_norm_of_short_rows", group_norm(2, 5)},
    {"a_group_norm_of_no_vectors", group_norm(5, 7)},
    {"a_group_norm_of_a_block", group_norm(30, 44)},
    {"a_group_of_channels",
     R"(kernel k(X: float32[2, 6, 9, 12]) -> (Y: float32[2, 6, 9, 12]) {
          M: float32[2, 3]
          M[n, g] = max[c < 2, y < 9, x < 12](X[n, g * 2 + c, y, x])
          Y[n, c, y, x] = X[n, c, y, x] - M[n, c // 2] })"},
    {"a_group_of_channels_that_fits_no_registers",
     R"(kernel k(X: float32[1, 4, 120, 300]) -> (Y: float32[1, 4, 120, 300]) {
          M: float32[1, 2]
          M[n, g] = max[c < 2, y < 120, x < 300](X[n, g * 2 + c, y, x])
          Y[n, c, y, x] = X[n, c, y, x] - M[n, c // 2] })"},
    {"a_group_norm_of_vectors_of_two_lines", group_norm(14, 14)},
    {"a_group_norm_of_vectors_of_two_channels", group_norm(7, 6)},
    {"a_norm_of_vectors_of_two_lines", norm_of_two(12, 7)},
    {"a_softmax_of_vectors_of_two_lines", softmax_of_two(12, 15)},
    {"a_sum_of_vectors_of_two_lines",
     R"(kernel k(X: float32[5, 14, 14]) -> (Y: float32[5]) {
          Y[i] = sum[y < 14, x < 14](X[i, y, x]) })"},
    {"a_sum_of_lines_that_lie_apart",
     R"(kernel k(X: float32[4, 5, 14]) -> (Y: float32[5]) {
          Y[i] = sum[n < 4, x < 14](X[n, i, x]) })"},
    {"a_norm_of_two_axes", norm_of_two(9, 8)},
    {"a_norm_of_two_odd_axes", norm_of_two(9, 7)},
    {"a_norm_of_two_axes_of_a_block", norm_of_two(33, 68)},
    {"a_softmax_of_two_axes", softmax_of_two(11, 12)},
    {"a_softmax_of_two_axes_of_a_block", softmax_of_two(45, 60)},
    {"a_row_that_needs_another",
     R"(kernel k(X: float32[4, 90]) -> (P: int32[4]) {
          M: float32[4]
          M[i] = max[k < 90](X[i, k])
          P[i] = min[k < 90](select(X[i, k] == M[i], int32(k), 1000)) })"},
    {"a_few_rows_times_a_matrix",
     R"(kernel k(A: float32[3, 70], B: float32[70, 40]) -> (C: float32[3, 40]) {
          C[i, j] = sum[k < 70](A[i, k] * B[k, j]) })"},
    {"a_few_rows_times_rows",
     R"(kernel k(X: float32[3, 520], W: float32[41, 520]) -> (Y: float32[3, 41]) {
          Y[i, j] = sum[k < 520](X[i, k] * W[j, k]) })"},
    {"columns", columns(130, 72)},
    {"means_of_columns",
     R"(kernel k(X: float32[130, 72]) -> (Y: float32[72]) {
          S: float32[72]
          S[j] = sum[k < 130](X[k, j])
          Y[j] = S[j] / 130.0 })"},
    {"columns_of_several_warps", columns(1030, 72)},
    {"columns_that_are_no_vectors", columns(67, 45)},
    {"columns_of_halves", columns(512, 64, "max", "float16")},
    {"columns_of_any_size",
     R"(kernel k(X: float32[m, n]) -> (Y: float32[n]) { Y[j] = sum[k < m](X[k, j]) })",
     {71, 39}},
    {"columns_of_images",
     R"(kernel k(X: float32[5, 7, 3, 32]) -> (Y: float32[3, 32]) {
          Y[h, c] = sum[n < 5, w < 7](X[n, w, h, c] * X[n, w, h, c]) })"},
    {"many_columns_of_images",
     R"(kernel k(X: float32[70, 3, 2, 48]) -> (Y: float32[2, 48]) {
          Y[h, c] = sum[n < 70, w < 3](X[n, w, h, c] * X[n, w, h, c]) })"},
    {"running_sums_down_columns",
     R"(kernel k(X: float32[45, 70]) -> (S: float32[45, 70]) {
          scan t { S[0, i] = X[0, i]
                   S[t, i] = 0.5 * S[t - 1, i] + X[t, i] } })"},
    {"running_sums_along_rows",
     R"(kernel k(X: float32[m, n], W: float32[m, n]) -> (S: float32[m, n]) {
          scan t { S[i, 0] = X[i, 0]
                   S[i, t] = S[i, t - 1] * W[i, t] + X[i, t] } })",
     {37, 50}},
    {"running_sums_of_two_steps",
     R"(kernel k(X: float32[40, 33]) -> (S: float32[40, 33]) {
          scan t { S[0, i] = X[0, i]
                   S[1, i] = X[1, i]
                   S[t, i] = 0.5 * S[t - 1, i] + 0.25 * S[t - 2, i] + X[t, i] + X[t - 1, i] } })"},
    {"transposed", transpose(64, 96)},
    {"transposed_with_a_rest", transpose(52, 76)},
    {"transposed_without_vectors", transpose(35, 67)},
    {"transposed_halves", transpose(64, 136, "float16")},
    {"transposed_bytes", transpose(144, 160, "int8")},
    {"transposed_doubles", transpose(34, 38, "float64")},
    {"transposed_of_any_size",
     R"(kernel k(X: float32[m, n]) -> (Y: float32[n, m]) { Y[i, j] = X[j, i] })",
     {37, 70}},
    {"channels_come_last",
     R"(kernel k(X: float32[2, 36, 3, 40]) -> (Y: float32[2, 3, 40, 36]) {
          Y[n, h, w, c] = X[n, c, h, w] })"},
    {"two_that_are_transposed",
     R"(kernel k(A: float32[64, 32], B: float32[64, 32], C: float32[32, 64]) -> (Y: float32[32, 64]) {
          Y[i, j] = A[j, i] * C[i, j] + B[j, i] })"},
};

class RowsOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(RowsOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, GetParam().sizes), "") << ir::print(loops);
  EXPECT_EQ(difference_on_host(text, loops, GetParam().sizes), "") << source_of(loops);
}

INSTANTIATE_TEST_SUITE_P(All, RowsOnHost, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// What a warp holds of a row needs neither shared memory for it nor a second look at it.
TEST(RowsOnHost, OfAWarpAreReadOnce) {
  const std::string source = source_of(gpu_loops(kernel_of(softmax(128))));
  EXPECT_EQ(count_in(source, "&X["), 1u) << source;
  EXPECT_EQ(count_in(source, " X["), 0u) << source;
  EXPECT_EQ(count_in(source, "__syncthreads"), 0u) << source;
  EXPECT_EQ(count_in(source, "expf("), 1u) << source;
}

TEST(RowsOnHost, OfShortGroupsAreOneLaunchToo) {
  const language::TextKernel text = kernel_of(
      R"(kernel k(X: float32[2, 6, 2, 5]) -> (Y: float32[2, 6, 2, 5]) {
          M: float32[2, 3]
          M[n, g] = max[c < 2, y < 2, x < 5](X[n, g * 2 + c, y, x])
          Y[n, c, y, x] = X[n, c, y, x] - M[n, c // 2] })");
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  EXPECT_EQ(difference_on_host(text, loops, {}), "") << source_of(loops);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
}

constexpr const char* kGroupOfChannels =
    R"(kernel k(X: float32[2, 6, 8, 16]) -> (Y: float32[2, 6, 8, 16]) {
      M: float32[2, 3]
      M[n, g] = max[c < 2, y < 8, x < 16](X[n, g * 2 + c, y, x])
      Y[n, c, y, x] = X[n, c, y, x] - M[n, c // 2] })";

TEST(RowsOnHost, OfSeveralAxesAreReadOnceInOneLaunch) {
  for (const std::string& definition :
       {std::string(kGroupOfChannels), group_norm(8, 16), group_norm(32, 64), group_norm(32, 6),
        norm_of_two(16, 8), softmax_of_two(64, 64)}) {
    const ir::Kernel loops = gpu_loops(kernel_of(definition));
    EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
    const std::string source = source_of(loops);
    EXPECT_EQ(count_in(source, "(const uint4*)&X["), 1u) << source;
    EXPECT_EQ(count_in(source, " X["), 0u) << source;
  }
}

/// Rows of a block, columns and turned tiles pass through shared memory: without one of their
/// barriers they are wrong.
TEST(RowsOnHost, MissEachOfTheirBarriers) {
  for (const std::string& definition : {softmax(2052), columns(1030, 72), transpose(64, 96)}) {
    const language::TextKernel text = kernel_of(definition);
    const ir::Kernel loops = gpu_loops(text);
    const size_t barriers = count_in(source_of(loops), "__syncthreads();");
    EXPECT_GT(barriers, 0u);
    for (size_t i = 0; i < barriers; ++i) {
      const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", std::to_string(i));
      EXPECT_NE(difference_on_host(text, loops, {}), "") << i << source_of(loops);
    }
  }
}

}  // namespace
}  // namespace kiln::testing::rows
