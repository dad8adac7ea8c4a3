#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(BuildLoops, HasOneLoopForEachAxis) {
  AddOne k;
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i in 0..n {
    for j in 0..m {
      B[i, j] = A[i, j] + 1.0
    }
  }
}
)");
}

TEST(BuildLoops, StartsAReductionJustOutsideItsLoops) {
  RowSum k;
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n]) {
  for i in 0..n {
    B[i] = 0.0
    for k in 0..m {
      B[i] = B[i] + A[i, k]
    }
  }
}
)");
}

TEST(BuildLoops, StoresScalarsWithoutIndices) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor S = te.compute("S", "", {}, [&](auto) { return te.sum(A(k), {k}); });
  te.arguments({A, S});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], S: float32[]) {
  S[] = 0.0
  for k in 0..n {
    S[] = S[] + A[k]
  }
}
)");
}

TEST(BuildLoops, ComputesSeveralOutputsInOneNest) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const std::vector<TeTensor> both = te.compute_all("both", "i", {n}, [&](auto v) {
    return std::vector<TeExpr>{A(v[0]) + te.real(1), A(v[0]) * te.real(2)};
  });
  te.arguments({A, both[0], both[1]});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], both.v0: float32[n], both.v1: float32[n]) {
  for i in 0..n {
    both.v0[i] = A[i] + 1.0
    both.v1[i] = A[i]*2.0
  }
}
)");
}

TEST(BuildLoops, AllocatesIntermediatesAndDropsUnusedStages) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(v[0]) + te.real(1); });
  te.compute("unused", "i", {n}, [&](auto v) { return B(v[0]); });
  const TeTensor C = te.compute("C", "i", {n}, [&](auto v) { return B(v[0]) * te.real(2); });
  te.arguments({A, C});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], C: float32[n]) {
  allocate B: float32[n] scope(global)
  for i in 0..n {
    B[i] = A[i] + 1.0
  }
  for i_1 in 0..n {
    C[i_1] = B[i_1]*2.0
  }
}
)");
}

TEST(BuildLoops, LetsTheExtentOfAReductionDependOnALoop) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  // Only the prefix is summed.
  TeTensor B = te.compute("B", "i", {n}, [&](auto v) {
    const TeExpr k = te.reduce_axis("k", te.integer(0), v[0] + 1);
    return te.sum(A(k), {k});
  });
  te.arguments({A, B});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], B: float32[n]) {
  for i in 0..n {
    B[i] = 0.0
    for k in 0..i + 1 {
      B[i] = B[i] + A[k]
    }
  }
}
)");
}

TEST(BuildLoops, GivesAReductionInsideAnExpressionItsOwnStage) {
  Te te;
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor Y = te.compute("Y", "i j", {m, n}, [&](auto v) {
    const TeExpr k = te.reduce_axis("k", te.integer(0), n);
    return te.op(Operator::Div, {X(v[0], v[1]), te.sum(X(v[0], k), {k})});
  });
  te.arguments({X, Y});
  EXPECT_EQ(te.lowered(), R"(fn k(X: float32[m, n], Y: float32[m, n]) {
  for i in 0..m {
    allocate Y.sum: float32[1] scope(global)
    Y.sum[0] = 0.0
    for k in 0..n {
      Y.sum[0] = Y.sum[0] + X[i, k]
    }
    for j in 0..n {
      Y[i, j] = X[i, j]/Y.sum[0]
    }
  }
}
)");
}

TEST(BuildLoops, ChecksAReadThatDependsOnData) {
  Te te;
  const TeExpr n = te.var("n");
  const TeExpr m = te.var("m");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor I = te.placeholder("I", {m}, DType::Int32);
  const TeTensor B =
      te.compute("B", "i", {m}, [&](auto v) { return A(te.cast(DType::Int64, I(v[0]))); });
  te.arguments({A, I, B});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], I: int32[m], B: float32[m]) {
  for i in 0..m {
    check int64(I[i]) < n #0
    B[i] = A[int64(I[i])]
  }
}
#0: stage 2, tensor 0, dimension 0
)");
}

TEST(BuildLoops, ChecksAReadOfATensorOfAnotherSize) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {te.integer(8)});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(v[0]); });
  te.arguments({A, B});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[8], B: float32[n]) {
  for i in 0..n {
    check i < 8 #0
    B[i] = A[i]
  }
}
#0: stage 1, tensor 0, dimension 0
)");
}

TEST(BuildLoops, NeedsNoCheckInABranchThatIsNotTaken) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n + 2}, [&](auto v) {
    const TeExpr inside = te.op(Operator::And, {te.op(Operator::LessEqual, {te.integer(1), v[0]}),
                                                te.op(Operator::Less, {v[0], n + 1})});
    return te.op(Operator::IfThenElse, {inside, A(v[0] - 1), te.real(0)});
  });
  te.arguments({A, B});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[n], B: float32[n + 2]) {
  for i in 0..n + 2 {
    B[i] = if_then_else(1 <= i && i < n + 1, A[i - 1], 0.0)
  }
}
)");
}

TEST(BuildLoops, RefusesAReadInASelectThatGoesOutside) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) {
    const TeExpr first = te.op(Operator::LessEqual, {te.integer(1), v[0]});
    return te.op(Operator::Select, {first, A(v[0] - 1), te.real(0)});
  });
  te.arguments({A, B});
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "B reads A[i - 1], whose index 0 reaches -1, but A has 0 to n - 1 there; guard the "
               "read with if_then_else or change the shape");
}

TEST(BuildLoops, RefusesAReadThatIsAlwaysOutside) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {n});
  const TeTensor Y = te.compute("Y", "i", {n}, [&](auto v) { return X(v[0] + 1); });
  te.arguments({X, Y});
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "Y reads X[i + 1], whose index 0 reaches n, but X has 0 to n - 1 there; guard "
               "the read with if_then_else or change the shape");
}

TEST(BuildLoops, TakesAThousandStages) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  TeTensor last = A;
  for (int i = 0; i < 1000; ++i) {
    const TeTensor before = last;
    last = te.compute("s", "i", {n}, [&](auto v) { return before(v[0]) + te.real(1); });
  }
  te.arguments({A, last});
  EXPECT_FALSE(te.automatic().empty());
}

TEST(BuildLoops, RefusesAReductionInABranchThatProtectsIt) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {n});
  const TeTensor Y = te.compute("Y", "i", {n}, [&](auto v) {
    const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(2));
    const TeExpr inside = te.op(Operator::Less, {v[0] + 1, n});
    return te.op(Operator::IfThenElse, {inside, te.sum(X(v[0] + k), {k}), te.real(0)});
  });
  te.arguments({X, Y});
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "reductions are only allowed at the top level of compute: the one in an "
               "if_then_else of Y reads X, which is not proved to be in bounds without the "
               "condition; put the condition inside the reduction");
}

}  // namespace
}  // namespace kiln::testing
