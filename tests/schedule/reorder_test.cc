#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(Reorder, RepeatsDataLoopsInsideAReductionForItsStart) {
  Matmul k;
  k.te.reorder(k.C, {"k", "i", "j"});
  EXPECT_EQ(k.te.lowered(), R"(fn k[n, m, l](A: float32[n, l], B: float32[l, m], C: float32[n, m]) {
  for i in 0..n {
    for j in 0..m {
      C[i, j] = 0.0
    }
  }
  for k in 0..l {
    for i_1 in 0..n {
      for j_1 in 0..m {
        C[i_1, j_1] = C[i_1, j_1] + A[i_1, k]*B[k, j_1]
      }
    }
  }
}
)");
}

TEST(Reorder, MovesOnlyTheAxesItNames) {
  Matmul k;
  k.te.reorder(k.C, {"k", "i"});
  EXPECT_EQ(k.te.lowered(), R"(fn k[n, m, l](A: float32[n, l], B: float32[l, m], C: float32[n, m]) {
  for j in 0..m {
    for i in 0..n {
      C[i, j] = 0.0
    }
  }
  for k in 0..l {
    for j_1 in 0..m {
      for i_1 in 0..n {
        C[i_1, j_1] = C[i_1, j_1] + A[i_1, k]*B[k, j_1]
      }
    }
  }
}
)");
}

TEST(Reorder, RejectsAnAxisNamedTwice) {
  Matmul k;
  k.te.reorder(k.C, {"k", "k"});
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument, "reorder names axis k twice");
}

TEST(Reorder, RejectsALoopOutsideOfTheOneItsExtentDependsOn) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) {
    const TeExpr k = te.reduce_axis("k", te.integer(0), v[0] + 1);
    return te.sum(A(k), {k});
  });
  te.arguments({A, B});
  te.reorder(B, {"k", "i"});
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "the extent of a loop of B depends on i, whose loop stands inside of it; "
               "reorder them");
}

TEST(Tile, PutsInnerLoopsInside) {
  AddOne k;
  k.te.tile(k.B, "i", "j", 4, 8);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i.outer in 0..floordiv(n + 3, 4) {
    for j.outer in 0..floordiv(m + 7, 8) {
      for i.inner in 0..4 {
        if likely(i.outer*4 + i.inner < n) {
          for j.inner in 0..8 {
            if likely(j.outer*8 + j.inner < m) {
              B[i.outer*4 + i.inner, j.outer*8 + j.inner] = A[i.outer*4 + i.inner, j.outer*8 + j.inner] + 1.0
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Tile, RejectsAFactorOfZero) {
  AddOne k;
  k.te.tile(k.B, "i", "j", 4, 0);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "tile(i, j, 4, 0): the factors must be at least 1");
}

TEST(Matmul, ClassicSchedule) {
  Matmul k(500, 1000, 700);
  k.te.split(k.C, "i", 32);
  k.te.split(k.C, "j", 32);
  k.te.split(k.C, "k", 4);
  k.te.reorder(k.C, {"i.outer", "j.outer", "k.outer", "i.inner", "k.inner", "j.inner"});
  k.te.vectorize(k.C, "j.inner");
  k.te.parallel(k.C, "i.outer");
  EXPECT_EQ(k.te.lowered(),
            R"(fn k(A: float32[500, 700], B: float32[700, 1000], C: float32[500, 1000]) {
  for i.outer in 0..16 parallel {
    for j.outer in 0..32 {
      for i.inner in 0..32 {
        if likely(i.outer*32 + i.inner < 500) {
          for j.inner in 0..32 vectorize {
            if likely(j.outer*32 + j.inner < 1000) {
              C[i.outer*32 + i.inner, j.outer*32 + j.inner] = 0.0
            }
          }
        }
      }
      for k.outer in 0..175 {
        for i.inner_1 in 0..32 {
          if likely(i.outer*32 + i.inner_1 < 500) {
            for k.inner in 0..4 {
              for j.inner_1 in 0..32 vectorize {
                if likely(j.outer*32 + j.inner_1 < 1000) {
                  C[i.outer*32 + i.inner_1, j.outer*32 + j.inner_1] = C[i.outer*32 + i.inner_1, j.outer*32 + j.inner_1] + A[i.outer*32 + i.inner_1, k.outer*4 + k.inner]*B[k.outer*4 + k.inner, j.outer*32 + j.inner_1]
                }
              }
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Matmul, VectorsAlongTheReduction) {
  Te te;
  const auto fixed = [&](int64_t value) { return te.integer(value); };
  const TeTensor A = te.placeholder("A", {fixed(32), fixed(128), fixed(64)});
  const TeTensor B = te.placeholder("B", {fixed(32), fixed(64), fixed(128)});
  const TeExpr k = te.reduce_axis("k", fixed(0), fixed(64));
  const TeTensor C = te.compute("C", "b i j", {fixed(32), fixed(128), fixed(128)}, [&](auto v) {
    return te.sum(A(v[0], v[1], k) * B(v[0], k, v[2]), {k});
  });
  te.arguments({A, B, C});
  for (const char* axis : {"b", "i", "j", "k"})
    te.split(C, axis, 16);
  te.reorder(
      C, {"b.outer", "i.outer", "j.outer", "k.outer", "b.inner", "i.inner", "j.inner", "k.inner"});
  te.vectorize(C, "k.inner");
  te.parallel(C, "b.outer");
  EXPECT_EQ(te.lowered(),
            R"(fn k(A: float32[32, 128, 64], B: float32[32, 64, 128], C: float32[32, 128, 128]) {
  for b.outer in 0..2 parallel {
    for i.outer in 0..8 {
      for j.outer in 0..8 {
        for b.inner in 0..16 {
          for i.inner in 0..16 {
            for j.inner in 0..16 {
              C[b.outer*16 + b.inner, i.outer*16 + i.inner, j.outer*16 + j.inner] = 0.0
            }
          }
        }
        for k.outer in 0..4 {
          for b.inner_1 in 0..16 {
            for i.inner_1 in 0..16 {
              for j.inner_1 in 0..16 {
                for k.inner in 0..16 vectorize {
                  C[b.outer*16 + b.inner_1, i.outer*16 + i.inner_1, j.outer*16 + j.inner_1] = C[b.outer*16 + b.inner_1, i.outer*16 + i.inner_1, j.outer*16 + j.inner_1] + A[b.outer*16 + b.inner_1, i.outer*16 + i.inner_1, k.outer*16 + k.inner]*B[b.outer*16 + b.inner_1, k.outer*16 + k.inner, j.outer*16 + j.inner_1]
                }
              }
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Convolution, VectorsOutsideOfTheReduction) {
  Te te;
  const auto fixed = [&](int64_t value) { return te.integer(value); };
  const TeTensor X = te.placeholder("X", {fixed(1), fixed(3), fixed(32), fixed(32)});
  const TeTensor F = te.placeholder("F", {fixed(16), fixed(3), fixed(3), fixed(3)});
  const TeExpr rc = te.reduce_axis("rc", fixed(0), fixed(3));
  const TeExpr rr = te.reduce_axis("rr", fixed(0), fixed(3));
  const TeExpr rs = te.reduce_axis("rs", fixed(0), fixed(3));
  const TeTensor Y =
      te.compute("Y", "n m h w", {fixed(1), fixed(16), fixed(30), fixed(30)}, [&](auto v) {
        return te.sum(X(v[0], rc, v[2] + rr, v[3] + rs) * F(v[1], rc, rr, rs), {rc, rr, rs});
      });
  te.arguments({X, F, Y});
  te.split(Y, "h", 16);
  te.split(Y, "w", 16);
  te.reorder(Y, {"n", "m", "h.outer", "w.outer", "h.inner", "w.inner", "rc", "rr", "rs"});
  te.vectorize(Y, "w.inner");
  te.parallel(Y, "h.outer");
  EXPECT_EQ(te.lowered(),
            R"(fn k(X: float32[1, 3, 32, 32], F: float32[16, 3, 3, 3], Y: float32[1, 16, 30, 30]) {
  for m in 0..16 {
    for h.outer in 0..2 parallel {
      for w.outer in 0..2 {
        for h.inner in 0..16 {
          if likely(h.outer*16 + h.inner < 30) {
            for w.inner in 0..16 vectorize {
              if likely(w.outer*16 + w.inner < 30) {
                Y[0, m, h.outer*16 + h.inner, w.outer*16 + w.inner] = 0.0
                for rc in 0..3 {
                  for rr in 0..3 {
                    for rs in 0..3 {
                      Y[0, m, h.outer*16 + h.inner, w.outer*16 + w.inner] = Y[0, m, h.outer*16 + h.inner, w.outer*16 + w.inner] + X[0, rc, h.outer*16 + h.inner + rr, w.outer*16 + w.inner + rs]*F[m, rc, rr, rs]
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
)");
}

}  // namespace
}  // namespace kiln::testing
