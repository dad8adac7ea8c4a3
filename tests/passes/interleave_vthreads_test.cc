#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const interleave_vthreads = pass_named("interleave_vthreads").run;

TEST(InterleaveVthreads, FillsASharedTileOnceAndCopiesWhatEachHas) {
  expect_becomes(interleave_vthreads, R"(fn f(A: float32[n, 8], C: float32[2, 8]) {
    for v in 0..2 bind(vthread) {
      for t in 0..8 bind(threadIdx.x) {
        allocate b: float32[8] scope(shared)
        allocate s: float32[1] scope(local)
        s[0] = 0.0
        for k in 0..n {
          b[t] = A[k, t]
          s[0] = s[0] + b[7 - t]*2.0
          C[v, t] = s[0]
        }
      }
    } })",
                 R"(fn f(A: float32[n, 8], C: float32[2, 8]) {
    for t in 0..8 bind(threadIdx.x) {
      allocate b: float32[8] scope(shared)
      allocate s: float32[1] scope(local)
      s[0] = 0.0
      for k in 0..n {
        b[t] = A[k, t]
        s[0] = s[0] + b[7 - t]*2.0
        for v in 0..2 unroll { C[v, t] = s[0] }
      }
    } })",
                 kCuda);
  expect_becomes(interleave_vthreads, R"(fn f(A: float32[n, 8], C: float32[2, 8]) {
    for v in 0..2 bind(vthread) {
      for t in 0..8 bind(threadIdx.x) {
        allocate b: float32[8] scope(shared)
        allocate s: float32[1] scope(local)
        s[0] = 0.0
        for k in 0..n {
          b[t] = A[k, t]
          if v < k { s[0] = s[0] + b[7 - t] }
        }
        C[v, t] = s[0]
      }
    } })",
                 R"(fn f(A: float32[n, 8], C: float32[2, 8]) {
    for t in 0..8 bind(threadIdx.x) {
      allocate b: float32[8] scope(shared)
      allocate s: float32[2, 1] scope(local)
      for v in 0..2 unroll { s[v, 0] = 0.0 }
      for k in 0..n {
        b[t] = A[k, t]
        for v in 0..2 unroll { if v < k { s[v, 0] = s[v, 0] + b[7 - t] } }
      }
      for v in 0..2 unroll { C[v, t] = s[v, 0] }
    } })",
                 kCuda);
}

TEST(InterleaveVthreads, TakesOneOfTwoInside) {
  expect_becomes(interleave_vthreads, R"(fn f(C: float32[2, 16, 8]) {
    for v in 0..2 bind(vthread) { for w in 0..16 bind(vthread) {
      for t in 0..8 bind(threadIdx.x) { C[v, w, t] = 1.0 } } } })",
                 R"(fn f(C: float32[2, 16, 8]) {
    for t in 0..8 bind(threadIdx.x) {
      for w in 0..16 { for v in 0..2 unroll { C[v, w, t] = 1.0 } } } })",
                 kCuda);
}

TEST(InterleaveVthreads, LeavesThoseThatNeedEachOtherInOrder) {
  constexpr std::string_view kText =
      "fn f(C: float32[9]) { for v in 0..8 bind(vthread) { C[v + 1] = C[v] } }";
  const ir::Kernel kernel = expect_becomes(interleave_vthreads, kText, kText, kCuda);
  EXPECT_EQ(kernel.notes,
            (std::vector<std::string>{"the virtual threads of v run one after the other: one may "
                                      "need what another one stores"}));
}

}  // namespace
}  // namespace kiln::testing
