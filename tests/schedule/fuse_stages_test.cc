#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/schedule/te.h"

namespace kiln::testing {
namespace {

/// X[n, m]; top[i] = max(X[i, k]); E = exp(X - top); total[i] = sum(E[i, k]); Y = E / total
struct Softmax {
  Te te;
  TeExpr n;
  TeExpr m;
  Softmax() : n(te.var("n")), m(te.var("m")) {}
  Softmax(int rows, int columns) : n(te.integer(rows)), m(te.integer(columns)) {}

  TeTensor X = te.placeholder("X", {n, m});
  TeExpr k = te.reduce_axis("k", te.integer(0), m);
  TeTensor top = te.compute("top", "i", {n},
                            [&](auto v) { return te.reduce(Combiner::Max, X(v[0], k), {k}); });
  TeTensor E = te.compute("E", "i j", {n, m}, [&](auto v) {
    return te.op(Operator::Exp, {X(v[0], v[1]) - top(v[0])});
  });
  TeExpr r = te.reduce_axis("r", te.integer(0), m);
  TeTensor total = te.compute("total", "i", {n}, [&](auto v) { return te.sum(E(v[0], r), {r}); });
  TeTensor Y = te.compute("Y", "i j", {n, m}, [&](auto v) {
    return te.op(Operator::Div, {E(v[0], v[1]), total(v[0])});
  });
};

TEST(FuseStages, ComputesASoftmaxRowByRow) {
  Softmax k;
  k.te.arguments({k.X, k.Y});
  EXPECT_EQ(k.te.automatic(), R"(fn k(X: float32[n, m], Y: float32[n, m]) {
  for i in 0..n parallel {
    allocate top: float32[1] scope(global)
    top[0] = -inf
    for k.outer in 0..floordiv(m + 31, 32) {
      for k.inner in 0..32 vectorize {
        if likely(k.outer*32 + k.inner < m) {
          top[0] = max(top[0], X[i, k.outer*32 + k.inner])
        }
      }
    }
    allocate E: float32[1, m] scope(global)
    for j.outer in 0..floordiv(m + 31, 32) {
      for j.inner in 0..32 vectorize {
        if likely(j.outer*32 + j.inner < m) {
          E[0, j.outer*32 + j.inner] = exp(X[i, j.outer*32 + j.inner] - top[0])
        }
      }
    }
    allocate total: float32[1] scope(global)
    total[0] = 0.0
    for r.outer in 0..floordiv(m + 31, 32) {
      for r.inner in 0..32 vectorize {
        if likely(r.outer*32 + r.inner < m) {
          total[0] = total[0] + E[0, r.outer*32 + r.inner]
        }
      }
    }
    for j.outer_1 in 0..floordiv(m + 31, 32) {
      for j.inner_1 in 0..32 vectorize {
        if likely(j.outer_1*32 + j.inner_1 < m) {
          Y[i, j.outer_1*32 + j.inner_1] = E[0, j.outer_1*32 + j.inner_1]/total[0]
        }
      }
    }
  }
}
)");
}

/// X[n, l, m]; M[i, j] = sum(X[i, k, j]) and V[i, j] = sum((X[i, k, j] - M[i, j])^2), along the
/// middle dimension: vectors of V go across j, so M is not computed inside a loop over j.
TEST(FuseStages, LeavesLoopsAloneAcrossWhichVectorsGo) {
  Te te;
  const TeExpr n = te.integer(64);
  const TeExpr l = te.integer(32);
  const TeExpr m = te.integer(48);
  const TeTensor X = te.placeholder("X", {n, l, m});
  const TeExpr k = te.reduce_axis("k", te.integer(0), l);
  const TeTensor M =
      te.compute("M", "i j", {n, m}, [&](auto v) { return te.sum(X(v[0], k, v[1]), {k}); });
  const TeExpr r = te.reduce_axis("r", te.integer(0), l);
  const TeTensor V = te.compute("V", "i j", {n, m}, [&](auto v) {
    const TeExpr distance = X(v[0], r, v[1]) - M(v[0], v[1]);
    return te.sum(distance * distance, {r});
  });
  te.arguments({X, V});
  const std::string loops = te.automatic();
  EXPECT_NE(loops.find("allocate M: float32[1, 48]"), std::string::npos) << loops;
}

TEST(FuseStages, ComputesShortRowsSideBySide) {
  Softmax k(100, 3);
  k.te.arguments({k.X, k.Y});
  EXPECT_EQ(k.te.automatic(), R"(fn k(X: float32[100, 3], Y: float32[100, 3]) {
  for i.outer in 0..7 {
    allocate top: float32[16] scope(global)
    for i in 0..16 vectorize {
      if likely(i.outer*16 + i < 100) {
        top[i] = -inf
      }
    }
    for k in 0..3 unroll {
      for i_1 in 0..16 vectorize {
        if likely(i.outer*16 + i_1 < 100) {
          top[i_1] = max(top[i_1], X[i.outer*16 + i_1, k])
        }
      }
    }
    allocate E: float32[16, 3] scope(global)
    for j in 0..3 unroll {
      for i_2 in 0..16 vectorize {
        if likely(i.outer*16 + i_2 < 100) {
          E[i_2, j] = exp(X[i.outer*16 + i_2, j] - top[i_2])
        }
      }
    }
    allocate total: float32[16] scope(global)
    for i_3 in 0..16 vectorize {
      if likely(i.outer*16 + i_3 < 100) {
        total[i_3] = 0.0
      }
    }
    for r in 0..3 unroll {
      for i_4 in 0..16 vectorize {
        if likely(i.outer*16 + i_4 < 100) {
          total[i_4] = total[i_4] + E[i_4, r]
        }
      }
    }
    for j_1 in 0..3 unroll {
      for i.inner in 0..16 vectorize {
        if likely(i.outer*16 + i.inner < 100) {
          Y[i.outer*16 + i.inner, j_1] = E[i.inner, j_1]/total[i.inner]
        }
      }
    }
  }
}
)");
}

/// X[rows, columns]; top[i] = max(X[i, k]); Y[i] = 1 - sum(X[i, r] - top[i])
std::string sums_inside(int rows, int columns) {
  Te te;
  const TeTensor X = te.placeholder("X", {te.integer(rows), te.integer(columns)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(columns));
  const TeTensor top = te.compute("top", "i", {te.integer(rows)}, [&](auto v) {
    return te.reduce(Combiner::Max, X(v[0], k), {k});
  });
  const TeExpr r = te.reduce_axis("r", te.integer(0), te.integer(columns));
  const TeTensor Y = te.compute("Y", "i", {te.integer(rows)}, [&](auto v) {
    return te.real(1) - te.sum(X(v[0], r) - top(v[0]), {r});
  });
  te.arguments({X, Y});
  return te.automatic();
}

TEST(FuseStages, ComputesShortRowsOfSumsInsideOfExpressionsSideBySide) {
  EXPECT_EQ(sums_inside(96, 3), R"(fn k(X: float32[96, 3], Y: float32[96]) {
  for i.outer in 0..6 {
    allocate top: float32[16] scope(global)
    for i in 0..16 vectorize {
      top[i] = -inf
    }
    for k in 0..3 unroll {
      for i_1 in 0..16 vectorize {
        top[i_1] = max(top[i_1], X[i.outer*16 + i_1, k])
      }
    }
    allocate Y.sum: float32[16] scope(global)
    for i_2 in 0..16 vectorize {
      Y.sum[i_2] = 0.0
    }
    for r in 0..3 unroll {
      for i_3 in 0..16 vectorize {
        Y.sum[i_3] = Y.sum[i_3] + (X[i.outer*16 + i_3, r] - top[i_3])
      }
    }
    for i.inner in 0..16 vectorize {
      Y[i.outer*16 + i.inner] = 1.0 - Y.sum[i.inner]
    }
  }
}
)");
}

TEST(FuseStages, LeavesSumsOfLongOrFewRowsInsideOfExpressions) {
  for (const auto& [rows, columns] : {std::pair(100, 16), {63, 3}}) {
    const std::string text = sums_inside(rows, columns);
    EXPECT_NE(text.find(fmt::format("for i in 0..{} {{", rows)), std::string::npos) << text;
    EXPECT_NE(text.find("allocate Y.sum: float32[1]"), std::string::npos) << text;
  }
}

TEST(FuseStages, ComputesRowsThatFillAVectorOneByOne) {
  Softmax k(100, 16);
  k.te.arguments({k.X, k.Y});
  EXPECT_NE(k.te.automatic().find("for i in 0..100 {"), std::string::npos);
}

TEST(FuseStages, ComputesFewShortRowsOneByOne) {
  Softmax k(63, 3);
  k.te.arguments({k.X, k.Y});
  EXPECT_NE(k.te.automatic().find("for i in 0..63 {"), std::string::npos);
}

TEST(FuseStages, ComputesAnArgumentWhole) {
  Softmax k;
  k.te.arguments({k.X, k.E, k.Y});
  const std::string text = k.te.automatic();
  EXPECT_NE(text.find("fn k(X: float32[n, m], E: float32[n, m], Y: float32[n, m])"),
            std::string::npos);
  EXPECT_EQ(text.find("allocate E"), std::string::npos);
}

TEST(FuseStages, LeavesAStageWithStepsWhereItIs) {
  Softmax k;
  k.te.arguments({k.X, k.Y});
  k.te.split(k.total, "r", 8);
  // Its exponentials are then those of all rows.
  EXPECT_NE(k.te.automatic().find("allocate total: float32[n]"), std::string::npos);
  EXPECT_NE(k.te.automatic().find("allocate E: float32[n, m]"), std::string::npos);
}

TEST(FuseStages, TakesInWhatIsReadOnce) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(v[0]) + te.real(1); });
  const TeTensor C = te.compute("C", "i", {n}, [&](auto v) { return B(v[0]) * B(v[0]); });
  const TeTensor D = te.compute("D", "i", {n}, [&](auto v) { return C(v[0]) + te.real(2); });
  te.arguments({A, D});
  const std::string text = te.automatic();
  EXPECT_EQ(text.find("allocate C"), std::string::npos) << text;
  // The product would compute it twice.
  EXPECT_NE(text.find("allocate B"), std::string::npos) << text;
}

TEST(FuseStages, TakesNothingIntoALoopThatReadsItAgain) {
  Te te;
  const TeExpr n = te.integer(64);
  const TeTensor A = te.placeholder("A", {n, n});
  const TeTensor B =
      te.compute("B", "i j", {n, n}, [&](auto v) { return te.op(Operator::Exp, {A(v[0], v[1])}); });
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor C =
      te.compute("C", "i j", {n, n}, [&](auto v) { return te.sum(B(v[0], k) * A(k, v[1]), {k}); });
  te.arguments({A, C});
  EXPECT_NE(te.automatic().find("allocate B: float32[64, 64]"), std::string::npos);
}

/// A sum over rows has its vectors along columns, so no stage can go into its loop over these.
TEST(FuseStages, LeavesColumnsOfAReductionToItsVectors) {
  Te te;
  const TeExpr n = te.integer(16);
  const TeExpr m = te.integer(4);
  const TeTensor X = te.placeholder("X", {n, m, n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), m);
  const TeTensor T =
      te.compute("T", "i j", {n, n}, [&](auto v) { return te.sum(X(v[0], k, v[1]), {k}); });
  const TeTensor S = te.compute("S", "i k j", {n, m, n}, [&](auto v) {
    return (X(v[0], v[1], v[2]) - T(v[0], v[2])) * (X(v[0], v[1], v[2]) - T(v[0], v[2]));
  });
  const TeExpr r = te.reduce_axis("r", te.integer(0), m);
  const TeTensor R =
      te.compute("R", "i j", {n, n}, [&](auto v) { return te.sum(S(v[0], r, v[1]), {r}); });
  te.arguments({X, R});
  const std::string text = te.automatic();
  EXPECT_NE(text.find("allocate T: float32[1, 16]"), std::string::npos) << text;
  EXPECT_NE(text.find("for j.inner in 0..16 vectorize"), std::string::npos) << text;
}

}  // namespace
}  // namespace kiln::testing
