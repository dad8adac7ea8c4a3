#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// B = A + 1 and C = B * 2, both outputs.
struct TwoOutputs {
  Te te;
  TeExpr n = te.var("n");
  TeTensor A = te.placeholder("A", {n});
  TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(v[0]) + te.real(1); });
  TeTensor C = te.compute("C", "i", {n}, [&](auto v) { return B(v[0]) * te.real(2); });
  TwoOutputs() { te.arguments({A, B, C}); }
};

TEST(InnerOutputs, AreComputedWhereTheirReaderComesToAllOfThem) {
  TwoOutputs k;
  k.te.compute_at(k.B, k.C, "i");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n], B: float32[n], C: float32[n]) {
  for i in 0..n {
    B[i] = A[i] + 1.0
    C[i] = B[i]*2.0
  }
}
)");
}

TEST(InnerOutputs, AreComputedInTilesThatThreadsHaveForThemselves) {
  TwoOutputs k;
  k.te.split(k.C, "i", 32);
  k.te.parallel(k.C, "i.outer");
  k.te.compute_at(k.B, k.C, "i.outer");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n], B: float32[n], C: float32[n]) {
  for i.outer in 0..floordiv(n + 31, 32) parallel {
    for i in 0..32 {
      if likely(i.outer*32 + i < n) {
        B[i.outer*32 + i] = A[i.outer*32 + i] + 1.0
      }
    }
    for i.inner in 0..32 {
      if likely(i.outer*32 + i.inner < n) {
        C[i.outer*32 + i.inner] = B[i.outer*32 + i.inner]*2.0
      }
    }
  }
}
)");
}

TEST(InnerOutputs, AreInlineInTheirReadersAlone) {
  TwoOutputs k;
  k.te.compute_inline(k.B);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n], B: float32[n], C: float32[n]) {
  for i in 0..n {
    B[i] = A[i] + 1.0
  }
  for i_1 in 0..n {
    C[i_1] = (A[i_1] + 1.0)*2.0
  }
}
)");
}

/// An output of 102 elements, read in threes.
struct Halo {
  Te te;
  TeTensor A = te.placeholder("A", {te.integer(103)});
  TeTensor B =
      te.compute("B", "i", {te.integer(102)}, [&](auto v) { return A(v[0]) + A(v[0] + 1); });
  TeTensor C = te.compute("C", "i", {te.integer(100)},
                          [&](auto v) { return B(v[0]) + B(v[0] + 1) + B(v[0] + 2); });
  Halo() { te.arguments({A, B, C}); }
};

TEST(InnerOutputs, AreComputedWithTheirHalo) {
  Halo k;
  k.te.split(k.C, "i", 25);
  k.te.compute_at(k.B, k.C, "i.outer");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[103], B: float32[102], C: float32[100]) {
  for i.outer in 0..4 {
    for i in 0..27 {
      B[i.outer*25 + i] = A[i.outer*25 + i] + A[i.outer*25 + i + 1]
    }
    for i.inner in 0..25 {
      C[i.outer*25 + i.inner] = B[i.outer*25 + i.inner] + B[i.outer*25 + i.inner + 1] + B[i.outer*25 + i.inner + 2]
    }
  }
}
)");
}

TEST(InnerOutputs, HaveNoElementThatThreadsWriteAtOnce) {
  Halo k;
  k.te.split(k.C, "i", 25);
  k.te.parallel(k.C, "i.outer");
  k.te.compute_at(k.B, k.C, "i.outer");
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "cannot compute B at i.outer of C: B is an output, and iterations of i.outer, which "
               "run at once, would write the same elements of it; leave B at the root");
}

void expect_refused_at(const TeExpr& extent, Te& te, const TeTensor& A, const TeTensor& B,
                       const std::function<TeExpr(std::vector<TeExpr>)>& body,
                       const std::string& why) {
  const TeTensor C = te.compute("C", "i", {extent}, body);
  te.arguments({A, B, C});
  te.compute_at(B, C, "i");
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "cannot compute B at i of C: B is an output, and " + why + "; leave B at the root");
}

struct OneOutput {
  Te te;
  TeExpr n = te.var("n");
  TeTensor A = te.placeholder("A", {n + 2});
  TeTensor B = te.compute("B", "i", {n + 2}, [&](auto v) { return A(v[0]) + te.real(1); });
};

TEST(InnerOutputs, AreRefusedWhereAPartIsLeftOut) {
  OneOutput k;
  expect_refused_at(
      k.n, k.te, k.A, k.B, [&](auto v) { return k.B(v[0]); },
      "along dimension 0 C reads elements 0 to n - 1 of its n + 2");
}

TEST(InnerOutputs, AreRefusedWhereTheReaderMayNotRun) {
  OneOutput k;
  expect_refused_at(
      k.n, k.te, k.A, k.B, [&](auto v) { return k.B(v[0]) + k.B(v[0] + 2); },
      "i of C may have no iterations, which would leave it out");
}

TEST(InnerOutputs, AreRefusedWhereElementsAreSkipped) {
  OneOutput k;
  expect_refused_at(
      k.n, k.te, k.A, k.B, [&](auto v) { return k.B(v[0] - v[0]); },
      "C reads dimension 0 of it at i - i, which may not come to every element");
}

TEST(InnerOutputs, AreRefusedOnADiagonal) {
  Te te;
  const TeExpr n = te.var("n");
  const TeTensor A = te.placeholder("A", {n, n});
  const TeTensor B = te.compute("B", "i j", {n, n}, [&](auto v) { return A(v[0], v[1]); });
  const TeTensor C = te.compute("C", "i", {n}, [&](auto v) { return B(v[0], v[0]); });
  te.arguments({A, B, C});
  te.compute_at(B, C, "i");
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "cannot compute B at i of C: B is an output, and i of C is the index of two of its "
               "dimensions; leave B at the root");
}

}  // namespace
}  // namespace kiln::testing
