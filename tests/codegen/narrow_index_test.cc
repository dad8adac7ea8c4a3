// At which calls the indices of a kernel of any sizes have 32 bits, and what is chosen then.
#include "compiler/codegen/narrow_index.h"

#include <gtest/gtest.h>

#include "compiler/codegen/cuda_compile.h"
#include "compiler/ir/parse.h"
#include "compiler/lower.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::codegen {
namespace {

ir::Kernel lowered(std::string_view loops, Layout layout = Layout::Compact) {
  LoweringObserver observer;
  return run_passes(ir::parse(loops), Target{TargetKind::Cuda, "sm_90"}, CompileOptions{}, layout,
                    observer);
}

constexpr const char* kAdd = R"(fn plus(A: float32[m, n], C: float32[m, n]) {
  for b in 0..floordiv(m*n + 255, 256) bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
    if b*256 + t < m*n {
      C[floordiv(b*256 + t, n), floormod(b*256 + t, n)] =
        A[floordiv(b*256 + t, n), floormod(b*256 + t, n)] + 1.0 } } } })";

/// Of the sizes alone.
bool is_narrow(const SizeExpr& condition, std::vector<int64_t> sizes) {
  return condition.evaluate(sizes) != 0;
}

TEST(NarrowWhere, TheElementsAreFewerThan32BitsCount) {
  const std::optional<SizeExpr> condition = where_indices_are_narrow(lowered(kAdd));
  ASSERT_TRUE(condition.has_value());
  EXPECT_TRUE(is_narrow(*condition, {0, 0}));
  EXPECT_TRUE(is_narrow(*condition, {1'000'000, 2'000}));
  EXPECT_TRUE(is_narrow(*condition, {2'000, 1'000'000}));
  EXPECT_FALSE(is_narrow(*condition, {1'000'000, 2'200}));
  EXPECT_FALSE(is_narrow(*condition, {int64_t{1} << 31, 1}));
  // No product of sizes is past the range of int64.
  EXPECT_FALSE(is_narrow(*condition, {kLargestSize, kLargestSize}));
  EXPECT_FALSE(is_narrow(*condition, {0, kLargestSize}));
}

TEST(NarrowWhere, SaysNothingWhereAllIs) {
  EXPECT_FALSE(where_indices_are_narrow(
      lowered("fn f(A: float32[n]) { for b in 0..4 bind(blockIdx.x) { A[b] = 1.0 } }")));
}

/// 784 places an image, of which 32 are no more than 3.2 million elements.
TEST(NarrowWhere, AQuotientIsAsMuchSmallerAsItsDivisor) {
  EXPECT_FALSE(where_indices_are_narrow(
      lowered("fn f(X: float32[32, 100352]) { for b in 0..98 bind(blockIdx.x) { "
              "for t in 0..256 bind(threadIdx.x) { "
              "X[floordiv(b*256 + t, 784), floormod(b*256 + t, 784)*128] = 1.0 } } }")));
}

TEST(NarrowWhere, SaysNothingOfNumbersThatAreNoIndices) {
  for (const char* loops :
       {"fn f(A: int64[n]) { for b in 0..n bind(blockIdx.x) { A[b] = 1 } }",
        "fn f(A: float32[n], I: int64[n]) { for b in 0..n bind(blockIdx.x) { check I[b] < n #0 "
        "A[I[b]] = 1.0 } } #0: stage 1, tensor 0, dimension 0",
        "fn f(A: float32[n], I: int32[n]) { for b in 0..n bind(blockIdx.x) { check int64(I[b]) < n "
        "#0 "
        "A[int64(I[b])] = 1.0 } } #0: stage 1, tensor 0, dimension 0",
        "fn f(A: float32[n]) { for b in 0..n bind(blockIdx.x) { A[b] = float32(b*3000000000) } }",
        "fn f(A: float32[n]) { for b in 0..n bind(blockIdx.x) { A[b] = float32(b*1000000000) } }"})
    EXPECT_FALSE(where_indices_are_narrow(lowered(loops))) << loops;
  EXPECT_FALSE(where_indices_are_narrow(lowered(kAdd, Layout::Strided)));
}

/// Of a product in tiles: what is chosen for any sizes.
TEST(NarrowWhere, AProductOfAnySizesHasSmallIndices) {
  const language::TextKernel text = testing::kernel_of(
      "kernel k(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) "
      "{ C[i, j] = sum[k < l](A[i, k] * B[k, j]) }");
  const std::optional<SizeExpr> condition = where_indices_are_narrow(testing::gpu_loops(text));
  ASSERT_TRUE(condition.has_value());
  // Of the steps that are left over, three times as many as there may be are reckoned with.
  for (const int64_t n : {0, 1, 63, 64, 1000, 8192, 26000})
    EXPECT_TRUE(is_narrow(*condition, {n, n, n})) << n;
  // The last element of a matrix is past 2^31.
  EXPECT_FALSE(is_narrow(*condition, {46341, 46341, 1}));
  EXPECT_FALSE(is_narrow(*condition, {1, 46341, 46341}));
  EXPECT_FALSE(is_narrow(*condition, {46341, 1, 46341}));
  EXPECT_FALSE(is_narrow(*condition, {kLargestSize, kLargestSize, kLargestSize}));
  EXPECT_LE(condition->nodes.size(), 300U);  // each call evaluates them
}

/// A number that is no length may lie as far below 0.
TEST(NarrowWhere, ANumberAmongTheArgumentsMayBeNegative) {
  const std::optional<SizeExpr> condition = where_indices_are_narrow(
      lowered("fn f[n, s](A: float32[n], C: float32[n]) { for b in 0..n bind(blockIdx.x) { "
              "if 0 <= b + s && b + s < n { C[b] = A[b + s] } } }"));
  ASSERT_TRUE(condition.has_value());
  EXPECT_TRUE(is_narrow(*condition, {1000, -500}));
  EXPECT_TRUE(is_narrow(*condition, {1000, 500}));
  EXPECT_FALSE(is_narrow(*condition, {1000, int64_t{1} << 40}));
  EXPECT_FALSE(is_narrow(*condition, {1000, -(int64_t{1} << 40)}));
}

/// The range of a step of the host's loop, and where a buffer of the workspace begins.
TEST(NarrowWhere, LooksAtAllLaunchesAndTheWorkspace) {
  const std::optional<SizeExpr> condition = where_indices_are_narrow(lowered(
      R"(fn f(X: float32[n], S: float32[n]) {
        allocate a: float32[n, 70] scope(global)
        allocate b: float32[n] scope(global)
        for i in 0..n bind(blockIdx.x) { for j in 0..70 { a[i, j] = X[i] } }
        for i in 0..n bind(blockIdx.x) { b[i] = a[n - 1 - i, 3] }
        for i in 0..n bind(blockIdx.x) { S[i] = b[n - 1 - i] } })"));
  ASSERT_TRUE(condition.has_value());
  EXPECT_TRUE(is_narrow(*condition, {7'000'000}));
  EXPECT_FALSE(is_narrow(*condition, {8'000'000}));  // 280 bytes each
}

TEST(NarrowVariant, ComesFirstAndLeavesTheRestToAnyStrides) {
  const ir::Kernel compact = lowered(kAdd);
  const ir::Kernel strided = lowered(kAdd, Layout::Strided);
  const std::string both = cuda_text(compact, &strided);
  EXPECT_NE(both.find("kiln_narrow_0(const float* __restrict__ A, float* __restrict__ C, int m, "
                      "int n, long long,"),
            std::string::npos)
      << both;
  EXPECT_NE(both.find("const int blockIdx_x = blockIdx.x;"), std::string::npos) << both;
  EXPECT_NE(both.find("kiln_strided_0("), std::string::npos);
  EXPECT_EQ(both.find("kiln_compact_0("), std::string::npos);
  const std::string alone = cuda_text(compact, nullptr);
  EXPECT_NE(alone.find("kiln_narrow_0("), std::string::npos);
  EXPECT_NE(alone.find("kiln_compact_0("), std::string::npos);
}

}  // namespace
}  // namespace kiln::codegen
