// Contractions on tensor cores whose rows begin anywhere: factors are copied first, in rows that
// begin at multiples of 16 bytes.
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::copied_matrices {
namespace {

constexpr std::string_view kBoth = "matrix instructions on copies of both factors, 64 x 64 a block";
constexpr std::string_view kRows = "matrix instructions on a copy of the rows, 64 x 64 a block";

struct Case {
  const char* name;
  const char* text;
  std::string_view sketch;
  size_t launches;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"matmul", R"(kernel k(A: float16[67, 75], B: float16[75, 73]) -> (C: float32[67, 73]) {
       C[i, j] = sum[k < 75](float32(A[i, k]) * float32(B[k, j])) })",
     kBoth, 3},
    {"both_transposed",
     R"(kernel k(A: bfloat16[75, 67], B: bfloat16[73, 75]) -> (C: float32[67, 73]) {
       C[i, j] = sum[k < 75](float32(A[k, i]) * float32(B[j, k])) })",
     kBoth, 3},
    {"of_even_columns",
     R"(kernel k(A: float16[67, 75], B: float16[75, 72]) -> (C: float32[67, 72]) {
       C[i, j] = sum[k < 75](float32(A[i, k]) * float32(B[k, j])) })",
     kRows, 2},
    {"batches",
     R"(kernel k(A: float16[2, 65, 41], B: float16[2, 41, 66]) -> (C: float32[2, 65, 66]) {
       C[b, i, j] = sum[k < 41](float32(A[b, i, k]) * float32(B[b, k, j])) })",
     kBoth, 3},
    {"batches_that_lie_last",
     R"(kernel k(A: float16[65, 41, 2], B: float16[41, 66, 2]) -> (C: float32[2, 65, 66]) {
       C[b, i, j] = sum[k < 41](float32(A[i, k, b]) * float32(B[k, j, b])) })",
     kBoth, 3},
    {"bytes", R"(kernel k(A: int8[67, 75], B: int8[75, 73]) -> (C: int32[67, 73]) {
       C[i, j] = sum[k < 75](int32(A[i, k]) * int32(B[k, j])) })",
     kBoth, 3},
    {"tensor_floats", R"(kernel k(A: float32[67, 75], B: float32[73, 75]) -> (C: float32[67, 73]) {
       C[i, j] = sum[k < 75](tf32(A[i, k]) * tf32(B[j, k])) })",
     kBoth, 3},
    {"byte_floats",
     R"(kernel k(A: float8_e4m3fn[67, 75], B: float8_e5m2[75, 73]) -> (C: float32[67, 73]) {
       C[i, j] = sum[k < 75](float32(A[i, k]) * float32(B[k, j])) })",
     kBoth, 3},
    {"padded", R"(kernel k(A: float16[60, 75], B: float16[75, 72]) -> (C: float32[66, 72]) {
       P: float16[66, 75]
       P[i, k] = if_then_else(i < 60, A[i, k], float16(0))
       C[i, j] = sum[k < 75](float32(P[i, k]) * float32(B[k, j])) })",
     "matrix instructions of all axes on a copy of the rows, 64 x 64 a block", 2},
    {"convolution",
     R"(kernel k(X: float16[2, 9, 7, 16], F: float16[3, 3, 16, 67]) -> (Y: float32[2, 9, 7, 67]) {
       P: float16[2, 11, 9, 16]
       P[n, y, x, c] = if_then_else(y >= 1 && y < 10 && x >= 1 && x < 8, X[n, y - 1, x - 1, c],
                                    float16(0))
       Y[n, y, x, f] = sum[r < 3, s < 3, c < 16](float32(P[n, y + r, x + s, c]) *
                                                 float32(F[r, s, c, f])) })",
     "matrix instructions of all axes on a copy of the columns, 64 x 64 a block", 2},
};

class CopiedMatrices : public ::testing::TestWithParam<Case> {};

TEST_P(CopiedMatrices, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops_by(text, GetParam().sketch);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), GetParam().launches) << ir::print(loops);
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  // Blocks fetch nothing one by one.
  const std::string source = source_of(loops);
  EXPECT_GT(count_in(source, "*(uint4*)&") + count_in(source, "*(float4*)&"), 0U) << source;
}

INSTANTIATE_TEST_SUITE_P(All, CopiedMatrices, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

std::string product(std::string_view type, int m, int n, int l) {
  return fmt::format(
      "kernel k(A: {0}[{1}, {3}], B: {0}[{3}, {2}]) -> (C: float32[{1}, {2}]) {{"
      " C[i, j] = sum[k < {3}](float32(A[i, k]) * float32(B[k, j])) }}",
      type, m, n, l);
}

std::string first_of(const std::string& text, std::string_view arch) {
  const language::TextKernel kernel = kernel_of(text);
  return SketchSpace(kernel.kernel, {}, {TargetKind::Cuda, std::string(arch)}, {})
      .stages()
      .back()
      .sketches[0]
      .name;
}

TEST(CopiedMatrices, AreThoseWhoseRowsBeginAnywhere) {
  EXPECT_EQ(first_of(product("bfloat16", 4096, 4095, 4096), "sm_80"),
            "matrix instructions on a copy of the columns, 256 x 128 a block");
  EXPECT_EQ(first_of(product("bfloat16", 4096, 4096, 4095), "sm_80"),
            "matrix instructions on a copy of the rows, 256 x 128 a block");
  EXPECT_EQ(first_of(product("float8_e4m3fn", 4095, 4093, 4091), "sm_89"),
            "matrix instructions on copies of both factors, 128 x 128 a block");
  EXPECT_EQ(first_of(product("bfloat16", 4096, 4096, 4096), "sm_80"),
            "matrix instructions, 256 x 128 a block");
}

/// Two launches more take longer than the product.
TEST(CopiedMatrices, AreNotSmall) {
  EXPECT_EQ(first_of(product("bfloat16", 511, 511, 511), "sm_80"),
            "matrix instructions, 64 x 64 a block");
}

/// How many lines a row has is known.
TEST(CopiedMatrices, AreOfKnownSizes) {
  const std::string open =
      "kernel k(A: float16[m, l], B: float16[l, n]) -> (C: float32[m, n]) {"
      " C[i, j] = sum[k < l](float32(A[i, k]) * float32(B[k, j])) }";
  EXPECT_EQ(first_of(open, "sm_80"), "matrix instructions, 64 x 64 a block");
}

/// What hardware copies in the background has no condition for the end of a row.
TEST(CopiedMatrices, AreCopiedWholeInTheBackground) {
  const language::TextKernel text = kernel_of(product("float16", 257, 67, 259));
  const ir::Kernel loops =
      gpu_loops_by(text, "matrix instructions on copies of both factors, 256 x 128 a block");
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_GT(count_in(source, "kiln_copy<16, "), 0U) << source;
  EXPECT_EQ(count_in(source, "kiln_copy<2, ") + count_in(source, "kiln_copy<4, "), 0U) << source;
  for (const char* const from : {"= A_global_global[", "= B_global_global["})
    EXPECT_EQ(count_in(source, from), 0U) << source;
}

/// Rows that begin at multiples of a word or two are copied as they are.
TEST(CopiedMatrices, AreNotThoseWhoseRowsBeginAtWords) {
  for (const auto& [columns, steps, bytes] : {std::tuple(70, 258, 4), std::tuple(68, 260, 8)}) {
    const language::TextKernel text = kernel_of(product("float16", 200, columns, steps));
    const ir::Kernel loops = gpu_loops_by(text, "matrix instructions, 256 x 128 a block");
    EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
    const std::string source = source_of(loops);
    EXPECT_GT(count_in(source, fmt::format("kiln_copy<{}, ", bytes)), 0U) << source;
    EXPECT_EQ(count_in(source, "kiln_copy<16, ") + count_in(source, "kiln_copy<2, "), 0U) << source;
  }
  EXPECT_EQ(first_of(product("bfloat16", 4096, 4094, 4090), "sm_80"),
            "matrix instructions, 256 x 128 a block");
}

/// Neither tile divides the columns, and 16 bytes of a row do.
TEST(CopiedMatrices, AreFetchedWholeAtTheEndOfARow) {
  const language::TextKernel text = kernel_of(product("float16", 67, 200, 80));
  const ir::Kernel loops = gpu_loops_by(text, "matrix instructions, 128 x 128 a block");
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_GT(count_in(source, "*(const uint4*)&B["), 0U) << source;
  EXPECT_EQ(count_in(source, "= B["), 0U) << source;
}

}  // namespace
}  // namespace kiln::testing::copied_matrices
