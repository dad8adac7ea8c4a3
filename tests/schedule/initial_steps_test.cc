#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// A scan whose cell reads P, which is defined over all steps and reads X one step back.
struct EarlyRead {
  Te te;
  TeExpr m = te.var("m");
  TeExpr n = te.var("n");
  TeTensor X = te.placeholder("X", {m - 1, n});
  TeTensor state = te.placeholder("s_state", {m, n});
  TeTensor init = te.compute("s_init", "_ i", {te.integer(1), n}, [&](auto) { return te.real(0); });
  TeTensor P =
      te.compute("P", "t i", {m, n}, [&](auto v) { return X(v[0] - 1, v[1]) * te.real(2); });
  /// `offset` steps away from its own the cell reads P.
  TeTensor scan(int64_t offset) {
    const TeTensor update = te.compute("s_update", "t i", {m, n}, [&](auto v) {
      return state(v[0] - 1, v[1]) + (offset == 0 ? P(v[0], v[1]) : P(v[0] - offset, v[1]));
    });
    return te.scan("scan", {init}, {update}, {state}, m)[0];
  }
};

TEST(InitialSteps, OfWhatACellReadsAtItsOwnStepAreNotComputed) {
  EarlyRead k;
  k.te.arguments({k.X, k.scan(0)});
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m - 1, n], scan: float32[m, n]) {
  allocate P: float32[m - 1, n] scope(global)
  for t in 0..m - 1 {
    for i in 0..n {
      P[t, i] = X[t, i]*2.0
    }
  }
  for i_1 in 0..n {
    scan[0, i_1] = 0.0
  }
  for scan.idx in 0..m - 1 {
    for i_2 in 0..n {
      scan[scan.idx + 1, i_2] = scan[scan.idx, i_2] + P[scan.idx, i_2]
    }
  }
}
)");
}

TEST(InitialSteps, AreComputedWhereTheCellReadsAtAnEarlierOne) {
  EarlyRead k;
  k.te.arguments({k.X, k.scan(1)});
  expect_error([&] { k.te.lowered(); }, ErrorKind::InvalidArgument,
               "P reads X[t - 1, i], whose index 0 reaches -1, but X has 0 to m - 2 there; guard "
               "the read with if_then_else or change the shape");
}

TEST(InitialSteps, AreComputedOfAnArgument) {
  EarlyRead k;
  k.te.arguments({k.X, k.P, k.scan(0)});
  expect_error([&] { k.te.lowered(); }, ErrorKind::InvalidArgument,
               "P reads X[t - 1, i], whose index 0 reaches -1, but X has 0 to m - 2 there; guard "
               "the read with if_then_else or change the shape");
}

TEST(InitialSteps, StayWhereTheyAreLikeAllOthers) {
  Te te;
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor state = te.placeholder("s_state", {m, n});
  const TeTensor init =
      te.compute("s_init", "_ i", {te.integer(1), n}, [&](auto) { return te.real(0); });
  const TeTensor P =
      te.compute("P", "t i", {m, n}, [&](auto v) { return X(v[0], v[1]) * te.real(2); });
  const TeTensor update = te.compute("s_update", "t i", {m, n},
                                     [&](auto v) { return state(v[0] - 1, v[1]) + P(v[0], v[1]); });
  te.arguments({X, te.scan("scan", {init}, {update}, {state}, m)[0]});
  EXPECT_NE(te.lowered().find("allocate P: float32[m, n]"), std::string::npos);
}

}  // namespace
}  // namespace kiln::testing
