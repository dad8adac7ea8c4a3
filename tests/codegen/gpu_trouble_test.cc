// What users of GPUs come to sooner or later: each is right, or refused with a sentence.
#include <gtest/gtest.h>

#include "compiler/codegen/cuda_compile.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/expect_error.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

void expect_refused(const char* text, ErrorKind kind, const std::string& sentence) {
  expect_error([&] { gpu_loops(kernel_of(text)); }, kind, sentence);
}

void expect_right(const char* text, const std::vector<std::vector<int64_t>>& sizes) {
  const language::TextKernel kernel = kernel_of(text);
  const ir::Kernel loops = gpu_loops(kernel);
  for (const std::vector<int64_t>& values : sizes)
    EXPECT_EQ(gpu_difference(kernel, loops, values), "") << ir::print(loops);
}

TEST(GpuTrouble, MoreThreadsThanABlockHas) {
  expect_refused(R"(kernel k(A: float32[n]) -> (B: float32[n]) {
    B[i] = A[i]
    schedule cuda { split(B.i, factor=1025) bind(B.i.outer, blockIdx.x) bind(B.i.inner, threadIdx.x) } })",
                 ErrorKind::InvalidArgument,
                 "i.inner is bound to threadIdx.x with 1025 iterations, but CUDA allows at most "
                 "1024; split it before bind()");
}

TEST(GpuTrouble, MoreThreadsThanABlockHasTogether) {
  expect_refused(R"(kernel k(A: float32[n, m]) -> (B: float32[n, m]) {
    B[i, j] = A[i, j]
    schedule cuda { tile(B.i, B.j, 64, 32) bind(B.i.outer, blockIdx.y) bind(B.j.outer, blockIdx.x)
      bind(B.i.inner, threadIdx.y) bind(B.j.inner, threadIdx.x) } })",
                 ErrorKind::InvalidArgument,
                 "k has 2048 threads a block (threadIdx.x=32, threadIdx.y=64), but CUDA allows at "
                 "most 1024; split an axis before bind()");
}

TEST(GpuTrouble, MoreSharedMemoryThanABlockHas) {
  expect_refused(R"(kernel k(A: float32[n, 76800]) -> (B: float32[n, 76800]) {
    B[i, j] = A[i, 76799 - j]
    schedule cuda { cache_read(A, shared, B) bind(B.i, blockIdx.x) split(B.j, factor=64)
      bind(B.j.inner, threadIdx.x) compute_at(A.shared, B.i) split(A.shared.ax1, factor=64)
      bind(A.shared.ax1.inner, threadIdx.x) } })",
                 ErrorKind::ResourceExhausted,
                 "k needs 307200 bytes of shared memory a block, but sm_90 has at most 232448; use "
                 "smaller tiles");
}

TEST(GpuTrouble, TwoExtentsOfOneThreadAxis) {
  expect_right(R"(kernel k(A: float32[n, 32]) -> (C: float32[n, 8]) {
    B: float32[n, 32]
    B[i, j] = A[i, j] + 1
    C[i, j] = B[i, 4 * j] + B[i, 31 - j]
    schedule cuda { bind(C.i, blockIdx.x) bind(C.j, threadIdx.x) compute_at(B, C.i)
      set_scope(B, shared) bind(B.j, threadIdx.x) } })",
               {{3}});
}

TEST(GpuTrouble, TwoAxesOnOneThread) {
  expect_refused(R"(kernel k(A: float32[n, m]) -> (B: float32[n, m]) {
    B[i, j] = A[i, j]
    schedule cuda { bind(B.i, blockIdx.x) bind(B.j, blockIdx.x) } })",
                 ErrorKind::InvalidArgument,
                 "axis i of B is bound to blockIdx.x already; bind j to another thread axis");
}

TEST(GpuTrouble, AScanWhoseCellReadsItsNeighbour) {
  expect_right(R"(kernel k(X: float32[m, n]) -> (S: float32[m, n]) {
    scan t {
      S[0, i] = X[0, i]
      S[t, i] = S[t - 1, n - 1 - i] + X[t, i]
    }
    schedule cuda { split(S.update.i, factor=4) bind(S.update.i.outer, blockIdx.x)
      bind(S.update.i.inner, threadIdx.x) } })",
               {{5, 11}, {1, 3}, {3, 1}});
}

TEST(GpuTrouble, AParallelReduction) {
  expect_refused(
      R"(kernel k(A: float32[n, m]) -> (B: float32[n]) {
    B[i] = sum[k < m](A[i, k])
    schedule cuda { bind(B.i, threadIdx.x) bind(B.k, blockIdx.x) } })",
      ErrorKind::Unsupported,
      "cannot bind k: it is a reduction axis, and all its iterations change one element of B; bind "
      "i, or vectorize k, or rfactor B over it and bind that axis of the partial results");
}

TEST(GpuTrouble, MemoryOfAWarp) {
  expect_refused(R"(kernel k(A: float32[n, 32]) -> (C: float32[n, 32]) {
    B: float32[n, 32]
    B[i, j] = A[i, j] + 1
    C[i, j] = B[i, 31 - j]
    schedule cuda { bind(C.i, blockIdx.x) bind(C.j, threadIdx.x) compute_at(B, C.i)
      set_scope(B, warp) bind(B.j, threadIdx.x) } })",
                 ErrorKind::Unsupported,
                 "B cannot lie in warp memory: this version passes values between the threads of a "
                 "warp where they reduce, and keeps no others in their registers; name shared, "
                 "which needs no barrier of the block where all its threads are one warp");
}

TEST(GpuTrouble, NamesThatCHasForOtherThings) {
  const char* const text =
      R"(kernel main(NULL: float32[n], int: float32[n]) -> (float: float32[n]) {
    float[i] = NULL[i] + int[i] })";
  expect_right(text, {{5}});
  const std::string code = codegen::cuda_text(gpu_loops(kernel_of(text)), nullptr);
  EXPECT_EQ(code.find("float* int,"), std::string::npos) << code;
  EXPECT_EQ(code.find("float* NULL,"), std::string::npos) << code;
}

}  // namespace
}  // namespace kiln::testing
