#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const keep_strided_plain = pass_named("keep_strided_plain").run;

const PassSetting kStrided = {TargetKind::Llvm, Layout::Strided, {}};
constexpr const char* kTile = R"(fn f(A: float32[n], C: float32[4, 16]) {
    for i in 0..4 unroll { for j in 0..16 vectorize { C[i, j] = A[i] } }
  })";

TEST(KeepStridedPlain, RunsTilesOneElementAfterTheOther) {
  expect_becomes(keep_strided_plain, kTile, R"(fn f(A: float32[n], C: float32[4, 16]) {
      for i in 0..4 { for j in 0..16 { C[i, j] = A[i] } }
    })",
                 kStrided);
}

TEST(KeepStridedPlain, KeepsTheOrderOfReductions) {
  expect_becomes(keep_strided_plain, R"(fn f(A: float32[n, 16], C: float32[n]) {
      for i in 0..n parallel { for k in 0..16 vectorize { C[i] = C[i] + A[i, k] } }
    })",
                 R"(fn f(A: float32[n, 16], C: float32[n]) {
      for i in 0..n parallel { for k in 0..16 vectorize { C[i] = C[i] + A[i, k] } }
    })",
                 kStrided);
}

TEST(KeepStridedPlain, LeavesCompactArgumentsAlone) { expect_unchanged(keep_strided_plain, kTile); }

}  // namespace
}  // namespace kiln::testing
