#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const split_host_device = pass_named("split_host_device").run;

TEST(SplitHostDevice, MakesOneLoopAnAxisAndGuardsTheShorterNest) {
  expect_becomes(split_host_device,
                 R"(fn f(A: float32[n, 32], C: float32[n, 8]) { for b in 0..n bind(blockIdx.x) {
                   for t in 0..32 bind(threadIdx.x) { A[b*32 + t] = 0.0 }
                   for u in 0..8 bind(threadIdx.x) { C[b*8 + u] = 1.0 } } })",
                 R"(fn f(A: float32[n, 32], C: float32[n, 8]) { for b in 0..n bind(blockIdx.x) {
                   for t in 0..32 bind(threadIdx.x) { A[b*32 + t] = 0.0
                     if t < 8 { C[b*8 + t] = 1.0 } } } })",
                 kCuda);
}

TEST(SplitHostDevice, LetsTheFirstThreadDoWhatStandsOutside) {
  expect_becomes(split_host_device,
                 R"(fn f(A: float32[n], C: float32[n, 8]) { for b in 0..n bind(blockIdx.x) {
                   A[b] = 0.0
                   for u in 0..8 bind(threadIdx.x) { C[b*8 + u] = 1.0 } } })",
                 R"(fn f(A: float32[n], C: float32[n, 8]) { for b in 0..n bind(blockIdx.x) {
                   for u in 0..8 bind(threadIdx.x) {
                     if u == 0 { A[b] = 0.0 }
                     C[b*8 + u] = 1.0 } } })",
                 kCuda);
}

TEST(SplitHostDevice, MakesEachNestALaunch) {
  expect_unchanged(split_host_device, "fn f(A: float32[n]) { A[0] = 0.0 }", kCuda);
  const ir::Kernel kernel = run_pass(split_host_device, R"(fn f(A: float32[n], B: float32[n]) {
      for b in 0..n bind(blockIdx.x) { A[b] = 0.0 }
      for c in 0..n bind(blockIdx.x) { B[c] = A[n - 1 - c] } })",
                                     kCuda);
  EXPECT_EQ(ir::as<ir::Block>(kernel.body)->body.size(), 2u);
}

TEST(SplitHostDevice, MovesALoopAroundBoundOnesIntoTheThreads) {
  expect_becomes(split_host_device,
                 R"(fn f(A: float32[n]) { for k in 0..3 {
                   for b in 0..n bind(blockIdx.x) { A[b] = A[b] + 1.0 } } })",
                 R"(fn f(A: float32[n]) { for b in 0..n bind(blockIdx.x) {
                   for k in 0..3 { A[b] = A[b] + 1.0 } } })",
                 kCuda);
}

TEST(SplitHostDevice, NeedsAnExtentThatIsKnownBeforeTheLaunch) {
  expect_error(
      [] {
        run_pass(split_host_device, R"(fn f(A: float32[n]) { for k in 0..n {
          for b in 0..k bind(blockIdx.x) { A[b] = 0.0 } } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "blockIdx.x of f has the extent k, which is not known before the launch");
}

TEST(CheckLaunch, RefusesMoreSharedMemoryThanABlockHas) {
  expect_error(
      [] {
        run_pass(pass_named("check_launch").run,
                 R"(fn f(A: float32[n]) { for b in 0..n bind(blockIdx.x) {
          allocate s: float64[30000] scope(shared)  s[0] = 1.0:float64  A[b] = 0.0 } })",
                 kCuda);
      },
      ErrorKind::ResourceExhausted,
      "f needs 240000 bytes of shared memory a block, but sm_90 has at most 232448; use smaller "
      "tiles");
}

TEST(CheckLaunch, RefusesMoreThanAThreadHasOfItsOwn) {
  const auto with = [](int64_t elements) {
    run_pass(pass_named("check_launch").run,
             fmt::format(R"(fn f(A: float32[n]) {{ for b in 0..n bind(threadIdx.x) {{
               allocate s: float64[{}] scope(local)  s[0] = 1.0:float64
               allocate u: float32[1024] scope(local)  u[0] = 2.0  A[b] = u[0] }} }})",
                         elements),
             kCuda);
  };
  EXPECT_NO_THROW(with(65024));
  const Error error = expect_error(
      [&] { with(65536); }, ErrorKind::ResourceExhausted,
      "each GPU thread of f needs 528384 bytes of its own, of which s is the most, but CUDA allows "
      "at most 524288; compute s at a loop inside, or outside the threads");
  EXPECT_EQ(error.reason(), "LOCAL_BYTES");
}

TEST(CheckLaunch, RefusesMoreBlocksThanAGridHas) {
  expect_error(
      [] {
        run_pass(pass_named("check_launch").run,
                 "fn f(A: float32[70000]) { for b in 0..70000 bind(blockIdx.y) { A[b] = 0.0 } }",
                 kCuda);
      },
      ErrorKind::InvalidArgument,
      "blockIdx.y of f is 70000, but CUDA allows at most 65535; split the axis before bind()");
}

}  // namespace
}  // namespace kiln::testing
