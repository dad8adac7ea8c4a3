#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const validate_threads = pass_named("validate_threads").run;

TEST(ValidateThreads, LeavesABlockThatFitsAlone) {
  expect_unchanged(validate_threads, R"(fn f(A: float32[n]) {
      for i in 0..32 bind(threadIdx.y) { for j in 0..32 bind(threadIdx.x) { A[i*32 + j] = 0.0 } }
      for k in 0..1024 bind(threadIdx.x) { A[k] = 1.0 } })",
                   kCuda);
}

TEST(ValidateThreads, RefusesMoreThreadsThanABlockHas) {
  const Error error = expect_error(
      [] {
        run_pass(validate_threads, R"(fn matmul(A: float32[n]) {
          for i in 0..64 bind(threadIdx.y) { for j in 0..32 bind(threadIdx.x) { A[i*32 + j] = 0.0 } } })",
                 kCuda);
      },
      ErrorKind::InvalidArgument,
      "matmul has 2048 threads a block (threadIdx.x=32, threadIdx.y=64), but CUDA allows at most "
      "1024; split an axis before bind()");
  EXPECT_EQ(error.reason(), "BLOCK_THREADS");
}

TEST(ValidateThreads, RefusesAnAxisThatIsTooLong) {
  expect_error(
      [] {
        run_pass(validate_threads,
                 "fn f(A: float32[n]) { for j in 0..100 bind(threadIdx.z) { A[j] = 0.0 } }", kCuda);
      },
      ErrorKind::InvalidArgument,
      "threadIdx.z of f is 100, but CUDA allows at most 64; split the axis before bind()");
}

TEST(ValidateThreads, LetsThreadsFillSharedMemoryForEachOther) {
  expect_unchanged(validate_threads, R"(fn f(A: float32[4]) {
      allocate s: float32[4] scope(shared)
      for i in 0..4 bind(threadIdx.x) {
        for j in 0..4 bind(threadIdx.x) { s[j] = 0.0 }
        A[i] = s[3 - i] } })",
                   kCuda);
}

TEST(ValidateThreads, RefusesOneAxisForTwoNestedLoops) {
  expect_error(
      [] {
        run_pass(validate_threads, R"(fn f(A: float32[n]) { for i in 0..4 bind(threadIdx.x) {
          for j in 0..4 bind(threadIdx.x) { A[i*4 + j] = 0.0 } } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "f binds threadIdx.x in a loop that stands inside another loop bound to threadIdx.x; bind "
      "one "
      "of the two to another axis");
}

}  // namespace
}  // namespace kiln::testing
