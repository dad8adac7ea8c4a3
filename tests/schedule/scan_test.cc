#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(Scan, WritesInitAndUpdateIntoItsOutput) {
  Cumsum k;
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i in 0..n {
    scan[0, i] = X[0, i]
  }
  for scan.idx in 0..m - 1 {
    for i_1 in 0..n {
      scan[scan.idx + 1, i_1] = scan[scan.idx, i_1] + X[scan.idx + 1, i_1]
    }
  }
}
)");
}

TEST(Scan, MovesBoundLoopsOutOfTimeWhenColumnsAreIndependent) {
  Cumsum k;
  for (const TeTensor& stage : {k.init, k.update}) {
    k.te.split(stage, "i", 256);
    k.te.bind(stage, "i.outer", "blockIdx.x");
    k.te.bind(stage, "i.inner", "threadIdx.x");
  }
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for blockIdx.x in 0..floordiv(n + 255, 256) bind {
    for threadIdx.x in 0..256 bind {
      if likely(blockIdx.x*256 + threadIdx.x < n) {
        scan[0, blockIdx.x*256 + threadIdx.x] = X[0, blockIdx.x*256 + threadIdx.x]
      }
      for scan.idx in 0..m - 1 {
        if likely(blockIdx.x*256 + threadIdx.x < n) {
          scan[scan.idx + 1, blockIdx.x*256 + threadIdx.x] = scan[scan.idx, blockIdx.x*256 + threadIdx.x] + X[scan.idx + 1, blockIdx.x*256 + threadIdx.x]
        }
      }
    }
  }
}
)");
}

TEST(Scan, MovesParallelLoopsOutOfTimeToo) {
  Cumsum k;
  for (const TeTensor& stage : {k.init, k.update}) {
    k.te.split(stage, "i", 64);
    k.te.parallel(stage, "i.outer");
    k.te.vectorize(stage, "i.inner");
  }
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i.outer in 0..floordiv(n + 63, 64) parallel {
    for i.inner in 0..64 vectorize {
      if likely(i.outer*64 + i.inner < n) {
        scan[0, i.outer*64 + i.inner] = X[0, i.outer*64 + i.inner]
      }
    }
    for scan.idx in 0..m - 1 {
      for i.inner_1 in 0..64 vectorize {
        if likely(i.outer*64 + i.inner_1 < n) {
          scan[scan.idx + 1, i.outer*64 + i.inner_1] = scan[scan.idx, i.outer*64 + i.inner_1] + X[scan.idx + 1, i.outer*64 + i.inner_1]
        }
      }
    }
  }
}
)");
}

TEST(Scan, KeepsTimeOutsideWhenInitAndUpdateAreCutDifferently) {
  Cumsum k;
  k.te.split(k.init, "i", 128);
  k.te.split(k.update, "i", 256);
  for (const TeTensor& stage : {k.init, k.update})
    k.te.bind(stage, "i.outer", "blockIdx.x");
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for blockIdx.x in 0..floordiv(n + 127, 128) bind {
    for i.inner in 0..128 {
      if likely(blockIdx.x*128 + i.inner < n) {
        scan[0, blockIdx.x*128 + i.inner] = X[0, blockIdx.x*128 + i.inner]
      }
    }
  }
  for scan.idx in 0..m - 1 {
    for blockIdx.x in 0..floordiv(n + 255, 256) bind {
      for i.inner_1 in 0..256 {
        if likely(blockIdx.x*256 + i.inner_1 < n) {
          scan[scan.idx + 1, blockIdx.x*256 + i.inner_1] = scan[scan.idx, blockIdx.x*256 + i.inner_1] + X[scan.idx + 1, blockIdx.x*256 + i.inner_1]
        }
      }
    }
  }
}
)");
}

TEST(Scan, KeepsTimeOutsideWhenAColumnReadsItsNeighbour) {
  Te te;
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor state = te.placeholder("state", {m, n});
  const TeTensor init =
      te.compute("init", "z i", {te.integer(1), n}, [&](auto v) { return X(te.integer(0), v[1]); });
  const TeTensor update = te.compute("update", "t i", {m, n}, [&](auto v) {
    return state(v[0] - 1, n - 1 - v[1]) + X(v[0], v[1]);
  });
  const TeTensor scan = te.scan("scan", {init}, {update}, {state}, m)[0];
  te.arguments({X, scan});
  te.parallel(init, "i");
  te.parallel(update, "i");
  EXPECT_EQ(te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i in 0..n parallel {
    scan[0, i] = X[0, i]
  }
  for scan.idx in 0..m - 1 {
    for i_1 in 0..n parallel {
      scan[scan.idx + 1, i_1] = scan[scan.idx, n - i_1 - 1] + X[scan.idx + 1, i_1]
    }
  }
}
)");
}

TEST(Scan, ComputesItsCellInsideTime) {
  TwoStageScan k;
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i in 0..n {
    scan[0, i] = X[0, i]
  }
  for scan.idx in 0..m - 1 {
    allocate s1: float32[1, n] scope(global)
    for i_1 in 0..n {
      s1[0, i_1] = scan[scan.idx, i_1]*2.0
    }
    for i_2 in 0..n {
      scan[scan.idx + 1, i_2] = s1[0, i_2] + X[scan.idx + 1, i_2]
    }
  }
}
)");
}

TEST(Scan, AttachesACellInsideTheUpdate) {
  TwoStageScan k;
  k.te.split(k.s2, "i", 32);
  k.te.compute_at(k.s1, k.s2, "i.outer");
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i in 0..n {
    scan[0, i] = X[0, i]
  }
  for scan.idx in 0..m - 1 {
    for i.outer in 0..floordiv(n + 31, 32) {
      allocate s1: float32[1, 32] scope(global)
      for i_1 in 0..32 {
        if likely(i.outer*32 + i_1 < n) {
          s1[0, i_1] = scan[scan.idx, i.outer*32 + i_1]*2.0
        }
      }
      for i.inner in 0..32 {
        if likely(i.outer*32 + i.inner < n) {
          scan[scan.idx + 1, i.outer*32 + i.inner] = s1[0, i.inner] + X[scan.idx + 1, i.outer*32 + i.inner]
        }
      }
    }
  }
}
)");
}

TEST(Scan, HasOneBufferForEachState) {
  TwoStateScan k;
  EXPECT_EQ(k.te.lowered(),
            R"(fn k(X: float32[m, n], scan.v0: float32[m, n], scan.v1: float32[m, l]) {
  for i in 0..n {
    scan.v0[0, i] = X[0, i]
  }
  for i_1 in 0..l {
    scan.v1[0, i_1] = 0.0
  }
  if 0 < m - 1 {
    if 0 < l {
      check 0 < n #0
    }
  }
  for scan.idx in 0..m - 1 {
    for i_2 in 0..n {
      scan.v0[scan.idx + 1, i_2] = scan.v0[scan.idx, i_2] + X[scan.idx + 1, i_2]
    }
    for i_3 in 0..l {
      scan.v1[scan.idx + 1, i_3] = scan.v1[scan.idx, i_3] + scan.v0[scan.idx, 0]
    }
  }
}
#0: stage 6, tensor 1, dimension 1
)");
}

TEST(Scan, StartsAfterAllInitialSteps) {
  Te te;
  const TeExpr m = te.var("m");
  const TeTensor state = te.placeholder("state", {m});
  const TeTensor init =
      te.compute("init", "z", {te.integer(2)}, [&](auto v) { return te.real(1); });
  const TeTensor update =
      te.compute("fib", "t", {m}, [&](auto v) { return state(v[0] - 1) + state(v[0] - 2); });
  const TeTensor scan = te.scan("scan", {init}, {update}, {state}, m, 2)[0];
  te.arguments({scan});
  EXPECT_EQ(te.lowered(), R"(fn k(scan: float32[m]) {
  for z in 0..2 {
    scan[z] = 1.0
  }
  for scan.idx in 0..m - 2 {
    scan[scan.idx + 2] = scan[scan.idx + 1] + scan[scan.idx]
  }
}
)");
}

TEST(Scan, CopiesAnInitThatIsAnArgument) {
  Te te;
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor X = te.placeholder("X", {m, n});
  const TeTensor H = te.placeholder("H", {te.integer(1), n});
  const TeTensor state = te.placeholder("state", {m, n});
  const TeTensor update = te.compute("update", "t i", {m, n},
                                     [&](auto v) { return state(v[0] - 1, v[1]) + X(v[0], v[1]); });
  const TeTensor scan = te.scan("scan", {H}, {update}, {state}, m)[0];
  te.arguments({X, H, scan});
  EXPECT_EQ(te.lowered(), R"(fn k(X: float32[m, n], H: float32[1, n], scan: float32[m, n]) {
  for i1 in 0..n {
    scan[0, i1] = H[0, i1]
  }
  for scan.idx in 0..m - 1 {
    for i in 0..n {
      scan[scan.idx + 1, i] = scan[scan.idx, i] + X[scan.idx + 1, i]
    }
  }
}
)");
}

TEST(Scan, SplitsTime) {
  Cumsum k;
  k.te.split(k.scan, "scan.idx", 4);
  EXPECT_EQ(k.te.lowered(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i in 0..n {
    scan[0, i] = X[0, i]
  }
  for scan.idx.outer in 0..floordiv(m + 2, 4) {
    for scan.idx.inner in 0..4 {
      if likely(scan.idx.outer*4 + scan.idx.inner < m - 1) {
        for i_1 in 0..n {
          scan[scan.idx.outer*4 + scan.idx.inner + 1, i_1] = scan[scan.idx.outer*4 + scan.idx.inner, i_1] + X[scan.idx.outer*4 + scan.idx.inner + 1, i_1]
        }
      }
    }
  }
}
)");
}

TEST(Scan, ReducesOverTheWholeState) {
  Te te;
  const TeExpr m = te.var("m");
  const TeExpr n = te.var("n");
  const TeTensor W = te.placeholder("W", {n, n});
  const TeTensor state = te.placeholder("h", {m, n});
  const TeTensor init =
      te.compute("init", "z i", {te.integer(1), n}, [&](auto) { return te.real(1); });
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor product = te.compute("product", "t i", {m, n}, [&](auto v) {
    return te.sum(state(v[0] - 1, k) * W(v[1], k), {k});
  });
  const TeTensor update = te.compute(
      "next", "t i", {m, n}, [&](auto v) { return te.op(Operator::Tanh, {product(v[0], v[1])}); });
  const TeTensor scan = te.scan("rnn", {init}, {update}, {state}, m)[0];
  te.arguments({W, scan});
  EXPECT_EQ(te.lowered(), R"(fn k[m, n](W: float32[n, n], rnn: float32[m, n]) {
  for i in 0..n {
    rnn[0, i] = 1.0
  }
  for rnn.idx in 0..m - 1 {
    allocate product: float32[1, n] scope(global)
    for i_1 in 0..n {
      product[0, i_1] = 0.0
      for k in 0..n {
        product[0, i_1] = product[0, i_1] + rnn[rnn.idx, k]*W[i_1, k]
      }
    }
    for i_2 in 0..n {
      rnn[rnn.idx + 1, i_2] = tanh(product[0, i_2])
    }
  }
}
)");
}

TEST(Scan, ReadsEarlierStepsOnly) {
  Te te;
  const TeExpr m = te.var("m");
  const TeTensor state = te.placeholder("state", {m});
  const TeTensor init = te.compute("init", "z", {te.integer(1)}, [&](auto) { return te.real(1); });
  const TeTensor update = te.compute("update", "t", {m}, [&](auto v) { return state(v[0]); });
  const TeTensor scan = te.scan("scan", {init}, {update}, {state}, m)[0];
  te.arguments({scan});
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "update reads state at the step it computes or a later one; the update of "
               "scan may read earlier steps only, such as state[t - 1, ...]");
}

TEST(Scan, ReadsNoStepBeforeTheFirst) {
  Te te;
  const TeExpr m = te.var("m");
  const TeTensor state = te.placeholder("state", {m});
  const TeTensor init = te.compute("init", "z", {te.integer(1)}, [&](auto) { return te.real(1); });
  const TeTensor update = te.compute("update", "t", {m}, [&](auto v) { return state(v[0] - 2); });
  const TeTensor scan = te.scan("scan", {init}, {update}, {state}, m)[0];
  te.arguments({scan});
  expect_error([&] { te.build(); }, ErrorKind::InvalidArgument,
               "update reads state[t - 2], which is step -1 when scan starts; its init gives "
               "1 step, but must give 2");
}

TEST(Scan, RefusesItsTimeInParallel) {
  Cumsum k;
  k.te.parallel(k.scan, "scan.idx");
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "the time axis of a scan is sequential");
}

TEST(Scan, RefusesStepsOnTheTimeOfItsUpdate) {
  Cumsum k;
  k.te.split(k.update, "t", 4);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "axis t of s_update is the time of scan scan; schedule scan.idx, the axis of the "
               "scan");
}

TEST(Scan, RefusesItsStateOutside) {
  Cumsum k;
  const TeTensor Y =
      k.te.compute("Y", "t i", {k.m, k.n}, [&](auto v) { return k.state(v[0], v[1]); });
  k.te.kernel.definition.parameters.push_back(Y.id);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "Y reads s_state, which depends on the state of scan, but is no part of its "
               "update; read scan instead");
}

TEST(Scan, RefusesAScanInsideAScan) {
  Te te;
  const TeExpr m = te.var("m");
  const TeTensor outer_state = te.placeholder("outer_state", {m, m});
  const TeTensor state = te.placeholder("state", {m});
  const TeTensor first =
      te.compute("first", "z", {te.integer(1)}, [&](auto v) { return outer_state(v[0], v[0]); });
  const TeTensor next = te.compute("next", "t", {m}, [&](auto v) { return state(v[0] - 1); });
  const TeTensor inner = te.scan("inner", {first}, {next}, {state}, m)[0];
  const TeTensor init =
      te.compute("init", "z i", {te.integer(1), m}, [&](auto) { return te.real(1); });
  const TeTensor update = te.compute(
      "update", "t i", {m, m}, [&](auto v) { return outer_state(v[0] - 1, v[1]) + inner(v[1]); });
  const TeTensor outer = te.scan("outer", {init}, {update}, {outer_state}, m)[0];
  te.arguments({outer});
  expect_error([&] { te.build(); }, ErrorKind::Unsupported,
               "inner depends on the state of outer, but a scan inside a scan is not "
               "supported; write the inner one as a reduction");
}

TEST(Scan, RefusesItsUpdateAsAnArgument) {
  Cumsum k;
  k.te.kernel.definition.parameters.push_back(k.update.id);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "s_update is computed inside scan and cannot be an argument; pass scan "
               "instead");
}

}  // namespace
}  // namespace kiln::testing
