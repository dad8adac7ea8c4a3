#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const plan_storage = pass_named("plan_storage").run;

TEST(PlanStorage, KeepsSmallBuffersOfConstantSize) {
  const ir::Kernel kernel = run_pass(plan_storage, R"(fn f(A: float32[n]) { for i in 0..n parallel {
      allocate t: float32[4, 8] scope(global)  t[0, 0] = 1.0  A[i] = t[0, 0] } })");
  EXPECT_TRUE(kernel.workspace.empty());
  EXPECT_EQ(ir::print(kernel.workspace_bytes), "0");
}

TEST(PlanStorage, PutsBuffersOfASymbolicSizeIntoTheWorkspace) {
  expect_becomes(plan_storage,
                 R"(fn f(A: float32[n]) { allocate s: float32[n] scope(global)
                   allocate t: int64[2] scope(global)  allocate u: float64[n, 2] scope(global)
                   for i in 0..n { s[i] = 1.0  A[i] = s[i] } })",
                 R"(fn f(A: float32[n]) { workspace s: float32[n] at 0
                   workspace u: float64[n, 2] at floordiv(n + 15, 16)*64
                   workspace bytes floordiv(n + 15, 16)*64 + floordiv(n + 3, 4)*64, 0 per_thread
                   allocate t: int64[2] scope(global)
                   for i in 0..n { s[i] = 1.0  A[i] = s[i] } })");
}

TEST(PlanStorage, HasRoomForRowsThatAreSpreadOut) {
  const ir::Kernel kernel = run_pass(plan_storage, R"(fn f(A: float32[n]) {
      allocate s: float32[n, 32] strides[48, 1] scope(global)
      for i in 0..n { s[i, 0] = 1.0  A[i] = s[i, 0] } })");
  EXPECT_EQ(ir::print(kernel.workspace_bytes), "n*192");
}

TEST(PlanStorage, GivesEachThreadItsOwnPartOfTheWorkspace) {
  const ir::Kernel kernel = run_pass(plan_storage, R"(fn f(A: float32[n, m]) {
      for i in 0..n parallel { allocate s: float32[m] scope(global)
        for j in 0..m { s[j] = 1.0  A[i, j] = s[j] } } })");
  ASSERT_EQ(kernel.workspace.size(), 1u);
  EXPECT_TRUE(kernel.workspace[0].per_thread);
  EXPECT_EQ(ir::print(kernel.workspace_bytes), "0");
  EXPECT_EQ(ir::print(kernel.workspace_bytes_per_thread), "floordiv(m + 15, 16)*64");
}

TEST(PlanStorage, KeepsNothingOnTheStackThatAParallelLoopNeeds) {
  const ir::Kernel kernel = run_pass(plan_storage, R"(fn f(A: float32[4]) {
      allocate s: float32[4] scope(global)  s[0] = 1.0
      for i in 0..4 parallel { A[i] = s[0] } })");
  ASSERT_EQ(kernel.workspace.size(), 1u);
  EXPECT_FALSE(kernel.workspace[0].per_thread);
}

/// Codegen moves to and from shared memory as no other memory can be moved to.
TEST(PlanStorage, SaysThatMemoryOutsideOfBlocksIsNotShared) {
  const ir::Kernel kernel = run_pass(plan_storage, R"(fn f(A: float32[2, 32]) {
      allocate s: float32[2, 32] scope(shared)
      for t in 0..32 bind(threadIdx.x) { for b in 0..2 bind(blockIdx.x) {
        s[b, t] = 1.0  A[b, t] = s[b, t] } } })",
                                     kCuda);
  ASSERT_EQ(kernel.workspace.size(), 1u);
  EXPECT_EQ(kernel.workspace[0].buffer->scope, ir::Scope::Global);
}

TEST(PlanStorage, TakesTheLargestSizeOverTheLoopsAround) {
  const ir::Kernel kernel = run_pass(plan_storage, R"(fn f(A: float32[n, n]) {
      for i in 0..n { allocate s: float32[i + 1] scope(global)
        for j in 0..i + 1 { s[j] = 1.0  A[i, j] = s[j] } } })");
  EXPECT_EQ(ir::print(kernel.workspace_bytes), "floordiv(n + 15, 16)*64");
}

TEST(PlanStorage, RunsAVectorLoopSeriallyWhoseBuffersAreTooLargeForACopyALane) {
  const ir::Kernel kernel =
      run_pass(plan_storage, R"(fn f(A: float32[8]) { for i in 0..8 vectorize {
      allocate s: float32[200] scope(global)  s[0] = 1.0  A[i] = s[0] } })");
  EXPECT_EQ(ir::as<ir::For>(kernel.body)->loop_kind, ir::LoopKind::Serial);
  EXPECT_EQ(kernel.notes,
            std::vector<std::string>{"i runs serially: what it computes on the way is "
                                     "too large for one copy a lane"});
}

// LLVM gives each copy of an unrolled loop a place of its own on the stack.
TEST(PlanStorage, CountsTheCopiesOfUnrolledLoops) {
  const auto with_copies = [](int copies) {
    return run_pass(plan_storage, fmt::format(R"(fn f(A: float32[4096]) {{
        for i in 0..{} unroll {{ for j in 0..2 unroll {{
          allocate s: float32[1024] scope(global)  s[0] = 1.0  A[i] = s[0] }} }} }})",
                                              copies));
  };
  EXPECT_TRUE(with_copies(128).workspace.empty());
  ASSERT_EQ(with_copies(129).workspace.size(), 1u);
  EXPECT_EQ(with_copies(4096).workspace.size(), 1u);
}

TEST(PlanStorage, KeepsNoMoreThanAStackHasRoomFor) {
  std::string body;
  for (int i = 0; i < 300; ++i) {
    body += fmt::format(
        "for i{0} in 0..4 {{ allocate s{0}: float32[1024] scope(global)  s{0}[0] = 1.0  "
        "A[i{0}] = s{0}[0] }} ",
        i);
  }
  const ir::Kernel kernel = run_pass(plan_storage, "fn f(A: float32[4]) { " + body + "}");
  EXPECT_EQ(kernel.workspace.size(), 300u - 256u);
}

TEST(PlanStorage, SharesWhatAGpuBlockComputesOutsideItsThreads) {
  expect_becomes(plan_storage,
                 R"(fn f(A: float32[n, 8]) { for b in 0..n bind(blockIdx.x) {
                   allocate s: float32[8] scope(global)
                   for t in 0..8 bind(threadIdx.x) { s[t] = 1.0 } } })",
                 R"(fn f(A: float32[n, 8] input) { workspace bytes 0, 0 per_thread
                   for b in 0..n bind(blockIdx.x) {
                   allocate s: float32[8] scope(shared)
                   for t in 0..8 bind(threadIdx.x) { s[t] = 1.0 } } })",
                 kCuda);
}

TEST(PlanStorage, NeedsAConstantShapeInsideGpuThreads) {
  expect_error(
      [] {
        run_pass(plan_storage, R"(fn f(A: float32[n]) { for t in 0..8 bind(threadIdx.x) {
          allocate s: float32[n, 2] scope(global)  s[0, 0] = 1.0  A[t] = s[0, 0] } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "s is computed inside GPU threads, so its shape must be constant; [n, 2] is not");
}

TEST(PlanStorage, NeedsAShapeWithABound) {
  expect_error(
      [] {
        run_pass(plan_storage, R"(fn f(A: float32[n]) { for i in 0..n {
          allocate s: float32[floordiv(n, i)] scope(global)  s[0] = 1.0  A[i] = s[0] } })");
      },
      ErrorKind::Unsupported,
      "the size of s depends on a loop in a way that has no known bound: [floordiv(n, i)]");
}

}  // namespace
}  // namespace kiln::testing
