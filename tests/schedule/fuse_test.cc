#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(Fuse, DividesTheFusedIndex) {
  AddOne k;
  k.te.fuse(k.B, {"i", "j"});
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i.j.fused in 0..n*m {
    B[floordiv(i.j.fused, m), floormod(i.j.fused, m)] = A[floordiv(i.j.fused, m), floormod(i.j.fused, m)] + 1.0
  }
}
)");
}

TEST(Fuse, CanBeSplitAgain) {
  AddOne k;
  k.te.fuse(k.B, {"i", "j"});
  k.te.split(k.B, "i.j.fused", 64);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i.j.fused.outer in 0..floordiv(n*m + 63, 64) {
    for i.j.fused.inner in 0..64 {
      if likely(i.j.fused.outer*64 + i.j.fused.inner < n*m) {
        B[floordiv(i.j.fused.outer*64 + i.j.fused.inner, m), floormod(i.j.fused.outer*64 + i.j.fused.inner, m)] = A[floordiv(i.j.fused.outer*64 + i.j.fused.inner, m), floormod(i.j.fused.outer*64 + i.j.fused.inner, m)] + 1.0
      }
    }
  }
}
)");
}

TEST(Fuse, TakesTheTilesOfSplits) {
  Matmul k(64, 64, 64);
  k.te.tile(k.C, "i", "j", 16, 16);
  k.te.fuse(k.C, {"i.outer", "j.outer"});
  k.te.parallel(k.C, "i.outer.j.outer.fused");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 64], B: float32[64, 64], C: float32[64, 64]) {
  for i.outer.j.outer.fused in 0..16 parallel {
    for i.inner in 0..16 {
      for j.inner in 0..16 {
        C[floordiv(i.outer.j.outer.fused, 4)*16 + i.inner, floormod(i.outer.j.outer.fused, 4)*16 + j.inner] = 0.0
        for k in 0..64 {
          C[floordiv(i.outer.j.outer.fused, 4)*16 + i.inner, floormod(i.outer.j.outer.fused, 4)*16 + j.inner] = C[floordiv(i.outer.j.outer.fused, 4)*16 + i.inner, floormod(i.outer.j.outer.fused, 4)*16 + j.inner] + A[floordiv(i.outer.j.outer.fused, 4)*16 + i.inner, k]*B[k, floormod(i.outer.j.outer.fused, 4)*16 + j.inner]
        }
      }
    }
  }
}
)");
}

TEST(Fuse, TakesReductionAxes) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(4), te.integer(6)});
  const TeExpr i = te.reduce_axis("i", te.integer(0), te.integer(4));
  const TeExpr j = te.reduce_axis("j", te.integer(0), te.integer(6));
  const TeTensor S = te.compute("S", "", {}, [&](auto) { return te.sum(A(i, j), {i, j}); });
  te.arguments({A, S});
  te.fuse(S, {"i", "j"});
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[4, 6], S: float32[]) {
  S[] = 0.0
  for i.j.fused in 0..24 {
    S[] = S[] + A[floordiv(i.j.fused, 6), floormod(i.j.fused, 6)]
  }
}
)");
}

TEST(Fuse, RejectsAxesThatAreNotNeighbours) {
  Matmul k;
  k.te.reorder(k.C, {"i", "k", "j"});
  k.te.fuse(k.C, {"i", "j"});
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "fuse(i, j): i and j are not neighbours in the loop order i, k, j");
}

TEST(Fuse, RejectsTheWrongOrder) {
  AddOne k;
  k.te.fuse(k.B, {"j", "i"});
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "fuse(j, i): j and i are not neighbours in the loop order i, j");
}

TEST(Fuse, RejectsAnExtentThatDependsOnTheOther) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n, n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeExpr l = te.reduce_axis("l", te.integer(0), k + 1);
  const TeTensor S = te.compute("S", "", {}, [&](auto) { return te.sum(A(k, l), {k, l}); });
  te.arguments({A, S});
  te.fuse(S, {"k", "l"});
  expect_error([&] { te.build(); }, ErrorKind::Unsupported,
               "cannot fuse k, l: the extent of l depends on k");
}

TEST(Fuse, RejectsADataAxisWithAReductionAxis) {
  Matmul k;
  k.te.fuse(k.C, {"j", "k"});
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "fuse(j, k): one of j and k is a reduction axis and the other is not");
}

/// What three factors make together is past the range of int64.
TEST(Fuse, RejectsMoreIterationsThanCanBeCounted) {
  Matmul k;
  k.te.split(k.C, "i", 2147483647);
  k.te.split(k.C, "j", 2147483647);
  k.te.reorder(k.C, {"i.outer", "j.outer", "i.inner", "j.inner"});
  k.te.fuse(k.C, {"i.inner", "j.inner"});
  expect_error([&] { k.te.build(); }, ErrorKind::ResourceExhausted,
               "i.inner.j.inner.fused of C would have more than 140737488355328 iterations; fuse "
               "loops of smaller factors");
}

}  // namespace
}  // namespace kiln::testing
