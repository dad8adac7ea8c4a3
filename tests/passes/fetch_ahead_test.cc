#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const fetch_ahead = pass_named("fetch_ahead").run;

TEST(FetchAhead, FetchesAPageAheadOfALargeInput) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[4194304], C: float32[4194304]) { for i in 0..131072 {
                   C[ramp(i*32, 1, 32)] = A[ramp(i*32, 1, 32)] } })",
                 R"(fn f(A: float32[4194304], C: float32[4194304]) { for i in 0..131072 {
                   prefetch_l2 A[min(i*32 + 256, 4194272)]
                   prefetch_l2 A[min(i*32 + 256, 4194272) + 16]
                   C[ramp(i*32, 1, 32)] = A[ramp(i*32, 1, 32)] } })");
}

/// Stores past the caches hold up what comes.
TEST(FetchAhead, FetchesIntoTheNearestCacheWhereStoresBypassThem) {
  expect_becomes(
      fetch_ahead,
      R"(fn f(A: float32[4194304], C: float32[4194304]) { nontemporal C for i in 0..131072 {
           C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] } })",
      R"(fn f(A: float32[4194304], C: float32[4194304]) { nontemporal C for i in 0..131072 {
           prefetch A[min(i*16 + 1024, 4194288)]
           C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] } })");
}

TEST(FetchAhead, LeavesWhatComesFromANearL3) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[4194304], C: float32[4096]) {
                     for i in 0..4096 { for j in 0..64 {
                       C[i] = reduce_sum(C[i], A[ramp(i*1024 + j*16, 1, 16)]) } } })");
}

TEST(FetchAhead, GoesOnInTheNextRowWhereRowsLieSideBySide) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[4096000], C: float32[4096000]) { for i in 0..4096 {
                   for j in 0..62 { C[ramp(i*1000 + j*16, 1, 16)] = A[ramp(i*1000 + j*16, 1, 16)] }
                 } })",
                 R"(fn f(A: float32[4096000], C: float32[4096000]) { for i in 0..4096 {
                   for j in 0..62 {
                     prefetch_l2 A[min(i*1000 + j*16 + 256, 4095984)]
                     C[ramp(i*1000 + j*16, 1, 16)] = A[ramp(i*1000 + j*16, 1, 16)] } } })");
}

TEST(FetchAhead, FetchesInTheLoopThatComputesMost) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[1024000], C: float32[1024000]) { for i in 0..1024 {
                   for j in 0..62 { C[ramp(i*1000 + j*16, 1, 16)] = A[ramp(i*1000 + j*16, 1, 16)] }
                   for j in 0..62 {
                     C[ramp(i*1000 + j*16, 1, 16)] = exp(A[ramp(i*1000 + j*16, 1, 16)]) }
                 } })",
                 R"(fn f(A: float32[1024000], C: float32[1024000]) { for i in 0..1024 {
                   for j in 0..62 { C[ramp(i*1000 + j*16, 1, 16)] = A[ramp(i*1000 + j*16, 1, 16)] }
                   for j in 0..62 {
                     prefetch A[min(i*1000 + j*16 + 1024, 1023984)]
                     C[ramp(i*1000 + j*16, 1, 16)] = exp(A[ramp(i*1000 + j*16, 1, 16)]) }
                 } })");
}

/// Products of its extent and what it computes would overflow.
TEST(FetchAhead, ComparesLoopsThatWouldNeverEnd) {
  const ir::Kernel kernel =
      run_pass(fetch_ahead, R"(fn f(A: float32[1024000], C: float32[1024000]) { for i in 0..1024 {
        for j in 0..4611686018427387904 {
          C[ramp(i*1000, 1, 16)] = exp(A[ramp(i*1000, 1, 16)]) }
        for j in 0..62 { C[ramp(i*1000 + j*16, 1, 16)] = A[ramp(i*1000 + j*16, 1, 16)] }
      } })");
  EXPECT_EQ(ir::print(kernel).find("prefetch"), std::string::npos) << ir::print(kernel);
}

TEST(FetchAhead, FetchesInTheFirstLoopWhereRowsAreLong) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[6144000], C: float32[6144000]) { for i in 0..192 {
                   for j in 0..2000 {
                     C[ramp(i*32000 + j*16, 1, 16)] = A[ramp(i*32000 + j*16, 1, 16)] }
                   for j in 0..2000 {
                     C[ramp(i*32000 + j*16, 1, 16)] = exp(A[ramp(i*32000 + j*16, 1, 16)]) }
                 } })",
                 R"(fn f(A: float32[6144000], C: float32[6144000]) { for i in 0..192 {
                   for j in 0..2000 {
                     prefetch_l2 A[min(i*32000 + j*16 + 256, 6143984)]
                     C[ramp(i*32000 + j*16, 1, 16)] = A[ramp(i*32000 + j*16, 1, 16)] }
                   for j in 0..2000 {
                     C[ramp(i*32000 + j*16, 1, 16)] = exp(A[ramp(i*32000 + j*16, 1, 16)]) }
                 } })");
}

/// A row of 16 KiB, which L1 holds beside the next one, comes while functions are computed.
TEST(FetchAhead, FetchesTheNextRowWhereFunctionsAreComputed) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[1048576], C: float32[1048576]) { for i in 0..256 {
                   for j in 0..256 {
                     C[ramp(i*4096 + j*16, 1, 16)] = A[ramp(i*4096 + j*16, 1, 16)] }
                   for j in 0..256 {
                     C[ramp(i*4096 + j*16, 1, 16)] = exp(A[ramp(i*4096 + j*16, 1, 16)]) }
                 } })",
                 R"(fn f(A: float32[1048576], C: float32[1048576]) { for i in 0..256 {
                   for j in 0..256 {
                     C[ramp(i*4096 + j*16, 1, 16)] = A[ramp(i*4096 + j*16, 1, 16)] }
                   for j in 0..256 {
                     prefetch A[min(i*4096 + j*16 + 4096, 1048560)]
                     C[ramp(i*4096 + j*16, 1, 16)] = exp(A[ramp(i*4096 + j*16, 1, 16)]) }
                 } })");
}

TEST(FetchAhead, FetchesWhatTheLoopAroundReadsNext) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[1048576], C: float32[256]) { for i in 0..1024 {
                   for j in 0..16 {
                     C[ramp(j*16, 1, 16)] = C[ramp(j*16, 1, 16)] + A[ramp(i*1024 + j*16, 1, 16)]
                   } } })",
                 R"(fn f(A: float32[1048576], C: float32[256]) { for i in 0..1024 {
                   for j in 0..16 {
                     prefetch A[min((i + 4)*1024 + j*16, 1048560)]
                     C[ramp(j*16, 1, 16)] = C[ramp(j*16, 1, 16)] + A[ramp(i*1024 + j*16, 1, 16)]
                   } } })");
}

TEST(FetchAhead, LeavesManyStreamsAlone) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[4194304], B: float32[4194304],
                     D: float32[4194304], C: float32[4194304]) { for i in 0..262144 {
                     C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] + B[ramp(i*16, 1, 16)] +
                                            D[ramp(i*16, 1, 16)] } })");
}

TEST(FetchAhead, LeavesSmallInputsAlone) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[65536], C: float32[65536]) { for i in 0..4096 {
                     C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] } })");
}

TEST(FetchAhead, LeavesInputsOfASizeThatIsNotKnown) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[n], C: float32[n]) {
                     for i in 0..floordiv(n, 16) {
                       C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] } })");
}

TEST(FetchAhead, LeavesWhatIsReadAgain) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[1048576], C: float32[64]) { for i in 0..64 {
                     for j in 0..16 { C[i] = reduce_sum(C[i], A[ramp(j*16, 1, 16)]) } } })");
}

TEST(FetchAhead, LeavesRowsThatDataChoosesAlone) {
  expect_unchanged(fetch_ahead,
                   R"(fn f(A: float32[4194304], I: int64[1024], C: float32[262144]) {
                   for i in 0..1024 { for j in 0..16 {
                     C[ramp(i*256 + j*16, 1, 16)] = A[ramp(I[i]*256 + j*16, 1, 16)] } } })");
}

TEST(FetchAhead, LeavesColumnsAlone) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[1048576], C: float32[16]) { for i in 0..1024 {
                     C[ramp(0, 1, 16)] = C[ramp(0, 1, 16)] + A[ramp(i*1024, 1, 16)] } })");
}

TEST(FetchAhead, FetchesTheRowsThatAScanIsGoingToStore) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[65536], S: float32[1048576]) { for t in 0..1023 {
                   for j in 0..16 { S[ramp(t*1024 + j*16 + 1024, 1, 16)] =
                     S[ramp(t*1024 + j*16, 1, 16)]*A[ramp(t*16, 1, 16)] } } })",
                 R"(fn f(A: float32[65536], S: float32[1048576]) { for t in 0..1023 {
                   for j in 0..16 {
                     prefetch S[min((t + 4)*1024 + j*16 + 1024, 1048560)]
                     S[ramp(t*1024 + j*16 + 1024, 1, 16)] =
                       S[ramp(t*1024 + j*16, 1, 16)]*A[ramp(t*16, 1, 16)] } } })");
}

TEST(FetchAhead, StaysInsideOfRowsThatGoBackwards) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[1048576], C: float32[256]) { for t in 0..1024 {
                   for j in 0..16 { C[ramp(j*16, 1, 16)] =
                     C[ramp(j*16, 1, 16)] + A[ramp((1023 - t)*1024 + j*16, 1, 16)] } } })",
                 R"(fn f(A: float32[1048576], C: float32[256]) { for t in 0..1024 {
                   for j in 0..16 {
                     prefetch A[min(max((1023 - (t + 4))*1024 + j*16, 0), 1048560)]
                     C[ramp(j*16, 1, 16)] =
                       C[ramp(j*16, 1, 16)] + A[ramp((1023 - t)*1024 + j*16, 1, 16)] } } })");
}

TEST(FetchAhead, LeavesSumsInAnOutputAlone) {
  expect_unchanged(fetch_ahead, R"(fn f(A: float32[1024], S: float32[1048576]) {
                     for i in 0..1024 { for k in 0..64 { for j in 0..64 {
                       S[ramp(i*1024 + j*16, 1, 16)] =
                         S[ramp(i*1024 + j*16, 1, 16)] + A[ramp(k*16, 1, 16)] } } } })");
}

/// A step of 256 elements is 2048 bytes here: no stream, so the loop that has one fetches.
TEST(FetchAhead, TakesStepsInBytes) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float64[1024000], C: float64[1024000]) { for i in 0..1000 {
                   for j in 0..4 { C[ramp(i*1024 + j*256, 1, 8)] = A[ramp(i*1024 + j*256, 1, 8)] }
                   for j in 0..128 { C[ramp(i*1024 + j*8, 1, 8)] = exp(A[ramp(i*1024 + j*8, 1, 8)]) }
                 } })",
                 R"(fn f(A: float64[1024000], C: float64[1024000]) { for i in 0..1000 {
                   for j in 0..4 { C[ramp(i*1024 + j*256, 1, 8)] = A[ramp(i*1024 + j*256, 1, 8)] }
                   for j in 0..128 {
                     prefetch A[min(i*1024 + j*8 + 1024, 1023992)]
                     C[ramp(i*1024 + j*8, 1, 8)] = exp(A[ramp(i*1024 + j*8, 1, 8)]) }
                 } })");
}

/// Rows 40 elements apart leave 160 bytes out: more than a line.
TEST(FetchAhead, TakesGapsBetweenRowsInBytes) {
  expect_becomes(fetch_ahead,
                 R"(fn f(A: float32[1048576], C: float32[1048576]) { for i in 0..1000 {
                   for j in 0..62 { C[ramp(i*992 + j*16, 1, 16)] = A[ramp(i*1032 + j*16, 1, 16)] }
                 } })",
                 R"(fn f(A: float32[1048576], C: float32[1048576]) { for i in 0..1000 {
                   for j in 0..62 {
                     prefetch A[min((i + 1)*1032 + j*16, 1048560)]
                     C[ramp(i*992 + j*16, 1, 16)] = A[ramp(i*1032 + j*16, 1, 16)] } } })");
}

}  // namespace
}  // namespace kiln::testing
