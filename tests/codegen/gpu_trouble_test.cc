// What users of GPUs come to sooner or later: each is right, or refused with a sentence.
#include <fmt/format.h>
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
  const auto refused = [](std::string_view steps, const std::string& sentence) {
    const std::string kernel = fmt::format(R"(kernel k(A: float32[n, 64]) -> (C: float32[n, 64]) {{
    B: float32[n, 64]
    B[i, j] = A[i, j] + 1
    C[i, j] = B[i, 63 - j]
    schedule cuda {{ set_scope(B, warp) {} }} }})",
                                           steps);
    expect_refused(kernel.c_str(), ErrorKind::Unsupported,
                   "B cannot lie in warp memory: " + sentence);
  };
  refused("bind(C.i, blockIdx.x) bind(C.j, threadIdx.x) compute_at(B, C.i) bind(B.j, threadIdx.x)",
          "a thread reads what another one holds, and its block has 64 threads along threadIdx.x, "
          "but those of one warp are 1, 2, 4, 8, 16 or 32; split the axis before bind()");
  refused(
      "bind(C.i, blockIdx.x) split(C.j, factor=48) bind(C.j.inner, threadIdx.x) "
      "compute_at(B, C.i) split(B.j, factor=48) bind(B.j.inner, threadIdx.x)",
      "its block has 48 threads along threadIdx.x, but those of one warp are 1, 2, 4, 8, 16 or "
      "32; split the axis before bind()");
  refused("bind(C.i, blockIdx.x) compute_at(B, C.i)",
          "no loop of its block is bound to threadIdx.x, whose threads would hold it; bind one");
  refused(
      "bind(C.i, blockIdx.x) split(C.j, factor=32) bind(C.j.inner, threadIdx.x) "
      "compute_at(B, C.i)",
      "no thread stores elements of its own there; bind one axis of it to threadIdx.x");
}

TEST(GpuTrouble, NamesThatCHasForOtherThings) {
  const char* const text =
      R"(kernel main(NULL: float32[n], int: float32[n]) -> (float: float32[n]) {
    float[i] = NULL[i] + int[i] })";
  expect_right(text, {{5}});
  const std::string code = codegen::cuda_text(gpu_loops(kernel_of(text)), nullptr);
  EXPECT_EQ(code.find("__restrict__ int,"), std::string::npos) << code;
  EXPECT_EQ(code.find("__restrict__ NULL,"), std::string::npos) << code;
}

}  // namespace
}  // namespace kiln::testing
