#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"

namespace kiln::testing {
namespace {

/// S[i, t] = S[i, t - 1] + X[i, t]: running sums along rows.
struct RowCumsum {
  Te te;
  TeExpr n = te.var("n");
  TeExpr m = te.var("m");
  TeTensor X = te.placeholder("X", {n, m});
  TeTensor state = te.placeholder("s_state", {n, m});
  TeTensor init = te.compute("s_init", "i _", {n, te.integer(1)},
                             [&](auto v) { return X(v[0], te.integer(0)); });
  TeTensor update = te.compute("s_update", "i t", {n, m},
                               [&](auto v) { return state(v[0], v[1] - 1) + X(v[0], v[1]); });
  TeTensor scan = te.scan("scan", {init}, {update}, {state}, m, Te::Time{.dimension = 1})[0];
  RowCumsum() { te.arguments({X, scan}); }
};

TEST(ScanTime, MayBeTheLastDimension) {
  RowCumsum k;
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[n, m], scan: float32[n, m]) {
  for i in 0..n {
    scan[i, 0] = X[i, 0]
  }
  for scan.idx in 0..m - 1 {
    for i_1 in 0..n {
      scan[i_1, scan.idx + 1] = scan[i_1, scan.idx] + X[i_1, scan.idx + 1]
    }
  }
}
)");
}

TEST(ScanTime, RunsInsideGroupsOfRowsOnAllCores) {
  RowCumsum k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(X: float32[n, m], scan: float32[n, m]) {
  for i.outer in 0..floordiv(n + 3, 4) parallel {
    for i.inner in 0..4 unroll {
      if likely(i.outer*4 + i.inner < n) {
        scan[i.outer*4 + i.inner, 0] = X[i.outer*4 + i.inner, 0]
      }
    }
    for scan.idx in 0..m - 1 {
      for i.inner_1 in 0..4 unroll {
        if likely(i.outer*4 + i.inner_1 < n) {
          scan[i.outer*4 + i.inner_1, scan.idx + 1] = scan[i.outer*4 + i.inner_1, scan.idx] + X[i.outer*4 + i.inner_1, scan.idx + 1]
        }
      }
    }
  }
}
)");
}

TEST(ScanTime, CountsInTheWorkOfAScan) {
  Te te;
  const TeExpr n = te.integer(1024);
  const TeExpr m = te.integer(512);
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor state = te.placeholder("s_state", {m, n});
  const TeTensor init = te.compute("s_init", "_ i", {te.integer(1), n},
                                   [&](auto v) { return X(te.integer(0), v[1]); });
  const TeTensor update = te.compute("s_update", "t i", {m, n},
                                     [&](auto v) { return state(v[0] - 1, v[1]) + X(v[0], v[1]); });
  te.arguments({X, te.scan("scan", {init}, {update}, {state}, m)[0]});
  EXPECT_NE(te.automatic().find(" parallel {"), std::string::npos) << te.automatic();
}

TEST(ScanTime, RunsInsideTheThreadOfItsRow) {
  RowCumsum k;
  EXPECT_EQ(k.te.automatic(TargetKind::Cuda), R"(fn k(X: float32[n, m], scan: float32[n, m]) {
  for blockIdx.x in 0..floordiv(n + 255, 256) bind {
    for threadIdx.x in 0..256 bind {
      if likely(blockIdx.x*256 + threadIdx.x < n) {
        scan[blockIdx.x*256 + threadIdx.x, 0] = X[blockIdx.x*256 + threadIdx.x, 0]
      }
      for scan.idx in 0..m - 1 {
        if likely(blockIdx.x*256 + threadIdx.x < n) {
          scan[blockIdx.x*256 + threadIdx.x, scan.idx + 1] = scan[blockIdx.x*256 + threadIdx.x, scan.idx] + X[blockIdx.x*256 + threadIdx.x, scan.idx + 1]
        }
      }
    }
  }
}
)");
}

TEST(ScanTime, OfThreadsEndsWhereItIsSplitUnevenly) {
  RowCumsum k;
  k.te.split(k.scan, "scan.idx", 4);
  const std::string text = k.te.automatic(TargetKind::Cuda);
  const size_t guard = text.find("if likely(scan.idx.outer*4 + scan.idx.inner < m - 1) {");
  EXPECT_LT(guard, text.find("scan[blockIdx.x*256 + threadIdx.x, scan.idx.outer*4"));
}

/// S[t, i] = S[t + 1, i] * S[t + 2, i] + X[t, i], from the last two rows of X.
struct Backward {
  Te te;
  TeExpr m = te.var("m");
  TeExpr n = te.var("n");
  TeTensor X = te.placeholder("X", {m, n});
  TeTensor state = te.placeholder("s_state", {m, n});
  TeTensor init = te.compute("s_init", "z i", {te.integer(2), n},
                             [&](auto v) { return X(m - 2 + v[0], v[1]); });
  TeTensor update = te.compute("s_update", "t i", {m, n}, [&](auto v) {
    return state(v[0] + 1, v[1]) * state(v[0] + 2, v[1]) + X(v[0], v[1]);
  });
  TeTensor scan =
      te.scan("scan", {init}, {update}, {state}, m, Te::Time{.initial = 2, .reverse = true})[0];
  Backward() { te.arguments({X, scan}); }
};

TEST(ScanTime, MayRunBackwards) {
  Backward k;
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for z in 0..2 {
    for i in 0..n {
      scan[z + m - 2, i] = X[m + z - 2, i]
    }
  }
  for scan.idx in 0..m - 2 {
    for i_1 in 0..n {
      scan[m - scan.idx - 3, i_1] = scan[m - scan.idx - 2, i_1]*scan[m - scan.idx - 1, i_1] + X[m - scan.idx - 3, i_1]
    }
  }
}
)");
}

TEST(ScanTime, KeepsSeveralInitialStepsInsideSharedLoops) {
  Backward k;
  k.te.parallel(k.init, "i");
  k.te.parallel(k.update, "i");
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i in 0..n parallel {
    for z in 0..2 {
      scan[z + m - 2, i] = X[m + z - 2, i]
    }
    for scan.idx in 0..m - 2 {
      scan[m - scan.idx - 3, i] = scan[m - scan.idx - 2, i]*scan[m - scan.idx - 1, i] + X[m - scan.idx - 3, i]
    }
  }
}
)");
}

/// A running sum of which `read` says what the kernel's output needs.
std::string lowered_with_reader(const std::function<TeExpr(Cumsum&, std::vector<TeExpr>)>& read) {
  Cumsum k;
  const TeTensor Y = k.te.compute("Y", "j", {k.n}, [&](auto v) { return read(k, v); });
  k.te.kernel.definition.parameters = {k.X.id, Y.id};
  return k.te.lowered();
}

TEST(ScanTime, KeepsTheStepsThatAreReadOnly) {
  const auto last = [](Cumsum& k, auto v) { return k.scan(k.m - 1, v[0]); };
  EXPECT_EQ(lowered_with_reader(last), R"(fn k(X: float32[m, n], Y: float32[n]) {
  allocate scan: float32[2, n] scope(global)
  for i in 0..n {
    scan[0, i] = X[0, i]
  }
  for scan.idx in 0..m - 1 {
    for i_1 in 0..n {
      scan[floormod(scan.idx + 1, 2), i_1] = scan[floormod(scan.idx, 2), i_1] + X[scan.idx + 1, i_1]
    }
  }
  for j in 0..n {
    Y[j] = scan[floormod(m + 1, 2), j]
  }
}
)");
}

TEST(ScanTime, KeepsAllStepsWhereAnEarlierOneIsRead) {
  const auto first = [](Cumsum& k, auto v) { return k.scan(k.te.integer(0), v[0]); };
  const auto third_last = [](Cumsum& k, auto v) {
    return k.scan(k.m - 1, v[0]) + k.scan(k.m - 3, v[0]);
  };
  for (const std::string& text : {lowered_with_reader(first), lowered_with_reader(third_last)}) {
    EXPECT_NE(text.find("allocate scan: float32[m, n]"), std::string::npos) << text;
  }
}

TEST(ScanTime, KeepsTheFirstStepsOfOneThatRunsBackwards) {
  Backward k;
  const TeTensor Y =
      k.te.compute("Y", "j", {k.n}, [&](auto v) { return k.scan(k.te.integer(1), v[0]); });
  k.te.kernel.definition.parameters = {k.X.id, Y.id};
  const std::string text = k.te.lowered();
  EXPECT_NE(text.find("allocate scan: float32[3, n]"), std::string::npos) << text;
}

TEST(ScanTime, IsUnrolledInPartsOfConstantSize) {
  Cumsum k;
  k.te.split(k.scan, "scan.idx", 4);
  k.te.unroll(k.scan, "scan.idx.inner");
  EXPECT_NE(k.te.lowered().find("for scan.idx.inner in 0..4 unroll {"), std::string::npos);
}

}  // namespace
}  // namespace kiln::testing
