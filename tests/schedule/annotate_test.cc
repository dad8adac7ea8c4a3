#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(Parallel, MarksTheLoop) {
  AddOne k;
  k.te.parallel(k.B, "i");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i in 0..n parallel {
    for j in 0..m {
      B[i, j] = A[i, j] + 1.0
    }
  }
}
)");
}

TEST(Parallel, RejectsAReductionAxis) {
  Matmul k;
  k.te.parallel(k.C, "k");
  const Error error =
      expect_error([&] { k.te.build(); }, ErrorKind::Unsupported,
                   "cannot run k in parallel: it is a reduction axis, and all its iterations "
                   "change one element of C; parallel i or j, or vectorize k, or rfactor C over it "
                   "and parallel that axis of the partial results");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: parallel(k)"});
}

TEST(Vectorize, TakesAReductionAxis) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(64)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(64));
  const TeTensor S = te.compute("S", "", {}, [&](auto) { return te.sum(A(k), {k}); });
  te.arguments({A, S});
  te.split(S, "k", 16);
  te.vectorize(S, "k.inner");
  EXPECT_EQ(te.lowered(), R"(fn k(A: float32[64], S: float32[]) {
  S[] = 0.0
  for k.outer in 0..4 {
    for k.inner in 0..16 vectorize {
      S[] = S[] + A[k.outer*16 + k.inner]
    }
  }
}
)");
}

TEST(Vectorize, NeedsAConstantExtent) {
  AddOne k;
  k.te.vectorize(k.B, "j");
  const Error error =
      expect_error([&] { k.te.build(); }, ErrorKind::Unsupported,
                   "cannot vectorize j: its extent m is not a constant; split it first");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: vectorize(j)"});
}

TEST(Unroll, NeedsAConstantExtent) {
  RowSum k;
  k.te.unroll(k.B, "k");
  expect_error([&] { k.te.build(); }, ErrorKind::Unsupported,
               "cannot unroll k: its extent m is not a constant; split it first");
}

TEST(Unroll, TakesALoopWhoseTileIsConstant) {
  Stencils k;
  k.te.split(k.C, "i", 10);
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.unroll(k.B, "i");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[103], C: float32[100]) {
  for i.outer in 0..10 {
    allocate B: float32[12] scope(global)
    for i in 0..12 unroll {
      B[i] = A[i.outer*10 + i] + A[i.outer*10 + i + 1]
    }
    for i.inner in 0..10 {
      C[i.outer*10 + i.inner] = B[i.inner] + B[i.inner + 1] + B[i.inner + 2]
    }
  }
}
)");
}

TEST(Bind, NamesTheLoopAfterTheThread) {
  AddOne k;
  k.te.fuse(k.B, {"i", "j"});
  k.te.split(k.B, "i.j.fused", 256);
  k.te.bind(k.B, "i.j.fused.outer", "blockIdx.x");
  k.te.bind(k.B, "i.j.fused.inner", "threadIdx.x");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for blockIdx.x in 0..floordiv(n*m + 255, 256) bind {
    for threadIdx.x in 0..256 bind {
      if likely(blockIdx.x*256 + threadIdx.x < n*m) {
        B[floordiv(blockIdx.x*256 + threadIdx.x, m), floormod(blockIdx.x*256 + threadIdx.x, m)] = A[floordiv(blockIdx.x*256 + threadIdx.x, m), floormod(blockIdx.x*256 + threadIdx.x, m)] + 1.0
      }
    }
  }
}
)");
}

TEST(Bind, RejectsAThreadAxisTwice) {
  AddOne k;
  k.te.bind(k.B, "i", "threadIdx.x");
  k.te.bind(k.B, "j", "threadIdx.x");
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "axis i of B is bound to threadIdx.x already; bind j to another thread axis");
}

TEST(Bind, RejectsAThreadAxisInsideItself) {
  Stencils k;
  k.te.split(k.C, "i", 10);
  k.te.bind(k.C, "i.outer", "threadIdx.x");
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.bind(k.B, "i", "threadIdx.x");
  expect_error([&] { k.te.build(TargetKind::Cuda); }, ErrorKind::Unsupported,
               "cannot bind i of B to threadIdx.x: it runs inside i.outer, which is bound to "
               "it already; threads share their work only on a stage in shared memory");
  k.te.build();  // on a CPU they are two loops
}

TEST(Bind, RejectsAReductionAxis) {
  RowSum k;
  k.te.bind(k.B, "k", "blockIdx.x");
  expect_error([&] { k.te.build(); }, ErrorKind::Unsupported,
               "cannot bind k: it is a reduction axis, and all its iterations change one "
               "element of B; bind i, or vectorize k, or rfactor B over it and bind that axis of "
               "the partial results");
}

TEST(Bind, RunsTheThreadsOfAReductionOneAfterTheOtherOnACpu) {
  RowSum k;
  k.te.bind(k.B, "k", "threadIdx.x");
  k.te.build();
  expect_error([&] { k.te.build(TargetKind::Cuda); }, ErrorKind::Unsupported,
               "cannot bind k on a GPU: the threads of k combine their parts of B in shared "
               "memory, but k has m iterations, which is no constant; split k by a factor first");
}

TEST(Annotations, RejectASecondOne) {
  AddOne k;
  k.te.parallel(k.B, "i");
  k.te.unroll(k.B, "i");
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "axis i was made parallel at line 10 already");
}

}  // namespace
}  // namespace kiln::testing
