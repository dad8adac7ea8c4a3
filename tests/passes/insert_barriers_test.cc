#include <fmt/format.h>

#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const insert_barriers = pass_named("insert_barriers").run;

TEST(InsertBarriers, OrdersAStoreBeforeTheReadOfAnotherThread) {
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[n, 32], C: float32[n, 32]) { for b in 0..n bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { s[t] = A[b, t] }
                   for u in 0..32 bind(threadIdx.x) { C[b, u] = s[31 - u] } } })",
                 R"(fn f(A: float32[n, 32], C: float32[n, 32]) { for b in 0..n bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { s[t] = A[b, t] }
                   for u in 0..32 bind(threadIdx.x) { barrier  C[b, u] = s[31 - u] } } })",
                 kCuda);
}

TEST(InsertBarriers, PutsNoneWhereEachThreadNeedsItsOwn) {
  expect_unchanged(insert_barriers,
                   R"(fn f(A: float32[n, 32], C: float32[n, 32]) { for b in 0..n bind(blockIdx.x) {
                     allocate s: float32[32] scope(shared)
                     for t in 0..32 bind(threadIdx.x) { s[t] = A[b, t] }
                     for u in 0..32 bind(threadIdx.x) { C[b, u] = s[u] } } })",
                   kCuda);
}

TEST(InsertBarriers, PutsNoneIntoAScanOfIndependentColumns) {
  expect_unchanged(insert_barriers,
                   R"(fn f(X: float32[m, n], S: float32[m, n]) {
                     for b in 0..floordiv(n + 255, 256) bind(blockIdx.x) {
                       for t in 0..256 bind(threadIdx.x) {
                         if b*256 + t < n { S[0, b*256 + t] = X[0, b*256 + t] }
                         for i in 0..m - 1 { if b*256 + t < n {
                           S[i + 1, b*256 + t] = S[i, b*256 + t] + X[i + 1, b*256 + t] } } } } })",
                   kCuda);
}

TEST(InsertBarriers, OrdersAnIterationBeforeTheNext) {
  // What one iteration reads, the next one overwrites: a barrier at both ends.
  expect_becomes(insert_barriers,
                 R"(fn f(C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for k in 0..9 {
                     for t in 0..32 bind(threadIdx.x) { s[t] = 1.0 }
                     for u in 0..32 bind(threadIdx.x) { C[u] = s[31 - u] } } } })",
                 R"(fn f(C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for k in 0..9 {
                     for t in 0..32 bind(threadIdx.x) { barrier  s[t] = 1.0 }
                     for u in 0..32 bind(threadIdx.x) { barrier  C[u] = s[31 - u] } } } })",
                 kCuda);
}

TEST(InsertBarriers, WalksADeepNestNoLongerThanAShallowOne) {
  const auto nest = [](const std::string& barrier) {
    std::string text = "for t in 0..32 bind(threadIdx.x) { " + barrier + " s[t] = 1.0 } " +
                       "for u in 0..32 bind(threadIdx.x) { " + barrier + " C[u] = s[31 - u] }";
    for (int depth = 0; depth < 40; ++depth)
      text = fmt::format("for k{} in 0..9 {{ {} }}", depth, text);
    return "fn f(C: float32[32]) { for b in 0..1 bind(blockIdx.x) { "
           "allocate s: float32[32] scope(shared) " +
           text + " } }";
  };
  expect_becomes(insert_barriers, nest(""), nest("barrier"), kCuda);
}

TEST(InsertBarriers, StandsInALoopOfItsOwnOutsideTheThreads) {
  expect_becomes(insert_barriers,
                 R"(fn f(C: float32[n]) { for b in 0..n bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { s[t] = 1.0 }
                   C[b] = s[7] } })",
                 R"(fn f(C: float32[n]) { for b in 0..n bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { s[t] = 1.0 }
                   for u in 0..32 bind(threadIdx.x) { barrier }
                   C[b] = s[7] } })",
                 kCuda);
}

TEST(InsertBarriers, StandsInFrontOfAGuardOnTheThread) {
  expect_becomes(insert_barriers,
                 R"(fn f(C: float32[32]) { allocate s: float32[32] scope(global)
                   for b in 0..1 bind(blockIdx.x) {
                   for t in 0..32 bind(threadIdx.x) { s[t] = 1.0 }
                   for u in 0..32 bind(threadIdx.x) { if u < 7 { C[u] = s[31 - u] } } } })",
                 R"(fn f(C: float32[32]) { allocate s: float32[32] scope(global)
                   for b in 0..1 bind(blockIdx.x) {
                   for t in 0..32 bind(threadIdx.x) { s[t] = 1.0 }
                   for u in 0..32 bind(threadIdx.x) { barrier  if u < 7 { C[u] = s[31 - u] } } } })",
                 kCuda);
}

TEST(InsertBarriers, StandsInFrontOfLoopsThatNeedNone) {
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[9, 32], C: float32[32, 4]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[64] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { for k in 0..9 {
                     for i in 0..2 { s[t*2 + i] = A[k, t] }
                     for j in 0..4 { C[t, j] = s[j] } } } } })",
                 R"(fn f(A: float32[9, 32], C: float32[32, 4]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[64] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { for k in 0..9 {
                     barrier
                     for i in 0..2 { s[t*2 + i] = A[k, t] }
                     barrier
                     for j in 0..4 { C[t, j] = s[j] } } } } })",
                 kCuda);
}

TEST(InsertBarriers, OrdersWhatThreadsFillTogether) {
  // The inner loops run over the same threads as the outer ones.
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[9, 32], C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { for k in 0..9 {
                     for u in 0..32 bind(threadIdx.x) { s[u] = A[k, u] }
                     C[t] = s[31 - t] } } } })",
                 R"(fn f(A: float32[9, 32], C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { for k in 0..9 {
                     barrier
                     for u in 0..32 bind(threadIdx.x) { s[u] = A[k, u] }
                     barrier
                     C[t] = s[31 - t] } } } })",
                 kCuda);
}

TEST(InsertBarriers, OrdersALoopAfterWhatCameBeforeIt) {
  // The iterations of i do not depend on each other, but all of them on the first thread's.
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[3, 17], C: float32[3, 17]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[3, 17] scope(shared)
                   for i in 0..3 { for j in 0..17 { s[i, j] = A[i, j] } }
                   for k in 0..3 { for u in 0..17 bind(threadIdx.x) { C[k, u] = s[k, u] } } } })",
                 R"(fn f(A: float32[3, 17], C: float32[3, 17]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[3, 17] scope(shared)
                   for i in 0..3 { for j in 0..17 { s[i, j] = A[i, j] } }
                   for k in 0..3 { for u in 0..17 bind(threadIdx.x) {
                     barrier  C[k, u] = s[k, u] } } } })",
                 kCuda);
}

TEST(InsertBarriers, DoesNotTrustALoopThatMayNotRun) {
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[32], B: float32[n], C: float32[32]) {
                   for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { s[t] = A[t] }
                   for k in 0..n { for u in 0..32 bind(threadIdx.x) { B[k] = s[31 - u] } }
                   for v in 0..32 bind(threadIdx.x) { C[v] = s[31 - v] } } })",
                 R"(fn f(A: float32[32], B: float32[n], C: float32[32]) {
                   for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { s[t] = A[t] }
                   for k in 0..n { for u in 0..32 bind(threadIdx.x) { barrier  B[k] = s[31 - u] } }
                   for v in 0..32 bind(threadIdx.x) { barrier  C[v] = s[31 - v] } } })",
                 kCuda);
}

TEST(InsertBarriers, RefusesADependenceAcrossBlocks) {
  const Error error = expect_error(
      [] {
        run_pass(insert_barriers,
                 R"(fn blur(A: float32[n], C: float32[n]) { for k in 0..4 {
                   for b in 0..n - 1 bind(blockIdx.x) { A[b] = A[b + 1] } } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "GPU blocks of blur depend on each other through A, and nothing orders blocks of one launch; "
      "bind axes that the dependence does not cross");
  EXPECT_EQ(error.reason(), "GRID_DEPENDENCE");
}

TEST(InsertBarriers, RefusesABufferThatBlocksFillForEachOther) {
  expect_error(
      [] {
        run_pass(insert_barriers,
                 R"(fn f(A: float32[n, 5], C: float32[5]) { for k in 0..n {
                   allocate s: float32[5] scope(global)
                   for b in 0..5 bind(blockIdx.y) { s[b] = A[k, b] }
                   for i in 0..5 { C[i] = s[i] } } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "GPU blocks of f depend on each other through s, and nothing orders blocks of one launch; "
      "bind axes that the dependence does not cross");
}

TEST(InsertBarriers, RefusesABarrierThatOnlySomeThreadsReach) {
  expect_error(
      [] {
        run_pass(insert_barriers,
                 R"(fn f(A: float32[32]) { for t in 0..32 bind(threadIdx.x) {
                   if t < 9 { A[t] = A[t + 1] } } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "threads of f depend on each other through A where not all of them wait together; bind axes "
      "that the dependence does not cross");
}

TEST(InsertBarriers, PutsNoneIntoAFusedNestThatIsTakenApart) {
  expect_unchanged(insert_barriers,
                   R"(fn f(A: float32[m, n], C: float32[m, n]) {
                     for b in 0..floordiv(m*n + 255, 256) bind(blockIdx.x) {
                       for t in 0..256 bind(threadIdx.x) { if b*256 + t < m*n {
                         C[floordiv(b*256 + t, n), floormod(b*256 + t, n)] = 0.0
                         for k in 0..9 {
                           C[floordiv(b*256 + t, n), floormod(b*256 + t, n)] =
                             C[floordiv(b*256 + t, n), floormod(b*256 + t, n)] + A[k, 0] } } } } })",
                   kCuda);
}

TEST(InsertBarriers, LetsBlocksShareATensorWhoseExtentsArePositiveWhereItIsTouched) {
  // Elements of a pooling, as blocks of the fused loop: the extent is a difference.
  expect_unchanged(insert_barriers,
                   R"(fn f[h, w, r, s, n](X: float32[h, w],
                        Y: float32[floordiv(h - r, s) + 1, floordiv(w - r, s) + 1]) {
                     for b in 0..n bind(blockIdx.x) { for t in 0..256 bind(threadIdx.x) {
                       if b*256 + t < (floordiv(h - r, s) + 1)*(floordiv(w - r, s) + 1) {
                         Y[floordiv(b*256 + t, floordiv(w - r, s) + 1),
                           floormod(b*256 + t, floordiv(w - r, s) + 1)] = 0.0
                         for p in 0..r {
                           Y[floordiv(b*256 + t, floordiv(w - r, s) + 1),
                             floormod(b*256 + t, floordiv(w - r, s) + 1)] =
                             Y[floordiv(b*256 + t, floordiv(w - r, s) + 1),
                               floormod(b*256 + t, floordiv(w - r, s) + 1)] + X[p, 0] } } } } })",
                   kCuda);
}

// A block is a place of an image of 56 columns, and its threads are the channels there.
constexpr const char* kImage =
    R"(fn f(Y: float32[{0}, 56, 256]) {{
         for b in 0..{0}*56 bind(blockIdx.x) {{ for t in 0..256 bind(threadIdx.x) {{
           Y[floordiv(b*256 + t, {1}), floormod(b, 56), t] = 0.0
           Y[floordiv(b*256 + t, {1}), floormod(b, 56), t] =
             Y[floordiv(b*256 + t, {1}), floormod(b, 56), t] + 1.0 }} }} }})";

TEST(InsertBarriers, PutsARowAndAColumnTogetherThatAreDividedInOtherUnits) {
  const std::string text = fmt::format(kImage, 56, 256 * 56);
  expect_becomes(insert_barriers, text, text, kCuda);
}

TEST(InsertBarriers, RefusesRowsThatEndAmidTheColumns) {
  expect_error(
      [] { run_pass(insert_barriers, fmt::format(kImage, 56, 256 * 112), kCuda); },
      ErrorKind::Unsupported,
      "GPU blocks of f depend on each other through Y, and nothing orders blocks of one launch; "
      "bind axes that the dependence does not cross");
}

TEST(InsertBarriers, LetsSomeThreadsSumIntoElementsOfTheirOwn) {
  // All threads read what eight of them sum up, each of those an element of its own.
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[8, 9], C: float32[64]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[8] scope(shared)
                   for t in 0..64 bind(threadIdx.x) {
                     if t < 8 { s[t] = 0.0  for k in 0..9 { s[t] = s[t] + A[t, k] } }
                     C[t] = s[floormod(t, 8)] } } })",
                 R"(fn f(A: float32[8, 9], C: float32[64]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[8] scope(shared)
                   for t in 0..64 bind(threadIdx.x) {
                     if t < 8 { s[t] = 0.0  for k in 0..9 { s[t] = s[t] + A[t, k] } }
                     barrier
                     C[t] = s[floormod(t, 8)] } } })",
                 kCuda);
}

TEST(InsertBarriers, OrdersTheStepsOfAScanOfNeighbours) {
  // A step reads the row before, which no thread writes in the same step.
  expect_becomes(insert_barriers,
                 R"(fn f(S: float32[m, 64]) { for t in 0..64 bind(threadIdx.x) {
                   for i in 0..m - 1 { if 0 < t { S[i + 1, t] = S[i, t - 1] } } } })",
                 R"(fn f(S: float32[m, 64]) { for t in 0..64 bind(threadIdx.x) {
                   for i in 0..m - 1 { barrier  if 0 < t { S[i + 1, t] = S[i, t - 1] } } } })",
                 kCuda);
}

TEST(InsertBarriers, NamesTheElementsThatBlocksShare) {
  const Error error = expect_error(
      [] {
        run_pass(insert_barriers,
                 R"(fn blur(A: float32[n]) { for b in 0..n - 1 bind(blockIdx.x) {
                   A[b] = A[b + 1] } })",
                 kCuda);
      },
      ErrorKind::Unsupported,
      "GPU blocks of blur depend on each other through A, and nothing orders blocks of one launch; "
      "bind axes that the dependence does not cross");
  EXPECT_EQ(error.notes(),
            std::vector<std::string>{"A[b + 1] and A[b] may be one element in different blocks"});
}

/// The memory of one iteration is that of the next one, which another thread may have begun.
TEST(InsertBarriers, OrdersAThreadThatIsAnIterationAhead) {
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[32], C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
                   for k in 0..9 { allocate s: float32[64] scope(shared)
                     for t in 0..32 bind(threadIdx.x) { s[t + k] = A[t]  C[t] = s[t + k] } } } })",
                 R"(fn f(A: float32[32], C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
                   for k in 0..9 { allocate s: float32[64] scope(shared)
                     for t in 0..32 bind(threadIdx.x) {
                       barrier  s[t + k] = A[t]  C[t] = s[t + k] } } } })",
                 kCuda);
}

/// What an iteration fills, no other thread may still read: it reads the other copy.
TEST(InsertBarriers, PutsOneIntoAnIterationWhereTwoCopiesTakeTurns) {
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[9, 32], C: float32[9, 32]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[2, 32] scope(shared)
                   for k in 0..9 {
                     for t in 0..32 bind(threadIdx.x) { s[floormod(k, 2), t] = A[k, t] }
                     for u in 0..32 bind(threadIdx.x) { C[k, u] = s[floormod(k, 2), 31 - u] } } } })",
                 R"(fn f(A: float32[9, 32], C: float32[9, 32]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[2, 32] scope(shared)
                   for k in 0..9 {
                     for t in 0..32 bind(threadIdx.x) { s[floormod(k, 2), t] = A[k, t] }
                     for u in 0..32 bind(threadIdx.x) {
                       barrier  C[k, u] = s[floormod(k, 2), 31 - u] } } } })",
                 kCuda);
}

/// The loop begins with the copy that the last iteration of the loop before it may still read.
TEST(InsertBarriers, StandsInFrontOfALoopWhoseCopiesTakeTurns) {
  expect_becomes(insert_barriers,
                 R"(fn f(A: float32[9, 32], C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
        allocate s: float32[2, 32] scope(shared)
        for t in 0..32 bind(threadIdx.x) { for i in 0..3 { for k in 0..9 {
          s[floormod(k, 2), t] = A[k, t]
          C[t] = C[t] + s[floormod(k, 2), 31 - t] } } } } })",
                 R"(fn f(A: float32[9, 32], C: float32[32]) { for b in 0..1 bind(blockIdx.x) {
        allocate s: float32[2, 32] scope(shared)
        for t in 0..32 bind(threadIdx.x) { for i in 0..3 { barrier for k in 0..9 {
          s[floormod(k, 2), t] = A[k, t]
          barrier
          C[t] = C[t] + s[floormod(k, 2), 31 - t] } } } } })",
                 kCuda);
}

/// What is read is what the iteration before has stored. Of two copies this one stores to what that
/// one has read; of three nobody reads it.
TEST(InsertBarriers, KnowsWhichOfTheCopiesIsTouched) {
  const auto text = [](int copies, const char* before_store, const char* before_read) {
    return fmt::format(
        R"(fn f(A: float32[9, 32], C: float32[9, 32]) {{ for b in 0..1 bind(blockIdx.x) {{
          allocate s: float32[{0}, 32] scope(shared)
          for k in 0..9 {{
            for t in 0..32 bind(threadIdx.x) {{ {2} s[floormod(k, {0}), t] = A[k, t] }}
            for u in 0..32 bind(threadIdx.x) {{ {3} C[k, u] = s[floormod(k + {1}, {0}), 31 - u] }}
          }} }} }})",
        copies, copies - 1, before_store, before_read);
  };
  expect_becomes(insert_barriers, text(2, "", ""), text(2, "barrier", ""), kCuda);
  expect_becomes(insert_barriers, text(3, "", ""), text(3, "", "barrier"), kCuda);
}

TEST(InsertBarriers, WaitsBehindWhatIsAwaited) {
  const auto text = [](const char* barrier) {
    return fmt::format(
        R"(fn f(A: float32[9, 32], C: float32[9, 32]) {{ for b in 0..1 bind(blockIdx.x) {{
          allocate s: float32[3, 32] scope(shared)
          for t in 0..32 bind(threadIdx.x) {{
            background {{ s[0, t] = A[0, t] }}
            background {{ s[1, t] = A[1, t] }}
            for k in 0..7 {{
              await 1
              {}
              background {{ s[floormod(k + 2, 3), t] = A[k + 2, t] }}
              C[k, t] = s[floormod(k, 3), 31 - t] }} }} }} }})",
        barrier);
  };
  expect_becomes(insert_barriers, text(""), text("barrier"), kCuda);
}

/// Also where the loop begins with a later iteration, since the first one stands before it.
TEST(InsertBarriers, KnowsWhichOfTheCopiesIsAwaited) {
  const auto text = [](const char* barrier) {
    return fmt::format(
        R"(fn f(A: float32[9, 32], C: float32[9, 32]) {{ for b in 0..1 bind(blockIdx.x) {{
          allocate s: float32[3, 32] scope(shared)
          for t in 0..32 bind(threadIdx.x) {{
            background {{ s[1, t] = A[1, t] }}
            background {{ s[2, t] = A[2, t] }}
            for k in 0..6 {{
              await 1
              {}
              background {{ s[floormod(k, 3), t] = A[k + 3, t] }}
              C[k, t] = s[floormod(k + 1, 3), 31 - t] }} }} }} }})",
        barrier);
  };
  expect_becomes(insert_barriers, text(""), text("barrier"), kCuda);
}

/// Some threads read both copies, or one that no iteration agrees on.
TEST(InsertBarriers, DoesNotTrustCopiesThatTakeNoTurns) {
  for (const char* other : {"1", "floormod(k, 3)", "floormod(u, 2)"}) {
    const auto text = [&](const char* barrier) {
      return fmt::format(
          R"(fn f(A: float32[9, 32], C: float32[9, 32]) {{ for b in 0..1 bind(blockIdx.x) {{
            allocate s: float32[2, 32] scope(shared)
            for k in 0..9 {{
              for t in 0..32 bind(threadIdx.x) {{ {1} s[floormod(k, 2), t] = A[k, t] }}
              for u in 0..32 bind(threadIdx.x) {{ {1} C[k, u] = s[{0}, 31 - u] }} }} }} }})",
          other, barrier);
    };
    expect_becomes(insert_barriers, text(""), text("barrier"), kCuda);
  }
}

}  // namespace
}  // namespace kiln::testing
