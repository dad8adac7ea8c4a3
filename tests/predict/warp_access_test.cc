// How the threads of a warp meet in memory: single accesses, and those of what untouched kernels
// become, as a table.
#include "compiler/predict/warp_access.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/lower.h"
#include "compiler/predict/launch_work.h"
#include "tests/support/golden.h"
#include "tests/support/kernels.h"

namespace kiln::predict {
namespace {

using testing::expect_golden;
using testing::kernel_of;

/// Of one thread loop after the other: elements from thread to thread.
WarpAccess access(std::vector<int64_t> strides, std::vector<int64_t> extents, int64_t lanes = 1,
                  int64_t bytes = 4, int64_t first = 0) {
  Touch touch;
  touch.element_bytes = bytes;
  touch.lanes = lanes;
  touch.first = first;
  touch.strides = std::move(strides);
  ThreadLoops threads;
  for (size_t i = 0; i < extents.size(); ++i)
    threads[i] = {i, extents[i]};
  return warp_access(touch, threads);
}

TEST(WarpAccess, MeetsInBanks) {
  EXPECT_EQ(access({1}, {32}).wavefronts, 1);
  EXPECT_EQ(access({32}, {32}).wavefronts, 32);
  EXPECT_EQ(access({33}, {32}).wavefronts, 1);
  EXPECT_EQ(access({2}, {32}).wavefronts, 2);
  EXPECT_EQ(access({2}, {32}).fewest, 1);
  EXPECT_EQ(access({0}, {32}).wavefronts, 1);  // all read one word
  // Bytes that share words.
  EXPECT_EQ(access({1}, {32}, 1, 1).wavefronts, 1);
  EXPECT_EQ(access({128}, {32}, 1, 1).wavefronts, 32);
  // A transposed tile: the pad is of one word, the elements are of two bytes.
  EXPECT_EQ(access({66}, {32}, 1, 2).wavefronts, 1);
  EXPECT_EQ(access({65}, {32}, 1, 2).wavefronts, 2);
}

TEST(WarpAccess, MovesWideOnesByParts) {
  EXPECT_EQ(access({4}, {32}, 4).wavefronts, 4);
  EXPECT_EQ(access({4}, {32}, 4).fewest, 4);
  EXPECT_EQ(access({2}, {32}, 2).wavefronts, 2);
  EXPECT_EQ(access({32}, {32}, 4).wavefronts, 4 * 8);
  EXPECT_EQ(access({36}, {32}, 4).wavefronts, 4);
}

TEST(WarpAccess, HasThreadsOfSeveralAxes) {
  // Eight of a row, four rows.
  EXPECT_EQ(access({1, 8}, {8, 4}).wavefronts, 1);
  EXPECT_EQ(access({1, 32}, {8, 4}).wavefronts, 4);
  EXPECT_EQ(access({1, 32, 8}, {4, 2, 4}).wavefronts, 2);
  EXPECT_EQ(access({32}, {16}).wavefronts, 16);  // half a warp
}

TEST(WarpAccess, TouchesSectors) {
  EXPECT_EQ(access({1}, {32}).sectors, 4);
  EXPECT_EQ(access({8}, {32}).sectors, 32);
  EXPECT_EQ(access({4}, {32}, 4).sectors, 16);
  EXPECT_EQ(access({1}, {32}, 1, 4, 1).sectors, 5);  // begins within one
  EXPECT_EQ(access({1}, {32}, 1, 4, -1).sectors, 5);
  EXPECT_EQ(access({-1}, {32}).sectors, 5);
  EXPECT_EQ(access({0}, {32}).sectors, 1);
}

TEST(WarpAccess, OfMatricesIsOfTheirRows) {
  const auto wavefronts = [](int64_t distance) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 8; ++row)
      rows.push_back(row * distance);
    return matrix_access(rows, 16).wavefronts;
  };
  EXPECT_EQ(wavefronts(16), 1);
  EXPECT_EQ(wavefronts(128), 8);
  EXPECT_EQ(wavefronts(144), 1);
  EXPECT_EQ(wavefronts(64), 4);
  EXPECT_EQ(wavefronts(80), 1);
}

std::string product(std::string_view type, std::string_view factor, bool turns_a, bool turns_b,
                    std::string_view size = "4096", std::string_view sum = "float32") {
  return fmt::format(
      "kernel k(A: {0}[{1}, {1}], B: {0}[{1}, {1}]) -> (C: {2}[{1}, {1}]) {{ C[i, j] = sum[k < "
      "{1}]({3}({4}) * {3}({5})) }}",
      type, size, sum, factor, turns_a ? "A[k, i]" : "A[i, k]", turns_b ? "B[j, k]" : "B[k, j]");
}

std::string softmax(std::string_view rows, std::string_view length) {
  return fmt::format(R"(kernel k(X: float32[{0}, {1}]) -> (Y: float32[{0}, {1}]) {{
      M: float32[{0}]
      M[i] = max[k < {1}](X[i, k])
      E: float32[{0}, {1}]
      E[i, j] = exp(X[i, j] - M[i])
      T: float32[{0}]
      T[i] = sum[k < {1}](E[i, k])
      Y[i, j] = E[i, j] / T[i] }})",
                     rows, length);
}

struct Case {
  const char* name;
  std::string text;
};

const Case kCases[] = {
    {"product float32", product("float32", "", false, false)},
    {"product float32, A transposed", product("float32", "", true, false)},
    {"product float32, B transposed", product("float32", "", false, true)},
    {"product float32, odd", product("float32", "", false, false, "4093")},
    {"product float16", product("float16", "float32", false, false)},
    {"product float16, A transposed", product("float16", "float32", true, false)},
    {"product float16, B transposed", product("float16", "float32", false, true)},
    {"product tf32", product("float32", "tf32", false, true)},
    {"product int8", product("int8", "int32", false, false, "4096", "int32")},
    {"softmax, a warp a row", softmax("4096", "1000")},
    {"softmax, a block a row", softmax("64", "32000")},
    {"sums of rows",
     "kernel k(X: float32[4096, 4096]) -> (Y: float32[4096]) { Y[i] = sum[k < 4096](X[i, k]) }"},
    {"sums of columns",
     "kernel k(X: float32[4096, 4096]) -> (Y: float32[4096]) { Y[j] = sum[k < 4096](X[k, j]) }"},
    {"transpose",
     "kernel k(X: float32[4096, 4096]) -> (Y: float32[4096, 4096]) { Y[i, j] = X[j, i] }"},
    {"transpose float16",
     "kernel k(X: float16[4096, 4096]) -> (Y: float16[4096, 4096]) { Y[i, j] = X[j, i] }"},
    {"element-wise",
     "kernel k(X: float32[4096, 4096], b: float32[4096]) -> (Y: float32[4096, 4096]) { Y[i, j] = "
     "max(X[i, j] + b[j], 0.0) }"},
    {"running sums of columns",
     "kernel k(X: float32[4096, 4096]) -> (S: float32[4096, 4096]) { scan t { S[0, i] = X[0, i] "
     "S[t, i] = S[t - 1, i] + X[t, i] } }"},
    {"running sum in parts",
     "kernel k(X: int32[1048576]) -> (S: int32[1048576]) { scan t { S[0] = X[0]  S[t] = S[t - 1] + "
     "X[t] } }"},
    {"convolution 3x3",
     "kernel k(X: float32[32, 64, 58, 58], W: float32[64, 64, 3, 3]) -> (Y: float32[32, 64, 56, "
     "56]) { Y[n, f, y, x] = sum[c < 64, r < 3, s < 3](X[n, c, y + r, x + s] * W[f, c, r, s]) }"},
};

std::string row_of(const AccessRow& row) {
  const std::string what = row.is_matrix ? "matrices" : row.is_store ? "store" : "load";
  const std::string takes =
      row.is_shared() ? fmt::format("{} of {} wavefronts", row.takes.wavefronts, row.takes.fewest)
                      : fmt::format("{} sectors", row.takes.sectors);
  return fmt::format("  {:<14} {:<8} {:>2} bytes  {}\n", row.buffer->name, what, row.bytes, takes);
}

/// Of the loops for sm_90: of each access that differs, the words of a warp that meet in a bank of
/// shared memory, and the sectors of memory that it touches.
TEST(WarpAccess, OfUntouchedKernels) {
  const Target target{TargetKind::Cuda, "sm_90"};
  const HasMatrices has_matrices = [](DType a, DType b) {
    return (a == DType::Float32 ? ir::tensor_float_unit() : ir::matrix_unit(a, b)).has_value();
  };
  std::string table;
  for (const Case& each : kCases) {
    const language::Kernel kernel = kernel_of(each.text).kernel;
    LoweringObserver silent;
    const ir::Kernel loops =
        lower(kernel, choose_schedule(kernel, {}, target, {}), target, {}, Layout::Compact, silent);
    table += fmt::format("{}\n", each.name);
    for (const Nest& launch : nest_of(loops, {}, 255 * 4, has_matrices).inner) {
      std::vector<std::string> rows;
      for (const AccessRow& row : accesses_of_launch(launch, 0)) {
        rows.push_back(row_of(row));
        if (row.is_matrix) {
          EXPECT_EQ(row.takes.wavefronts, 1) << each.name;
        }
      }
      std::ranges::sort(rows);
      for (const std::string& row : rows)
        table += row;
    }
  }
  expect_golden("cuda_accesses.txt", table);
}

}  // namespace
}  // namespace kiln::predict
