#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const flatten_storage = pass_named("flatten_storage").run;

constexpr const char* kTranspose =
    "fn f(A: float32[n, 3], B: float32[3, n]) { for i in 0..n { for j in 0..3 { B[j, i] = A[i, j] "
    "} } }";

TEST(FlattenStorage, UsesTheShapeOfCompactArguments) {
  expect_becomes(flatten_storage, kTranspose,
                 "fn f(A: float32[n, 3], B: float32[3, n]) {"
                 "  for i in 0..n { for j in 0..3 { B[j*n + i] = A[i*3 + j] } } }");
}

TEST(FlattenStorage, GivesStridedArgumentsAStrideADimension) {
  const ir::Kernel kernel =
      expect_becomes(flatten_storage, kTranspose,
                     "fn f(A: float32[n, 3] strides[a, b], B: float32[3, n] strides[c, d]) {"
                     "  for i in 0..n { for j in 0..3 { B[j*c + i*d] = A[i*a + j*b] } } }",
                     {TargetKind::Llvm, Layout::Strided, {}});
  ASSERT_EQ(kernel.strides.size(), 4u);
  EXPECT_EQ(kernel.strides[2]->name, "B.stride0");
}

TEST(FlattenStorage, KeepsAllocatedBuffersCompactWhereArgumentsAreStrided) {
  expect_becomes(flatten_storage,
                 "fn f(A: int32[4]) { allocate t: int32[2, 2] scope(local) "
                 "for i in 0..2 { t[1, i] = A[i] } }",
                 "fn f(A: int32[4] strides[a]) { allocate t: int32[2, 2] scope(local) "
                 "for i in 0..2 { t[2 + i] = A[i*a] } }",
                 {TargetKind::Llvm, Layout::Strided, {}});
}

TEST(FlattenStorage, KeepsRowsThatAreSpreadOut) {
  expect_becomes(flatten_storage,
                 "fn f(A: int32[4]) { allocate t: int32[2, 2] strides[5, 1] scope(local) "
                 "for i in 0..2 { prefetch t[i, 1]  t[1, i] = A[i] } }",
                 "fn f(A: int32[4]) { allocate t: int32[2, 2] strides[5, 1] scope(local) "
                 "for i in 0..2 { prefetch t[i*5 + 1]  t[5 + i] = A[i] } }");
}

TEST(FlattenStorage, KeepsElementsSideBySideThatAreReadAtOnce) {
  expect_becomes(flatten_storage,
                 "fn f(A: uint8[n, 8], B: int8[n, 8], C: int32[n] output) { for i in 0..n { "
                 "C[i] = dot(0, A[i, ramp(4, 1, 4)], B[i, ramp(0, 1, 4)]) } }",
                 "fn f(A: uint8[n, 8], B: int8[n, 8], C: int32[n] output) { for i in 0..n { "
                 "C[i] = dot(0, A[ramp(i*8 + 4, 1, 4)], B[ramp(i*8, 1, 4)]) } }");
}

TEST(FlattenStorage, MakesOneOfDimensionsThatAFusedLoopGoesThrough) {
  expect_becomes(flatten_storage,
                 "fn f(A: int32[5, 4, 7], B: int32[5, 28]) { for i in 0..5 { for p in 0..28 { "
                 "B[i, p] = A[i, floordiv(p, 7), floormod(p, 7)] } } }",
                 "fn f(A: int32[5, 4, 7], B: int32[5, 28]) { for i in 0..5 { for p in 0..28 { "
                 "B[i*28 + p] = A[i*28 + p] } } }");
  // Rows that are not as long as the loop says stay apart.
  expect_becomes(flatten_storage,
                 "fn f(A: int32[4, 8], B: int32[28]) { for p in 0..28 { "
                 "B[p] = A[floordiv(p, 7), floormod(p, 7)] } }",
                 "fn f(A: int32[4, 8], B: int32[28]) { for p in 0..28 { "
                 "B[p] = A[floordiv(p, 7)*8 + floormod(p, 7)] } }");
}

TEST(FlattenStorage, MakesOneRampOfLanesThatAFusedLoopGoesThrough) {
  expect_becomes(flatten_storage,
                 "fn f(A: bfloat16[5, 6, 3, 1], B: bfloat16[9, 2], C: float32[5] output) { "
                 "for i in 0..5 { for q in 0..9 { C[i] = dot(C[i], "
                 "A[i, floordiv(ramp(q*2, 1, 2), broadcast(3, 2)), "
                 "floormod(ramp(q*2, 1, 2), broadcast(3, 2)), 0], B[q, ramp(0, 1, 2)]) } } }",
                 "fn f(A: bfloat16[5, 6, 3, 1], B: bfloat16[9, 2], C: float32[5] output) { "
                 "for i in 0..5 { for q in 0..9 { C[i] = dot(C[i], "
                 "A[ramp(i*18 + q*2, 1, 2)], B[ramp(q*2, 1, 2)]) } } }");
}

TEST(FlattenStorage, GivesATensorWithoutDimensionsTheIndexZero) {
  expect_becomes(flatten_storage, "fn f(A: float32[]) { A[] = 1.0 }",
                 "fn f(A: float32[]) { A[0] = 1.0 }");
}

}  // namespace
}  // namespace kiln::testing
