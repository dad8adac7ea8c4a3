#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/lower.h"
#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

TEST(ComputeAt, ComputesTheHaloOfATile) {
  Stencils k;
  k.te.split(k.C, "i", 25);
  k.te.compute_at(k.B, k.C, "i.outer");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[103], C: float32[100]) {
  for i.outer in 0..4 {
    allocate B: float32[27] scope(global)
    for i in 0..27 {
      B[i] = A[i.outer*25 + i] + A[i.outer*25 + i + 1]
    }
    for i.inner in 0..25 {
      C[i.outer*25 + i.inner] = B[i.inner] + B[i.inner + 1] + B[i.inner + 2]
    }
  }
}
)");
}

TEST(ComputeAt, GuardsTheTileThatLeavesTheTensor) {
  Stencils k;
  k.te.split(k.C, "i", 32);
  k.te.compute_at(k.B, k.C, "i.outer");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[103], C: float32[100]) {
  for i.outer in 0..4 {
    allocate B: float32[34] scope(global)
    for i in 0..34 {
      if likely(i.outer*32 + i < 102) {
        B[i] = A[i.outer*32 + i] + A[i.outer*32 + i + 1]
      }
    }
    for i.inner in 0..32 {
      if likely(i.outer*32 + i.inner < 100) {
        C[i.outer*32 + i.inner] = B[i.inner] + B[i.inner + 1] + B[i.inner + 2]
      }
    }
  }
}
)");
}

struct Chain {
  Te te;
  TeExpr n = te.var("n");
  TeTensor A = te.placeholder("A", {n + 4});
  TeTensor B = te.compute("B", "i", {n + 2}, [&](auto v) { return A(v[0]) + A(v[0] + 2); });
  TeTensor C = te.compute("C", "i", {n + 1}, [&](auto v) { return B(v[0]) + B(v[0] + 1); });
  TeTensor D = te.compute("D", "i", {n}, [&](auto v) { return C(v[0]) * C(v[0] + 1); });
  Chain() { te.arguments({A, D}); }
};

TEST(ComputeAt, FollowsAChain) {
  Chain k;
  k.te.split(k.D, "i", 16);
  k.te.compute_at(k.C, k.D, "i.outer");
  k.te.compute_at(k.B, k.C, "i");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n + 4], D: float32[n]) {
  for i.outer in 0..floordiv(n + 15, 16) {
    allocate C: float32[17] scope(global)
    for i in 0..17 {
      if likely(i.outer*16 + i < n + 1) {
        allocate B: float32[2] scope(global)
        for i_1 in 0..2 {
          B[i_1] = A[i.outer*16 + i + i_1] + A[i.outer*16 + i + i_1 + 2]
        }
        C[i] = B[0] + B[1]
      }
    }
    for i.inner in 0..16 {
      if likely(i.outer*16 + i.inner < n) {
        D[i.outer*16 + i.inner] = C[i.inner]*C[i.inner + 1]
      }
    }
  }
}
)");
}

TEST(ComputeAt, PutsSeveralStagesInOneLoop) {
  Chain k;
  k.te.split(k.D, "i", 16);
  k.te.compute_at(k.C, k.D, "i.outer");
  k.te.compute_at(k.B, k.D, "i.outer");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n + 4], D: float32[n]) {
  for i.outer in 0..floordiv(n + 15, 16) {
    allocate B: float32[18] scope(global)
    for i in 0..18 {
      if likely(i.outer*16 + i < n + 2) {
        B[i] = A[i.outer*16 + i] + A[i.outer*16 + i + 2]
      }
    }
    allocate C: float32[17] scope(global)
    for i_1 in 0..17 {
      if likely(i.outer*16 + i_1 < n + 1) {
        C[i_1] = B[i_1] + B[i_1 + 1]
      }
    }
    for i.inner in 0..16 {
      if likely(i.outer*16 + i.inner < n) {
        D[i.outer*16 + i.inner] = C[i.inner]*C[i.inner + 1]
      }
    }
  }
}
)");
}

TEST(ComputeAt, WorksInsideAReduction) {
  Te te;
  const TeExpr n = te.var("n");
  const TeExpr m = te.var("m");
  const TeTensor X = te.placeholder("X", {n, m});
  const TeTensor E =
      te.compute("E", "i j", {n, m}, [&](auto v) { return te.op(Operator::Exp, {X(v[0], v[1])}); });
  const TeExpr k = te.reduce_axis("k", te.integer(0), m);
  const TeTensor S = te.compute("S", "i", {n}, [&](auto v) { return te.sum(E(v[0], k), {k}); });
  te.arguments({X, S});
  te.split(S, "k", 8);
  te.compute_at(E, S, "k.outer");
  EXPECT_EQ(te.lowered(), R"(fn k(X: float32[n, m], S: float32[n]) {
  for i in 0..n {
    S[i] = 0.0
    for k.outer in 0..floordiv(m + 7, 8) {
      allocate E: float32[1, 8] scope(global)
      for j in 0..8 {
        if likely(k.outer*8 + j < m) {
          E[0, j] = exp(X[i, k.outer*8 + j])
        }
      }
      for k.inner in 0..8 {
        if likely(k.outer*8 + k.inner < m) {
          S[i] = S[i] + E[0, k.inner]
        }
      }
    }
  }
}
)");
}

TEST(ComputeAt, ComputesAWholeDimensionThatIsReadWhole) {
  Te te;
  const TeExpr n = te.var("n");
  const TeExpr m = te.var("m");
  const TeTensor X = te.placeholder("X", {n, m});
  const TeTensor E =
      te.compute("E", "i j", {n, m}, [&](auto v) { return te.op(Operator::Exp, {X(v[0], v[1])}); });
  const TeExpr k = te.reduce_axis("k", te.integer(0), m);
  const TeTensor S = te.compute("S", "i", {n}, [&](auto v) { return te.sum(E(v[0], k), {k}); });
  const TeTensor Y = te.compute("Y", "i j", {n, m}, [&](auto v) {
    return te.op(Operator::Div, {E(v[0], v[1]), S(v[0])});
  });
  te.arguments({X, Y});
  te.compute_at(S, Y, "i");
  te.compute_at(E, Y, "i");
  EXPECT_EQ(te.lowered(), R"(fn k(X: float32[n, m], Y: float32[n, m]) {
  for i in 0..n {
    allocate E: float32[1, m] scope(global)
    for j in 0..m {
      E[0, j] = exp(X[i, j])
    }
    allocate S: float32[1] scope(global)
    S[0] = 0.0
    for k in 0..m {
      S[0] = S[0] + E[0, k]
    }
    for j_1 in 0..m {
      Y[i, j_1] = E[0, j_1]/S[0]
    }
  }
}
)");
}

TEST(ComputeAt, ClampsPaddingThatABranchProtects) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(v[0]) * te.real(2); });
  const TeTensor C = te.compute("C", "i", {n}, [&](auto v) {
    const TeExpr inside = te.op(Operator::LessEqual, {te.integer(1), v[0]});
    return te.op(Operator::IfThenElse, {inside, B(v[0] - 1), te.real(0)});
  });
  te.arguments({A, C});
  te.split(C, "i", 8);
  te.compute_at(B, C, "i.outer");
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], C: float32[n]) {
  for i.outer in 0..floordiv(n + 7, 8) {
    allocate B: float32[8] scope(global)
    for i in 0..8 {
      if likely(0 <= i.outer*8 + i - 1) {
        if likely(i.outer*8 + i - 1 < n) {
          B[i] = A[i.outer*8 + i - 1]*2.0
        }
      }
    }
    for i.inner in 0..8 {
      if likely(i.outer*8 + i.inner < n) {
        C[i.outer*8 + i.inner] = if_then_else(1 <= i.outer*8 + i.inner, B[i.inner], 0.0)
      }
    }
  }
}
)");
}

TEST(ComputeAt, RejectsAReaderOutside) {
  Chain k;
  k.te.compute_at(k.B, k.D, "i");
  const Error error =
      expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
                   "cannot compute B at i of D: it is also read by C, which is outside of that "
                   "loop; compute C inside it too, or leave B at the root");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: compute_at(B, D.i)"});
}

TEST(ComputeAt, KeepsItsAxisFromASplit) {
  Chain k;
  k.te.compute_at(k.C, k.D, "i");
  k.te.split(k.D, "i", 4);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "C is computed at axis i; split it before compute_at");
}

TEST(ComputeAt, RejectsAVectorLoop) {
  Chain k;
  k.te.split(k.D, "i", 4);
  k.te.vectorize(k.D, "i.inner");
  k.te.compute_at(k.C, k.D, "i.inner");
  expect_error([&] { k.te.build(); }, ErrorKind::Unsupported,
               "cannot compute C at i.inner of D: i.inner is vectorized; choose a loop "
               "outside of it");
}

TEST(ComputeAt, RejectsAnArgument) {
  Stencils k;
  k.te.compute_at(k.C, k.B, "i");
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "C is an output and cannot be computed inside another stage");
}

TEST(ComputeAt, RejectsMovingACellOutOfItsScan) {
  TwoStageScan k;
  k.te.compute_at(k.s1, k.init, "i");
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "cannot compute s1 at i of s_init: it depends on the state of scan and must "
               "stay inside its time loop");
}

TEST(ComputeInline, PutsTheExpressionInItsReaders) {
  Chain k;
  k.te.compute_inline(k.B);
  k.te.compute_inline(k.C);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n + 4], D: float32[n]) {
  for i in 0..n {
    D[i] = (A[i] + A[i + 2] + (A[i + 1] + A[i + 3]))*(A[i + 1] + A[i + 3] + (A[i + 2] + A[i + 4]))
  }
}
)");
}

TEST(ComputeInline, KeepsTheChecksOfWhatItReplaces) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor B = te.compute("B", "i", {te.integer(8)}, [&](auto) { return te.real(1); });
  const TeTensor C = te.compute("C", "i", {n}, [&](auto v) { return B(v[0]); });
  te.arguments({C});
  te.compute_inline(B);
  EXPECT_EQ(te.lowered(), R"(fn k(C: float32[n]) {
  for i in 0..n {
    check i < 8 #0
    C[i] = 1.0
  }
}
#0: stage 1, tensor 0, dimension 0
)");
}

TEST(ComputeInline, RejectsAReduction) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n, n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor S = te.compute("S", "i", {n}, [&](auto v) { return te.sum(A(v[0], k), {k}); });
  const TeTensor Y = te.compute("Y", "i", {n}, [&](auto v) { return S(v[0]) * te.real(2); });
  te.arguments({A, Y});
  te.compute_inline(S);
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "S has a reduction and cannot be inlined; use compute_at");
}

TEST(ComputeInline, RejectsAnArgument) {
  AddOne k;
  k.te.compute_inline(k.B);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "B is an output and cannot be inlined");
}

TEST(ComputeInline, RejectsAnExpressionThatGrowsWithoutBounds) {
  Te te;
  const TeExpr n = te.var("n");
  TeTensor last = te.placeholder("A", {n});
  std::vector<TeTensor> all = {last};
  for (int i = 0; i < 24; ++i) {
    const TeTensor before = last;
    last = te.compute(fmt::format("s{}", i), "i", {n},
                      [&](auto v) { return before(v[0]) * before(v[0]); });
    if (i < 23) te.compute_inline(last);
  }
  te.arguments({all[0], last});
  const Error error =
      expect_error([&] { te.build(); }, ErrorKind::ResourceExhausted,
                   "the expression of s23 with all that is computed inline has more than 100000 "
                   "nodes; take compute_inline away from a stage that is read several times");
  EXPECT_EQ(error.reason(), "INLINE_LIMIT");
}

TEST(ComputeRoot, TakesAnAttachmentBack) {
  Chain k;
  k.te.compute_at(k.C, k.D, "i");
  k.te.compute_root(k.C);
  k.te.compute_inline(k.B);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n + 4], D: float32[n]) {
  allocate C: float32[n + 1] scope(global)
  for i in 0..n + 1 {
    C[i] = A[i] + A[i + 2] + (A[i + 1] + A[i + 3])
  }
  for i_1 in 0..n {
    D[i_1] = C[i_1]*C[i_1 + 1]
  }
}
)");
}

/// c.inner is 0 .. 3 where the loops that it is made of have iterations beyond the last one.
TEST(ComputeAt, IsOfOnePartWhereAnotherLoopGoesOnWithinIt) {
  const language::TextKernel text = kernel_of(R"(
kernel k(X: float32[8, 6]) -> (Y: float32[8, 6]) {
  M: float32[2]
  M[g] = X[g * 4, 0] + 1
  Y[c, x] = X[c, x] - M[c // 4]
  schedule cpu {
    split(Y.c, factor=4)
    fuse(Y.c.inner, Y.x)
    split(Y.c.inner.x.fused, factor=5)
    compute_at(M, Y.c.outer)
  }
})");
  const std::string loops =
      lowered_text(text.kernel, text.schedules.at(0).second, Target{}, {}, "");
  EXPECT_NE(loops.find("allocate M: float32[1] scope(global)"), std::string::npos) << loops;
  EXPECT_EQ(loops.find("for g in"), std::string::npos) << loops;
}

}  // namespace
}  // namespace kiln::testing
