#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const vectorize_loops = pass_named("vectorize_loops").run;

TEST(VectorizeLoops, MakesARampOfTheVariable) {
  expect_becomes(
      vectorize_loops,
      "fn f(A: float32[8], B: float32[8]) { for i in 0..8 vectorize { B[i] = A[i] + 1.0 } }",
      "fn f(A: float32[8], B: float32[8]) {"
      "  B[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] + broadcast(1.0, 8) }");
}

TEST(VectorizeLoops, KeepsInnerLoopsScalarAndBroadcastsWhatAllLanesShare) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[n], B: float32[n], C: float32[8]) { for i in 0..8 vectorize {
                   for k in 0..n { C[i] = C[i] + A[k]*B[k*8 + i] } } })",
                 R"(fn f(A: float32[n], B: float32[n], C: float32[8]) { for k in 0..n {
                   C[ramp(0, 1, 8)] = C[ramp(0, 1, 8)] + broadcast(A[k], 8)*B[ramp(k*8, 1, 8)] } })");
}

TEST(VectorizeLoops, MakesPredicatesOfAGuard) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[n], B: float32[n]) { for o in 0..n { for i in 0..8 vectorize {
                   if likely(o*8 + i < n) { B[o*8 + i] = A[o*8 + i] } } } })",
                 R"(fn f(A: float32[n], B: float32[n]) { for o in 0..n { if o*8 < n {
                   B[ramp(o*8, 1, 8) where ramp(o*8, 1, 8) < broadcast(n, 8)] =
                     A[ramp(o*8, 1, 8) where ramp(o*8, 1, 8) < broadcast(n, 8)] } } })");
}

TEST(VectorizeLoops, KeepsThePredicateOfAStore) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[8], B: float32[8]) {
                   for i in 0..8 vectorize { B[i where i < 7] = A[i] } })",
                 R"(fn f(A: float32[8], B: float32[8]) {
                   B[ramp(0, 1, 8) where ramp(0, 1, 8) < broadcast(7, 8)] = A[ramp(0, 1, 8)] })");
}

TEST(VectorizeLoops, ReadsOnlyInTheLanesThatTakeABranch) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[8], B: float32[8]) { for i in 0..8 vectorize {
                   B[i] = if_then_else(1 <= i, A[i - 1], A[0]) } })",
                 R"(fn f(A: float32[8], B: float32[8]) {
                   B[ramp(0, 1, 8)] = select(broadcast(1, 8) <= ramp(0, 1, 8),
                     A[ramp(-1, 1, 8) where broadcast(1, 8) <= ramp(0, 1, 8)],
                     broadcast(A[0 where reduce_any(false, !(broadcast(1, 8) <= ramp(0, 1, 8)), reassociate)], 8)) })");
}

TEST(VectorizeLoops, ReadsWhatAConditionSharesInEveryLane) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[8], B: float32[8]) { for i in 0..8 vectorize {
                   B[i] = if_then_else(A[0] == A[i], A[i], 1.0) } })",
                 R"(fn f(A: float32[8], B: float32[8]) {
                   B[ramp(0, 1, 8)] = select(broadcast(A[0], 8) == A[ramp(0, 1, 8)],
                     A[ramp(0, 1, 8) where broadcast(A[0], 8) == A[ramp(0, 1, 8)]],
                     broadcast(1.0, 8)) })");
}

TEST(VectorizeLoops, MakesAReductionOfWhatAllLanesAddToOnePlace) {
  const char* before =
      "fn f(A: float32[8], C: float32[1]) { for k in 0..8 vectorize { C[0] = C[0] + A[k] } }";
  expect_becomes(vectorize_loops, before,
                 "fn f(A: float32[8], C: float32[1]) {"
                 "  C[0] = reduce_sum(C[0], A[ramp(0, 1, 8)], reassociate) }");
  PassSetting strict;
  strict.options.strict = true;
  expect_becomes(vectorize_loops, before,
                 "fn f(A: float32[8], C: float32[1]) { C[0] = reduce_sum(C[0], A[ramp(0, 1, 8)]) }",
                 strict);
}

TEST(VectorizeLoops, AddsInEachLaneWhatAllLanesShare) {
  expect_becomes(
      vectorize_loops,
      "fn f(A: float32[8], C: float32[1]) { for k in 0..8 vectorize { C[0] = C[0] + A[0] } }",
      "fn f(A: float32[8], C: float32[1]) {"
      "  C[0] = reduce_sum(C[0], broadcast(A[0], 8), reassociate) }");
}

TEST(VectorizeLoops, StoresTheLastLaneWhereAllStoreToOnePlace) {
  expect_becomes(vectorize_loops,
                 "fn f(A: float32[8], C: float32[1]) { for i in 0..8 vectorize { C[0] = A[i] } }",
                 "fn f(A: float32[8], C: float32[1]) { C[0] = A[7] }");
}

TEST(VectorizeLoops, GivesEachLaneItsOwnCopyOfABuffer) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[8], C: float32[8]) { for i in 0..8 vectorize {
                   allocate t: float32[2] scope(local)  t[1] = A[i]  C[i] = t[1] } })",
                 R"(fn f(A: float32[8], C: float32[8]) {
                   allocate t: float32[2, 8] scope(local)
                   t[ramp(8, 1, 8)] = A[ramp(0, 1, 8)]  C[ramp(0, 1, 8)] = t[ramp(8, 1, 8)] })");
}

TEST(VectorizeLoops, CutsALongLoopIntoVectorsOf64Lanes) {
  expect_becomes(vectorize_loops,
                 "fn f(A: float32[200]) { for i in 0..200 vectorize { A[i] = 0.0 } }",
                 R"(fn f(A: float32[200]) {
                   for s in 0..3 { A[ramp(s*64, 1, 64)] = broadcast(0.0, 64) }
                   A[ramp(192, 1, 8)] = broadcast(0.0, 8) })");
}

TEST(VectorizeLoops, KeepsTheDigitsOfAFusedIndexContiguous) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[64]) { for i in 0..4 vectorize {
                   A[floordiv(i + 8, 4)*4 + floormod(i + 8, 4)] = 0.0 } })",
                 "fn f(A: float32[64]) { A[ramp(8, 1, 4)] = broadcast(0.0, 4) }");
}

TEST(VectorizeLoops, ReplacesALoopOfOneIteration) {
  expect_becomes(vectorize_loops, "fn f(A: float32[1]) { for i in 0..1 vectorize { A[i] = 0.0 } }",
                 "fn f(A: float32[1]) { A[0] = 0.0 }");
}

TEST(VectorizeLoops, RunsSeriallyWhereAnInnerExtentDiffers) {
  const ir::Kernel kernel = expect_becomes(
      vectorize_loops,
      "fn f(A: float32[8]) { for i in 0..8 vectorize { for j in 0..i { A[i] = A[i] + 1.0 } } }",
      "fn f(A: float32[8]) { for i in 0..8 { for j in 0..i { A[i] = A[i] + 1.0 } } }");
  EXPECT_EQ(kernel.notes,
            std::vector<std::string>{"i runs serially, not as vectors: the extent of j "
                                     "in it differs between its iterations"});
}

TEST(VectorizeLoops, RunsSeriallyWhatIsCheckedInEachIteration) {
  const ir::Kernel kernel =
      run_pass(vectorize_loops, R"(fn f(A: int64[8], B: float32[8], C: float32[8]) {
      for i in 0..8 vectorize { check A[i] < 8 #0  C[i] = B[A[i]] } }
      #0: stage 2, tensor 1, dimension 0)");
  EXPECT_EQ(ir::as<ir::For>(kernel.body)->loop_kind, ir::LoopKind::Serial);
  EXPECT_EQ(kernel.notes,
            std::vector<std::string>{"i runs serially, not as vectors: an index in it "
                                     "must be checked in each iteration"});
}

TEST(VectorizeLoops, RunsTheOuterOfTwoSerially) {
  const ir::Kernel kernel = expect_becomes(
      vectorize_loops,
      "fn f(A: float32[32]) { for i in 0..4 vectorize { for j in 0..8 vectorize { A[i*8 + j] = 0.0 "
      "} } }",
      "fn f(A: float32[32]) { for i in 0..4 { A[ramp(i*8, 1, 8)] = broadcast(0.0, 8) } }");
  EXPECT_EQ(kernel.notes, std::vector<std::string>{
                              "i runs serially, not as vectors: a loop in it is a vector already"});
}

TEST(VectorizeLoops, GivesEachLaneItsGroupOfProducts) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: uint8[l], B: int8[l, 64], C: int32[16] output) {
                   for k in 0..l { for j in 0..16 vectorize {
                     C[j] = dot(C[j], A[ramp(k*4, 1, 4)], B[ramp(k*64 + j*4, 1, 4)]) } } })",
                 R"(fn f(A: uint8[l], B: int8[l, 64], C: int32[16] output) {
                   for k in 0..l {
                     C[ramp(0, 1, 16)] =
                         dot(C[ramp(0, 1, 16)], A[ramp(k*4, 1, 4)], B[ramp(k*64, 1, 64)]) } })");
}

TEST(VectorizeLoops, RunsProductsOfElementsThatLieApartSerially) {
  for (const std::string places : {"j*8, 1", "j*4, 2"}) {
    const ir::Kernel kernel =
        run_pass(vectorize_loops,
                 "fn f(A: uint8[4], B: int8[128], C: int32[16] output) { "
                 "for j in 0..16 vectorize { C[j] = dot(C[j], A[ramp(0, 1, 4)], B[ramp(" +
                     places + ", 4)]) } }");
    EXPECT_EQ(kernel.notes, std::vector<std::string>{
                                "j runs serially, not as vectors: the products in it are not "
                                "of elements side by side"});
  }
}

/// Loops that no schedule makes: the steps and validate_vectors keep them from this pass.
TEST(VectorizeLoops, RunsSeriallyWhatHasNoVector) {
  const std::pair<const char*, const char*> table[] = {
      {R"(fn f(A: uint8[64], B: int8[4], C: int32[16] output) { for i in 0..16 vectorize {
            C[i] = dot(C[i], A[ramp(i*4, 1, 4)], B[ramp(0, 1, 4)]) } })",
       "a sum of products in it is not of all lanes"},
      {"fn f(A: float32[8], B: float32[1]) { for i in 0..8 vectorize { B[0 where i < 7] = A[i] } }",
       "a store in it to one place has a predicate"},
      {"fn f(A: float32[8], B: float32[1]) { for i in 0..8 vectorize { B[0] = A[i] - B[0] } }",
       "each iteration needs what the one before stored in B"},
      {R"(fn f(A: float32[8]) { for i in 0..8 vectorize {
            allocate t: float32[i + 1] scope(global)  t[0] = 1.0  A[i] = t[0] } })",
       "the shape of t differs between its iterations"},
  };
  for (const auto& [text, why] : table) {
    SCOPED_TRACE(why);
    const ir::Kernel kernel = run_pass(vectorize_loops, text);
    EXPECT_EQ(ir::as<ir::For>(kernel.body)->loop_kind, ir::LoopKind::Serial);
    EXPECT_EQ(kernel.notes,
              std::vector<std::string>{std::string("i runs serially, not as vectors: ") + why});
  }
}

TEST(VectorizeLoops, FetchesForAllLanesOnce) {
  expect_becomes(
      vectorize_loops,
      "fn f(A: float32[32]) { for i in 0..8 vectorize { prefetch A[i + 8]  A[i] = 0.0 } }",
      "fn f(A: float32[32]) { prefetch A[0 + 8]  A[ramp(0, 1, 8)] = broadcast(0.0, 8) }");
}

TEST(VectorizeLoops, MovesVectorsOnCuda) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[64], B: float32[64], n: float32[1]) {
      for t in 0..16 { for v in 0..4 vectorize { B[t*4 + v] = exp(A[t*4 + v]) + n[0] } } })",
                 R"(fn f(A: float32[64], B: float32[64], n: float32[1]) { for t in 0..16 {
      allocate B.vector: float32[4] scope(local)
      allocate A.vector: float32[4] scope(local)
      A.vector[ramp(0, 1, 4)] = A[ramp(t*4 + 0, 1, 4)]
      for v in 0..4 unroll { B.vector[v] = exp(A.vector[v]) + n[0] }
      B[ramp(t*4 + 0, 1, 4)] = B.vector[ramp(0, 1, 4)] } })",
                 kCuda);
}

// Half of the words of a vector; eight neighbours are two vectors.
TEST(VectorizeLoops, MovesSixteenBytesAtOnceOnCuda) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float64[8], B: float64[8]) {
      for v in 0..8 vectorize { B[v] = A[v] } })",
                 R"(fn f(A: float64[8], B: float64[8]) { for v.part in 0..4 unroll {
      allocate B.vector: float64[2] scope(local)
      allocate A.vector: float64[2] scope(local)
      A.vector[ramp(0, 1, 2)] = A[ramp(v.part*2, 1, 2)]
      for v in 0..2 unroll { B.vector[v] = A.vector[v] }
      B[ramp(v.part*2, 1, 2)] = B.vector[ramp(0, 1, 2)] } })",
                 kCuda);
}

TEST(VectorizeLoops, MovesWhatIsAlignedAloneOnCuda) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[64], B: float32[64, 3]) {
      for t in 0..16 { for v in 0..4 vectorize { B[(t*4 + v)*3] = A[t*4 + v] + A[t*4 + v + 1] } } })",
                 R"(fn f(A: float32[64], B: float32[64, 3]) { for t in 0..16 {
      allocate A.vector: float32[4] scope(local)
      A.vector[ramp(0, 1, 4)] = A[ramp(t*4 + 0, 1, 4)]
      for v in 0..4 unroll { B[(t*4 + v)*3] = A.vector[v] + A[t*4 + v + 1] } } })",
                 kCuda);
}

/// A row of 64 channels of an image: neighbours have one quotient.
TEST(VectorizeLoops, SeesNeighboursInAQuotientOnCuda) {
  expect_becomes(
      vectorize_loops,
      R"(fn f(A: float32[512], B: float32[512]) { for t in 0..128 { for v in 0..4 vectorize {
      B[t*4 + v] = A[floordiv(t*4 + v, 64)*64 + floormod(t*4 + v, 64)] } } })",
      R"(fn f(A: float32[512], B: float32[512]) { for t in 0..128 {
      allocate B.vector: float32[4] scope(local)
      allocate A.vector: float32[4] scope(local)
      A.vector[ramp(0, 1, 4)] = A[ramp(floordiv(t*4 + 0, 64)*64 + (floormod(t*4 + 0, 64) + 0), 1, 4)]
      for v in 0..4 unroll { B.vector[v] = A.vector[v] }
      B[ramp(t*4 + 0, 1, 4)] = B.vector[ramp(0, 1, 4)] } })",
      kCuda);
  // Of rows of 6 a vector may begin in one and end in the next.
  const ir::Kernel moved =
      run_pass(vectorize_loops, R"(fn f(A: float32[512], B: float32[512]) { for t in 0..64 {
      for v in 0..4 vectorize { B[t*4 + v] = A[floordiv(t*4 + v, 6)*8 + floormod(t*4 + v, 6)] } } })",
               kCuda);
  EXPECT_EQ(ir::print(moved).find("A.vector"), std::string::npos) << ir::print(moved);
}

TEST(VectorizeLoops, ChoosesOnceForAllNeighboursOnCuda) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[64], B: float32[64], n: int64[1]) { for t in 0..16 {
      for v in 0..4 vectorize { B[t*4 + v] = if_then_else(t > 2, A[t*4 + v - 8], 0.0) } } })",
                 R"(fn f(A: float32[64], B: float32[64], n: int64[1]) { for t in 0..16 {
      if t > 2 {
        allocate B.vector: float32[4] scope(local)
        allocate A.vector: float32[4] scope(local)
        A.vector[ramp(0, 1, 4)] = A[ramp(t*4 + 0 - 8, 1, 4)]
        for v in 0..4 unroll { B.vector[v] = A.vector[v] }
        B[ramp(t*4 + 0, 1, 4)] = B.vector[ramp(0, 1, 4)]
      } else {
        allocate B.vector: float32[4] scope(local)
        for v in 0..4 unroll { B.vector[v] = 0.0 }
        B[ramp(t*4 + 0, 1, 4)] = B.vector[ramp(0, 1, 4)] } } })",
                 kCuda);
}

TEST(VectorizeLoops, AsksAGuardOnceOnCuda) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[100], B: float32[100]) { for t in 0..32 {
      for v in 0..4 vectorize { if likely(t*4 + v < 100) { B[t*4 + v] = A[t*4 + v] } } } })",
                 R"(fn f(A: float32[100], B: float32[100]) { for t in 0..32 {
      if likely(t*4 + 0 < 100) {
        allocate B.vector: float32[4] scope(local)
        allocate A.vector: float32[4] scope(local)
        A.vector[ramp(0, 1, 4)] = A[ramp(t*4 + 0, 1, 4)]
        for v in 0..4 unroll { B.vector[v] = A.vector[v] }
        B[ramp(t*4 + 0, 1, 4)] = B.vector[ramp(0, 1, 4)] } } })",
                 kCuda);
}

void expect_serial_on_cuda(const std::string& parameters, const std::string& body) {
  const ir::Kernel kernel = expect_becomes(
      vectorize_loops, "fn f(" + parameters + ") { for v in 0..4 vectorize { " + body + " } }",
      "fn f(" + parameters + ") { for v in 0..4 { " + body + " } }", kCuda);
  EXPECT_EQ(kernel.notes,
            std::vector<std::string>{"v runs serially, not as vectors: nothing of it is "
                                     "known to lie side by side"});
}

TEST(VectorizeLoops, LeavesOtherLoopsSerialOnCuda) {
  expect_serial_on_cuda("A: float32[n, n]", "A[v*n] = 0.0");  // apart
  expect_serial_on_cuda("A: float32[n]", "A[n + v] = 0.0");   // not aligned, for all one knows
  expect_serial_on_cuda("A: float32[9]", "A[v + 1] = A[v] + 1.0");  // one after the other
  expect_serial_on_cuda("A: float32[4], n: int64[1]", "if v < n[0] { A[v] = 0.0 }");
}

// What is not chosen may lie outside.
TEST(VectorizeLoops, LoadsWhatIsChosenOneByOneOnCuda) {
  expect_becomes(vectorize_loops,
                 R"(fn f(A: float32[2], B: float32[4]) {
      for v in 0..4 vectorize { B[v] = if_then_else(v < 2, A[v], 0.0) } })",
                 R"(fn f(A: float32[2], B: float32[4]) {
      allocate B.vector: float32[4] scope(local)
      for v in 0..4 unroll { B.vector[v] = if_then_else(v < 2, A[v], 0.0) }
      B[ramp(0, 1, 4)] = B.vector[ramp(0, 1, 4)] })",
                 kCuda);
}

TEST(VectorizeLoops, NeedsAConstantExtent) {
  expect_error(
      [] {
        run_pass(vectorize_loops, "fn f(A: float32[n]) { for i in 0..n vectorize { A[i] = 0.0 } }");
      },
      ErrorKind::Unsupported, "cannot vectorize i: its extent n is not a constant");
}

}  // namespace
}  // namespace kiln::testing
