#pragma once

#include "tests/schedule/te.h"

namespace kiln::testing {

/// B[i, j] = A[i, j] + 1
struct AddOne {
  Te te;
  TeExpr n = te.var("n");
  TeExpr m = te.var("m");
  TeTensor A = te.placeholder("A", {n, m});
  TeTensor B = te.compute("B", "i j", {n, m}, [&](auto v) { return A(v[0], v[1]) + te.real(1); });
  AddOne() { te.arguments({A, B}); }
};

/// B[i] = sum[k < m](A[i, k])
struct RowSum {
  Te te;
  TeExpr n = te.var("n");
  TeExpr m = te.var("m");
  TeTensor A = te.placeholder("A", {n, m});
  TeExpr k = te.reduce_axis("k", te.integer(0), m);
  TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return te.sum(A(v[0], k), {k}); });
  RowSum() { te.arguments({A, B}); }
};

/// C[i, j] = sum[k < l](A[i, k] * B[k, j]); sizes are symbolic where 0.
struct Matmul {
  explicit Matmul(int64_t rows = 0, int64_t columns = 0, int64_t depth = 0)
      : n(size("n", rows)), m(size("m", columns)), l(size("l", depth)) {
    A = te.placeholder("A", {n, l});
    B = te.placeholder("B", {l, m});
    const TeExpr k = te.reduce_axis("k", te.integer(0), l);
    C = te.compute("C", "i j", {n, m},
                   [&](auto v) { return te.sum(A(v[0], k) * B(k, v[1]), {k}); });
    te.arguments({A, B, C});
  }

  Te te;
  TeExpr n;
  TeExpr m;
  TeExpr l;
  TeTensor A;
  TeTensor B;
  TeTensor C;

 private:
  TeExpr size(const char* name, int64_t value) {
    return value == 0 ? te.var(name) : te.integer(value);
  }
};

/// The running sum over rows: one state, one stage.
struct Cumsum {
  Te te;
  TeExpr m = te.var("m");
  TeExpr n = te.var("n");
  TeTensor X = te.placeholder("X", {m, n});
  TeTensor state = te.placeholder("s_state", {m, n});
  TeTensor init = te.compute("s_init", "_ i", {te.integer(1), n},
                             [&](auto v) { return X(te.integer(0), v[1]); });
  TeTensor update = te.compute("s_update", "t i", {m, n},
                               [&](auto v) { return state(v[0] - 1, v[1]) + X(v[0], v[1]); });
  TeTensor scan = te.scan("scan", {init}, {update}, {state}, m)[0];
  Cumsum() { te.arguments({X, scan}); }
};

/// A scan whose cell has two stages.
struct TwoStageScan {
  Te te;
  TeExpr m = te.var("m");
  TeExpr n = te.var("n");
  TeTensor X = te.placeholder("X", {m, n});
  TeTensor state = te.placeholder("s_state", {m, n});
  TeTensor init = te.compute("s_init", "_ i", {te.integer(1), n},
                             [&](auto v) { return X(te.integer(0), v[1]); });
  TeTensor s1 =
      te.compute("s1", "t i", {m, n}, [&](auto v) { return state(v[0] - 1, v[1]) * te.real(2); });
  TeTensor s2 =
      te.compute("s2", "t i", {m, n}, [&](auto v) { return s1(v[0], v[1]) + X(v[0], v[1]); });
  TeTensor scan = te.scan("scan", {init}, {s2}, {state}, m)[0];
  TwoStageScan() { te.arguments({X, scan}); }
};

/// A scan of two states of different widths; the second reads the first.
struct TwoStateScan {
  Te te;
  TeExpr m = te.var("m");
  TeExpr n = te.var("n");
  TeExpr l = te.var("l");
  TeTensor X = te.placeholder("X", {m, n});
  TeTensor state1 = te.placeholder("s_state1", {m, n});
  TeTensor state2 = te.placeholder("s_state2", {m, l});
  TeTensor init1 = te.compute("s_init1", "_ i", {te.integer(1), n},
                              [&](auto v) { return X(te.integer(0), v[1]); });
  TeTensor init2 =
      te.compute("s_init2", "_ i", {te.integer(1), l}, [&](auto) { return te.real(0); });
  TeTensor update1 = te.compute("s_update1", "t i", {m, n},
                                [&](auto v) { return state1(v[0] - 1, v[1]) + X(v[0], v[1]); });
  TeTensor update2 = te.compute("s_update2", "t i", {m, l}, [&](auto v) {
    return state2(v[0] - 1, v[1]) + state1(v[0] - 1, te.integer(0));
  });
  std::vector<TeTensor> scans =
      te.scan("scan", {init1, init2}, {update1, update2}, {state1, state2}, m);
  TwoStateScan() { te.arguments({X, scans[0], scans[1]}); }
};

/// C[i] = B[i] + B[i + 1] + B[i + 2], B[i] = A[i] + A[i + 1]: a stencil of a stencil over 100
/// elements.
struct Stencils {
  Te te;
  TeTensor A = te.placeholder("A", {te.integer(103)});
  TeTensor B =
      te.compute("B", "i", {te.integer(102)}, [&](auto v) { return A(v[0]) + A(v[0] + 1); });
  TeTensor C = te.compute("C", "i", {te.integer(100)},
                          [&](auto v) { return B(v[0]) + B(v[0] + 1) + B(v[0] + 2); });
  Stencils() { te.arguments({A, C}); }
};

}  // namespace kiln::testing
