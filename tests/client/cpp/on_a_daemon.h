#pragma once

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/support/daemon.h"

namespace kiln::test {

/// A real daemon, which all tests of a suite share.
class OnADaemon : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { daemon_ = new testing::Daemon({.program = KILND}); }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  static inline testing::Daemon* daemon_ = nullptr;
};

/// A call takes minutes for large sizes.
inline Kernel endless(const Connection& connection) {
  const Expr n = var("n");
  const Expr m = var("m");
  const Tensor X = placeholder({n}, float32, "X");
  const ReduceAxis k = reduce_axis(m, "k");
  const Tensor Y = compute(
      {n}, [&](Expr i) { return sum(sin(X(i) + Expr(k)), k); }, "Y");
  return connection.build({X, Y});
}

}  // namespace kiln::test
