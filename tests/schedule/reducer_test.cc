#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/print.h"
#include "compiler/lower.h"
#include "compiler/schedule/build_loops.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// A kernel text with the steps of its schedule block, as plain loops.
std::string loops_of(std::string_view text) {
  const language::TextKernel kernel = kernel_of(text);
  const language::Schedule steps =
      kernel.schedules.empty() ? language::Schedule() : kernel.schedules[0].second;
  return ir::print(build_loops(kernel.kernel, steps, {.kind = TargetKind::Llvm}, {}));
}

/// The steps that are chosen for a kernel without any.
std::string chosen_for(std::string_view text) {
  const language::TextKernel kernel = kernel_of(text);
  const language::Schedule chosen =
      choose_schedule(kernel.kernel, {}, {.kind = TargetKind::Llvm}, {});
  return language::print_schedule(kernel.kernel, "cpu", chosen);
}

std::string argmax(std::string_view reduction, std::string_view schedule = "") {
  return fmt::format(
      "kernel k(A: float32[m, n]) -> (I: int64[m], V: float32[m]) {{\n"
      "  reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), "
      "select(v >= w, v, w) identity -1, -inf\n"
      "  I[r], V[r] = {}\n"
      "  schedule cpu {{ {} }}\n"
      "}}\n",
      reduction, schedule);
}

TEST(Reducer, StoresItsValuesAfterAllAreComputed) {
  EXPECT_EQ(loops_of("kernel k(A: float32[m, n]) -> (V: float32[m], I: int64[m]) {\n"
                     "  reducer argmax((v: float32, i: int64), (w, j)) = select(v >= w, v, w), "
                     "select(v >= w, i, j) identity -inf, -1\n"
                     "  V[r], I[r] = argmax[k < n](A[r, k], k)\n"
                     "}"),
            R"(fn k(A: float32[m, n], V: float32[m], I: int64[m]) {
  for r in 0..m {
    V[r] = -inf
    I[r] = -1
    for k in 0..n {
      allocate V.next: float32[] scope(local)
      V.next[] = select(V[r] >= A[r, k], V[r], A[r, k])
      I[r] = select(V[r] >= A[r, k], I[r], k)
      V[r] = V.next[]
    }
  }
}
)");
}

TEST(Reducer, ComputesATermOnceThatItUsesOften) {
  EXPECT_EQ(loops_of("kernel k(A: float32[m, n]) -> (C: float32[m]) {\n"
                     "  reducer logsum(a: float32, b) = max(a, b) + log(exp(0 - abs(a - b)) + 1) "
                     "identity -inf\n"
                     "  C[i] = logsum[k < n](A[i, k] * 2)\n"
                     "}"),
            R"(fn k(A: float32[m, n], C: float32[m]) {
  for i in 0..m {
    C[i] = -inf
    for k in 0..n {
      allocate C.term: float32[] scope(local)
      C.term[] = A[i, k]*2.0
      C[i] = max(C[i], C.term[]) + log(exp(0.0 - abs(C[i] - C.term[])) + 1.0)
    }
  }
}
)");
}

TEST(Reducer, OfValuesThatDoNotNeedEachOtherHasNoCopies) {
  EXPECT_EQ(loops_of("kernel k(A: float32[m, n]) -> (S: float32[m], P: float32[m]) {\n"
                     "  reducer both((s: float32, p: float32), (x, y)) = s + x, p * y "
                     "identity 0, 1\n"
                     "  S[i], P[i] = both[k < n](A[i, k], A[i, k])\n"
                     "}"),
            R"(fn k(A: float32[m, n], S: float32[m], P: float32[m]) {
  for i in 0..m {
    S[i] = 0.0
    P[i] = 1.0
    for k in 0..n {
      S[i] = S[i] + A[i, k]
      P[i] = P[i]*A[i, k]
    }
  }
}
)");
}

TEST(Reduction, WithAConditionReadsNothingWhereItDoesNotHold) {
  EXPECT_EQ(loops_of("kernel k(A: float32[n], B: float32[n]) -> (C: float32[n]) {\n"
                     "  C[i] = sum[k < 3](A[i + k], where=i + k < n, init=B[i])\n"
                     "}"),
            R"(fn k(A: float32[n], B: float32[n], C: float32[n]) {
  for i in 0..n {
    C[i] = B[i]
    for k in 0..3 {
      if i + k < n {
        C[i] = C[i] + A[i + k]
      }
    }
  }
}
)");
}

TEST(Reducer, InsideAnExpressionIsAStageWithAllItsValues) {
  EXPECT_EQ(loops_of("kernel k(A: float32[m, n]) -> (C: int64[m]) {\n"
                     "  reducer argmax((i: int64, v: float32), (j, w)) = select(v >= w, i, j), "
                     "select(v >= w, v, w) identity -1, -inf\n"
                     "  C[r] = argmax.v0[k < n](k, A[r, k]) + int64(argmax.v1[k < n](k, A[r, k]))\n"
                     "}"),
            R"(fn k(A: float32[m, n], C: int64[m]) {
  for r in 0..m {
    allocate C.argmax.v0: int64[1] scope(global)
    allocate C.argmax.v1: float32[1] scope(global)
    C.argmax.v0[0] = -1
    C.argmax.v1[0] = -inf
    for k in 0..n {
      C.argmax.v0[0] = select(C.argmax.v1[0] >= A[r, k], C.argmax.v0[0], k)
      C.argmax.v1[0] = select(C.argmax.v1[0] >= A[r, k], C.argmax.v1[0], A[r, k])
    }
    allocate C.argmax.v0_1: int64[1] scope(global)
    allocate C.argmax.v1_1: float32[1] scope(global)
    C.argmax.v0_1[0] = -1
    C.argmax.v1_1[0] = -inf
    for k_1 in 0..n {
      C.argmax.v0_1[0] = select(C.argmax.v1_1[0] >= A[r, k_1], C.argmax.v0_1[0], k_1)
      C.argmax.v1_1[0] = select(C.argmax.v1_1[0] >= A[r, k_1], C.argmax.v1_1[0], A[r, k_1])
    }
    C[r] = C.argmax.v0[0] + int64(C.argmax.v1_1[0])
  }
}
)");
}

TEST(Reducer, HasPartialResultsOfAllItsValues) {
  EXPECT_EQ(loops_of(argmax("argmax[k < n](k, A[r, k], where=k != r, init=(r, A[r, 0]))",
                            "split(I.k, factor=4) rfactor(I.k.inner)")),
            R"(fn k(A: float32[m, n], I: int64[m], V: float32[m]) {
  allocate I__V.rf.v0: int64[4, m] scope(global)
  allocate I__V.rf.v1: float32[4, m] scope(global)
  for k.inner in 0..4 {
    for r in 0..m {
      I__V.rf.v0[k.inner, r] = -1
      I__V.rf.v1[k.inner, r] = -inf
      for k.outer in 0..floordiv(n + 3, 4) {
        if likely(k.outer*4 + k.inner < n) {
          if k.outer*4 + k.inner != r {
            I__V.rf.v0[k.inner, r] = select(I__V.rf.v1[k.inner, r] >= A[r, k.outer*4 + k.inner], I__V.rf.v0[k.inner, r], k.outer*4 + k.inner)
            I__V.rf.v1[k.inner, r] = select(I__V.rf.v1[k.inner, r] >= A[r, k.outer*4 + k.inner], I__V.rf.v1[k.inner, r], A[r, k.outer*4 + k.inner])
          }
        }
      }
    }
  }
  if 0 < m {
    check 0 < n #0
  }
  for r_1 in 0..m {
    I[r_1] = r_1
    V[r_1] = A[r_1, 0]
    for k.inner.v in 0..4 {
      I[r_1] = select(V[r_1] >= I__V.rf.v1[k.inner.v, r_1], I[r_1], I__V.rf.v0[k.inner.v, r_1])
      V[r_1] = select(V[r_1] >= I__V.rf.v1[k.inner.v, r_1], V[r_1], I__V.rf.v1[k.inner.v, r_1])
    }
  }
}
#0: stage 1, tensor 0, dimension 1
)");
  EXPECT_EQ(loops_of(argmax("argmax[k < 4](k, A[r, k], where=k != r)", "rfactor(I.k)")),
            R"(fn k(A: float32[m, n], I: int64[m], V: float32[m]) {
  allocate I__V.rf.v0: int64[4, m] scope(global)
  allocate I__V.rf.v1: float32[4, m] scope(global)
  for k in 0..4 {
    for r in 0..m {
      if k != r {
        check k < n #0
      }
      I__V.rf.v0[k, r] = if_then_else(k != r, k, -1)
      I__V.rf.v1[k, r] = if_then_else(k != r, A[r, k], -inf)
    }
  }
  for r_1 in 0..m {
    I[r_1] = -1
    V[r_1] = -inf
    for k.v in 0..4 {
      I[r_1] = select(V[r_1] >= I__V.rf.v1[k.v, r_1], I[r_1], I__V.rf.v0[k.v, r_1])
      V[r_1] = select(V[r_1] >= I__V.rf.v1[k.v, r_1], V[r_1], I__V.rf.v1[k.v, r_1])
    }
  }
}
#0: stage 1, tensor 0, dimension 1
)");
}

TEST(Reducer, IsWrittenToACache) {
  EXPECT_EQ(loops_of(argmax("argmax[k < n](k, A[r, k], where=k != r, init=(r, A[r, 0]))",
                            "cache_write(I, local)")),
            R"(fn k(A: float32[m, n], I: int64[m], V: float32[m]) {
  allocate I__V.local.v0: int64[m] scope(local)
  allocate I__V.local.v1: float32[m] scope(local)
  if 0 < m {
    check 0 < n #0
  }
  for r.c in 0..m {
    I__V.local.v0[r.c] = r.c
    I__V.local.v1[r.c] = A[r.c, 0]
    for k in 0..n {
      if k != r.c {
        I__V.local.v0[r.c] = select(I__V.local.v1[r.c] >= A[r.c, k], I__V.local.v0[r.c], k)
        I__V.local.v1[r.c] = select(I__V.local.v1[r.c] >= A[r.c, k], I__V.local.v1[r.c], A[r.c, k])
      }
    }
  }
  for r in 0..m {
    I[r] = I__V.local.v0[r]
    V[r] = I__V.local.v1[r]
  }
}
#0: stage 1, tensor 0, dimension 1
)");
}

TEST(Reduction, StartsBeforeWhatIsComputedInItsLoops) {
  constexpr std::string_view text =
      "kernel k(A: float32[m, n], B: float32[m]) -> (C: float32[m]) {{\n"
      "  D: float32[m]\n"
      "  D[i] = B[i] * 2\n"
      "  C[i] = sum[k < n](A[i, k], init=D[i])\n"
      "  schedule cpu {{ compute_at(D, C.{}) }}\n"
      "}}\n";
  EXPECT_EQ(loops_of(fmt::format(text, "i")),
            R"(fn k(A: float32[m, n], B: float32[m], C: float32[m]) {
  for i in 0..m {
    allocate D: float32[1] scope(global)
    D[0] = B[i]*2.0
    C[i] = D[0]
    for k in 0..n {
      C[i] = C[i] + A[i, k]
    }
  }
}
)");
  expect_error(
      [&] { loops_of(fmt::format(text, "k")); }, ErrorKind::InvalidArgument,
      "cannot compute D at k of C: the reduction of C starts from it; choose a loop outside "
      "of k");
}

TEST(Reducer, KeepsItsOrderInAutomaticSchedules) {
  const auto row_reduction = [](std::string_view reducer) {
    return fmt::format(
        "kernel k(A: float32[512, 512]) -> (C: float32[512]) {{\n"
        "  reducer logsum(a: float32, b) = log(exp(a) + exp(b)) identity -inf\n"
        "  C[i] = {}[k < 512](A[i, k])\n"
        "}}",
        reducer);
  };
  // Rows are the lanes of vectors, along which each goes by itself.
  EXPECT_EQ(chosen_for(row_reduction("logsum")), R"(schedule cpu {
  split(C.i, factor=16)
  split(C.k, factor=64)
  reorder(C.i.outer, C.k.outer, C.k.inner, C.i.inner)
  vectorize(C.i.inner)
  parallel(C.i.outer)
  cache_read(A, local, C, C.i.outer, C.k.outer, C.k.inner, C.i.inner)
  compute_at(A.local, C.k.outer)
  split(A.local.k.inner, factor=16)
  split(A.local.i.inner, factor=16)
  reorder(A.local.i.inner.outer, A.local.k.inner.outer, A.local.i.inner.inner, A.local.k.inner.inner)
  unroll(A.local.i.inner.inner)
  vectorize(A.local.k.inner.inner)
}
)");
  EXPECT_EQ(chosen_for(row_reduction("sum")), R"(schedule cpu {
  split(C.k, factor=64)
  split(C.i, factor=2)
  reorder(C.i.outer, C.k.outer, C.i.inner, C.k.inner)
  unroll(C.i.inner)
  vectorize(C.k.inner)
  parallel(C.i.outer)
}
)");
  // Along the columns, each lane keeps an order of its own.
  EXPECT_EQ(chosen_for("kernel k(A: float32[512, 512]) -> (C: float32[512]) {\n"
                       "  reducer logsum(a: float32, b) = log(exp(a) + exp(b)) identity -inf\n"
                       "  C[i] = logsum[k < 512](A[k, i])\n"
                       "}"),
            R"(schedule cpu {
  split(C.i, factor=128)
  reorder(C.k, C.i.inner)
  vectorize(C.i.inner)
  parallel(C.i.outer)
}
)");
}

}  // namespace
}  // namespace kiln::testing
