#include <fmt/format.h>

#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const lower_warp_memory = pass_named("lower_warp_memory").run;

TEST(LowerWarpMemory, GivesEachThreadItsPartAndShufflesTheRest) {
  expect_becomes(lower_warp_memory, R"(fn f(A: float32[32], C: float32[32]) {
    for b in 0..1 bind(blockIdx.x) {
      allocate W: float32[32] scope(warp)
      for t in 0..32 bind(threadIdx.x) { W[t] = A[t] }
      for t in 0..32 bind(threadIdx.x) { C[t] = W[31 - t] + W[t] }
    } })",
                 R"(fn f(A: float32[32], C: float32[32]) {
    for b in 0..1 bind(blockIdx.x) {
      for t in 0..32 bind(threadIdx.x) {
        allocate W: float32[1] scope(local)
        W[0] = A[t]
        allocate r: float32[1] scope(local)
        shuffle lane 31 - t of 32: r[0] = W[0]
        C[t] = r[0] + W[0]
      }
    } })",
                 kCuda);
}

TEST(LowerWarpMemory, PutsShufflesInFrontOfWhatSomeThreadsLeaveOut) {
  expect_becomes(lower_warp_memory, R"(fn f(A: float32[64], C: float32[n, 2]) {
    for b in 0..n bind(blockIdx.x) {
      for t in 0..16 bind(threadIdx.x) {
        allocate W: float32[64] scope(warp)
        for k in 0..4 { for u in 0..16 bind(threadIdx.x) { W[k*16 + u] = A[k*16 + u] } }
        if t < n { for k in 0..64 { C[t, 0] = W[k] } }
      }
    } })",
                 R"(fn f(A: float32[64], C: float32[n, 2]) {
    for b in 0..n bind(blockIdx.x) {
      for t in 0..16 bind(threadIdx.x) {
        allocate W: float32[4] scope(local)
        for k in 0..4 { W[k] = A[k*16 + t] }
        for k in 0..64 {
          allocate r: float32[1] scope(local)
          shuffle lane floormod(k, 16) of 16: r[0] = W[floordiv(k, 16)]
          if t < n { C[t, 0] = r[0] }
        }
      }
    } })",
                 kCuda);
}

/// The pass refuses a body that stands after `allocate W: float32[..] scope(warp)`.
void expect_refused(std::string_view loops, const std::string& sentence) {
  const std::string text = fmt::format(
      "fn f(A: float32[n, 256], I: int32[n], C: float32[n, 256]) {{ "
      "for b in 0..n bind(blockIdx.x) {{ {} }} }}",
      loops);
  expect_error([&] { run_pass(lower_warp_memory, text, kCuda); }, ErrorKind::Unsupported,
               "W cannot lie in warp memory: " + sentence);
}

TEST(LowerWarpMemory, RefusesWhatThreadsDoNotHold) {
  expect_refused(
      "allocate W: float32[n] scope(warp) "
      "for t in 0..32 bind(threadIdx.x) { W[t] = A[b, t] }",
      "how many elements a thread holds must be a constant");
  expect_refused(
      "allocate W: float32[64] scope(warp) "
      "for t in 0..32 bind(threadIdx.x) { W[t] = A[b, t] } "
      "for t in 0..32 bind(threadIdx.x) { W[t*2] = A[b, t] }",
      "threads store different elements to it at once; bind one axis of it to "
      "threadIdx.x");
  expect_refused(
      "allocate W: float32[64] scope(warp) "
      "for t in 0..32 bind(threadIdx.x) { W[t + 1] = A[b, t] }",
      "a thread stores an element there that another one holds; bind an axis of it to "
      "threadIdx.x, along which its elements lie side by side");
  expect_refused(
      "allocate W: float32[32] scope(warp) "
      "for t in 0..32 bind(threadIdx.x) { W[t] = A[b, t] } "
      "for t in 0..32 bind(threadIdx.x) { atomic max: W[31 - t] = A[b, t] }",
      "its elements are updated in one piece, which registers are not; name shared");
  expect_refused(
      "allocate W: float32[32] scope(warp) "
      "for t in 0..32 bind(threadIdx.x) { W[t] = A[b, t] C[b, t] = W[31 - t] }",
      "threads read there what others store in the same loop, and nothing says which "
      "comes first; name shared");
}

TEST(LowerWarpMemory, RefusesReadsToWhichNotAllThreadsCome) {
  const std::string fill =
      "allocate W: float32[256] scope(warp) for k in 0..8 { "
      "for t in 0..32 bind(threadIdx.x) { W[k*32 + t] = A[b, k*32 + t] } } ";
  expect_refused(fill +
                     "for t in 0..32 bind(threadIdx.x) { "
                     "if I[b] < 3 { C[b, t] = W[t*8] } else { C[b, t] = W[0] } }",
                 "not all threads of the warp come to where it is read, in a branch that data "
                 "chooses or that has another side; name shared");
  expect_refused(fill + "for t in 0..32 bind(threadIdx.x) { for j in 0..t { C[b, j] = W[j] } }",
                 "not all threads of the warp come to where it is read, in a loop that each of "
                 "them runs as often as its index says; name shared");
  expect_refused(fill +
                     "for t in 0..32 bind(threadIdx.x) { "
                     "if t < n { C[b, t] = W[floormod(int64(I[b]), 256)] } }",
                 "data says which element is read, in a branch that not all threads of the warp "
                 "take; name shared");
  expect_refused(fill + "for t in 0..32 bind(threadIdx.x) { C[b, t] = W[t*8] }",
                 "its threads read elements at once that lie too far apart in the registers of the "
                 "others; name shared");
  expect_refused(
      "for t in 0..32 bind(threadIdx.x) { if t < n { "
      "allocate W: float32[32] scope(warp) W[t] = A[b, t] C[b, t] = W[t] } }",
      "not all threads of the warp come to where it is computed; compute it outside of "
      "the loop or branch that some of them leave out");
  expect_refused(
      "for y in 0..2 bind(threadIdx.y) { allocate W: float32[16] scope(warp) "
      "for t in 0..16 bind(threadIdx.x) { W[t] = A[b, t] } "
      "for t in 0..16 bind(threadIdx.x) { C[b, t] = W[15 - t] } } "
      "for y in 0..3 bind(threadIdx.y) { C[b, y] = 0.0 }",
      "threads along threadIdx.y share its warp, and not all stages have as many of "
      "them; bind 32 threads to threadIdx.x");
}

}  // namespace
}  // namespace kiln::testing
