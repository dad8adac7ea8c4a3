#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// C[i, j] = B[i, j] - 1, B[i, j] = A[i, j] * 3, of 64 rows of 32.
struct Rows {
  Te te;
  TeExpr rows = te.integer(64);
  TeExpr columns = te.integer(32);
  TeTensor A = te.placeholder("A", {rows, columns});
  TeTensor B =
      te.compute("B", "i j", {rows, columns}, [&](auto v) { return A(v[0], v[1]) * te.real(3); });
  TeTensor C =
      te.compute("C", "i j", {rows, columns}, [&](auto v) { return B(v[0], v[1]) - te.real(1); });
  Rows() { te.arguments({A, C}); }
};

TEST(StorageAlign, SpreadsTheRowsOut) {
  Rows k;
  k.te.split(k.C, "i", 8);
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.storage_align(k.B, "i", 16, 4);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 32], C: float32[64, 32]) {
  for i.outer in 0..8 {
    allocate B: float32[8, 32] strides[36, 1] scope(global)
    for i in 0..8 {
      for j in 0..32 {
        B[i, j] = A[i.outer*8 + i, j]*3.0
      }
    }
    for i.inner in 0..8 {
      for j_1 in 0..32 {
        C[i.outer*8 + i.inner, j_1] = B[i.inner, j_1] - 1.0
      }
    }
  }
}
)");
}

TEST(StorageAlign, LeavesRowsAloneThatAreAligned) {
  Rows k;
  k.te.storage_align(k.B, "i", 32, 0);
  EXPECT_NE(k.te.lowered().find("allocate B: float32[64, 32] scope(global)"), std::string::npos);
}

TEST(StorageAlign, TakesADimensionWhoseLoopIsSplit) {
  Rows k;
  k.te.split(k.B, "i", 8);
  k.te.storage_align(k.B, "i", 64, 1);
  EXPECT_NE(k.te.lowered().find("allocate B: float32[64, 32] strides[65, 1] scope(global)"),
            std::string::npos);
}

TEST(StorageAlign, CannotAlignTheLastDimension) {
  Rows k;
  k.te.storage_align(k.B, "j", 8, 1);  // so it is
  k.te.storage_align(k.B, "j", 8, 0);
  const Error error = expect_error(
      [&] { k.te.build(); }, ErrorKind::Unsupported,
      "cannot align j: the elements of B along its last dimension lie side by side; align "
      "a dimension before it");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 2: storage_align(j, factor=8)"});
}

TEST(StorageAlign, CannotAlignWhatLiesInAScan) {
  Cumsum k;
  k.te.storage_align(k.init, "i", 8, 0);
  const Error error = expect_error(
      [&] { k.te.build(); }, ErrorKind::InvalidArgument,
      "cannot align s_init: it is computed straight into the memory of scan; align a cache_write "
      "of it");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: storage_align(i, factor=8)"});
}

TEST(DoubleBuffer, TakesTurnsBetweenTwoCopies) {
  Rows k;
  k.te.split(k.C, "i", 8);
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.double_buffer(k.B);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 32], C: float32[64, 32]) {
  allocate B: float32[2, 8, 32] scope(global)
  for i.outer in 0..8 {
    for i in 0..8 {
      for j in 0..32 {
        B[floormod(i.outer, 2), i, j] = A[i.outer*8 + i, j]*3.0
      }
    }
    for i.inner in 0..8 {
      for j_1 in 0..32 {
        C[i.outer*8 + i.inner, j_1] = B[floormod(i.outer, 2), i.inner, j_1] - 1.0
      }
    }
  }
}
)");
  EXPECT_EQ(k.te.notes(), std::vector<std::string>{});
}

TEST(DoubleBuffer, KeepsTheAlignmentOfEachCopy) {
  Rows k;
  k.te.split(k.C, "i", 8);
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.double_buffer(k.B);
  k.te.storage_align(k.B, "i", 16, 4);
  EXPECT_NE(k.te.lowered().find("allocate B: float32[2, 8, 32] strides[288, 36, 1] scope(global)"),
            std::string::npos);
}

TEST(DoubleBuffer, IsOneMemoryAThreadWhereIterationsRunAtOnce) {
  Rows k;
  k.te.split(k.C, "i", 8);
  k.te.parallel(k.C, "i.outer");
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.double_buffer(k.B);
  EXPECT_NE(k.te.lowered().find("allocate B: float32[8, 32] scope(global)"), std::string::npos);
  EXPECT_EQ(k.te.notes(),
            std::vector<std::string>{"B has its memory once: the iterations of i.outer run at "
                                     "once, each with memory of its own"});
}

TEST(DoubleBuffer, NeedsALoopAroundTheStage) {
  Rows k;
  k.te.double_buffer(k.B);
  const Error error =
      expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
                   "cannot double B: it is computed once, and no iterations take turns with it; "
                   "compute_at it inside a loop of what reads it");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: double_buffer(B)"});
}

TEST(Pragma, UnrollsFromTheInsideWhileFewStatementsComeOfIt) {
  Rows k;
  k.te.split(k.C, "j", 4);
  k.te.split(k.C, "j.outer", 2);
  k.te.compute_inline(k.B);
  k.te.pragma(k.C, "i", "auto_unroll_max_step", 8);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 32], C: float32[64, 32]) {
  for i in 0..64 {
    for j.outer.outer in 0..4 {
      for j.outer.inner in 0..2 unroll {
        for j.inner in 0..4 unroll {
          C[i, j.outer.outer*8 + j.outer.inner*4 + j.inner] = A[i, j.outer.outer*8 + j.outer.inner*4 + j.inner]*3.0 - 1.0
        }
      }
    }
  }
}
)");
}

TEST(Pragma, IsAboutTheLoopsInsideOfAnAxisThatRunsOnce) {
  Rows k;
  k.te.split(k.C, "i", 64);
  k.te.compute_inline(k.B);
  k.te.pragma(k.C, "i.outer", "auto_unroll_max_step", 32);
  EXPECT_NE(k.te.lowered().find("for j in 0..32 unroll {"), std::string::npos);
}

TEST(Pragma, KeepsLoopsThatUnrollWouldReplace) {
  Rows k;
  k.te.compute_inline(k.B);
  k.te.unroll(k.C, "j");
  k.te.pragma(k.C, "i", "unroll_explicit", 0);
  EXPECT_NE(k.te.lowered().find("for j in 0..32 {"), std::string::npos);
}

TEST(Pragma, SaysWhenThereIsNothingToDo) {
  Rows k;
  k.te.pragma(k.C, "i", "parallel_launch_point");
  EXPECT_EQ(k.te.notes(),
            std::vector<std::string>{"pragma parallel_launch_point of i has nothing to do: each "
                                     "parallel loop starts the cores once, wherever it stands"});
}

TEST(Prefetch, FetchesWhatTheNextIterationReads) {
  Rows k;
  k.te.compute_inline(k.B);
  k.te.prefetch(k.C, k.A, "i", 1);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 32], C: float32[64, 32]) {
  for i in 0..64 {
    for A.p1 in 0..2 unroll {
      prefetch A[min(i + 1, 63), A.p1*16]
    }
    for j in 0..32 {
      C[i, j] = A[i, j]*3.0 - 1.0
    }
  }
}
)");
}

TEST(Prefetch, LeavesOutWhatIsNoElement) {
  Stencils k;
  k.te.compute_inline(k.B);
  k.te.split(k.C, "i", 32);
  k.te.prefetch(k.C, k.A, "i.outer", 2);
  const std::string text = k.te.lowered();
  EXPECT_NE(text.find("prefetch A["), std::string::npos) << text;
}

/// B has 12 elements while i.outer stands still, and C would fetch two places past them.
TEST(Prefetch, StaysInsideOfWhatIsComputedInALoop) {
  Stencils k;
  k.te.split(k.C, "i", 10);
  k.te.compute_at(k.B, k.C, "i.outer");
  k.te.prefetch(k.C, k.B, "i.inner", 2);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[103], C: float32[100]) {
  for i.outer in 0..10 {
    allocate B: float32[12] scope(global)
    for i in 0..12 {
      B[i] = A[i.outer*10 + i] + A[i.outer*10 + i + 1]
    }
    for i.inner in 0..10 {
      prefetch B[i.inner + 2]
      prefetch B[min(i.inner + 3, 11)]
      prefetch B[min(i.inner + 4, 11)]
      C[i.outer*10 + i.inner] = B[i.inner] + B[i.inner + 1] + B[i.inner + 2]
    }
  }
}
)");
}

TEST(Prefetch, NeedsAReaderOfTheTensor) {
  Rows k;
  k.te.prefetch(k.C, k.A, "i", 1);
  const Error error = expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
                                   "cannot prefetch A in i of C: C does not read it");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: prefetch(A, i)"});
}

TEST(Prefetch, CannotRunAheadOfWhatIsComputedInTheLoop) {
  Rows k;
  k.te.compute_at(k.B, k.C, "i");
  k.te.prefetch(k.C, k.B, "i", 1);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "cannot prefetch B in i of C: B is computed inside of that loop, for one iteration "
               "at a time");
}

TEST(Prefetch, CannotForetellWhatDataSays) {
  Te te;
  const TeExpr n = te.integer(16);
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor I = te.placeholder("I", {n}, DType::Int64);
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(I(v[0])); });
  te.arguments({A, I, B});
  te.prefetch(B, A, "i", 1);
  expect_error([&] { te.build(); }, ErrorKind::Unsupported,
               "cannot prefetch A in i: which part of it B reads depends on data");
}

TEST(Prefetch, CannotForetellALoopThatDataBounds) {
  Te te;
  const TeExpr n = te.integer(16);
  const TeTensor A = te.placeholder("A", {n, n});
  const TeTensor L = te.placeholder("L", {n}, DType::Int64);
  const TeExpr k = te.reduce_axis("k", te.integer(0), L(te.integer(0)));
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return te.sum(A(k, v[0]), {k}); });
  te.arguments({A, L, B});
  te.prefetch(B, A, "i", 1);
  expect_error([&] { te.build(); }, ErrorKind::Unsupported,
               "cannot prefetch A in i: which part of it B reads depends on data");
}

TEST(Prefetch, IsRefusedOnAGpu) {
  Rows k;
  k.te.compute_inline(k.B);
  k.te.prefetch(k.C, k.A, "i", 1);
  const Error error =
      expect_error([&] { k.te.lowered(TargetKind::Cuda); }, ErrorKind::Unsupported,
                   "cannot prefetch A in i of C on a GPU: its threads do other work while one "
                   "waits; leave the step out");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 2: prefetch(A, i)"});
}

TEST(Tensorize, WantsTheExtentsOfItsIntrinsic) {
  Matmul k(64, 64, 64);
  k.te.split(k.C, "j", 8);
  k.te.reorder(k.C, {"k", "j.inner"});
  k.te.tensorize(k.C, "j.inner", "x86.fma.f32");
  const Error error = expect_error(
      [&] { k.te.build(); }, ErrorKind::Unsupported,
      "cannot tensorize j.inner of C with x86.fma.f32: it is a loop of a multiple of 16, maybe in "
      "one of a few rows, up to 28 times 16 in all, but here there is j.inner of 8");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 3: tensorize(j.inner, x86.fma.f32)"});
}

TEST(Tensorize, WantsSumsThatHaveBegun) {
  Te te;
  const TeExpr n = te.integer(16);
  const TeTensor A = te.placeholder("A", {n});
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return A(v[0]) * A(v[0]); });
  te.arguments({A, B});
  te.tensorize(B, "i", "x86.fma.f32");
  expect_error(
      [&] { te.build(); }, ErrorKind::Unsupported,
      "cannot tensorize i of B with x86.fma.f32: it adds to sums that have begun, but they "
      "begin inside of i; reorder a loop over the reduction to stand outside of it");
}

TEST(Tensorize, WantsALoop) {
  Matmul k(1, 32, 64);
  k.te.reorder(k.C, {"k", "i", "j"});
  k.te.tensorize(k.C, "i", "x86.fma.f32");
  expect_error(
      [&] { k.te.build(); }, ErrorKind::Unsupported,
      "cannot tensorize i of C with x86.fma.f32: it runs once, which is no loop; tensorize "
      "one inside of it");
}

TEST(Tensorize, MarksTheLoopsOfACpu) {
  Matmul k(64, 64, 64);
  k.te.split(k.C, "j", 16);
  k.te.reorder(k.C, {"k", "j.inner"});
  k.te.tensorize(k.C, "j.inner", "x86.fma.f32");
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 64], B: float32[64, 64], C: float32[64, 64]) {
  for i in 0..64 {
    for j.outer in 0..4 {
      for j.inner in 0..16 {
        C[i, j.outer*16 + j.inner] = 0.0
      }
      for k in 0..64 {
        tensorize x86.fma.f32 {
          for j.inner_1 in 0..16 {
            C[i, j.outer*16 + j.inner_1] = C[i, j.outer*16 + j.inner_1] + A[i, k]*B[k, j.outer*16 + j.inner_1]
          }
        }
      }
    }
  }
}
)");
  expect_error(
      [&] { k.te.lowered(TargetKind::Cuda); }, ErrorKind::Unsupported,
      "cannot tensorize j.inner of C on a GPU: x86.fma.f32 is an intrinsic of a CPU; leave "
      "the step out");
}

TEST(Parallel, IsRefusedOnAGpu) {
  Rows k;
  k.te.parallel(k.C, "i");
  expect_error([&] { k.te.lowered(TargetKind::Cuda); }, ErrorKind::Unsupported,
               "cannot run i of C in parallel on a GPU: bind() says there what runs at once; bind "
               "it to blockIdx.x or threadIdx.x");
}

TEST(EnvThreads, SaysWhenTheThreadsStandAroundTheScan) {
  Cumsum k;
  for (const TeTensor& stage : {k.init, k.update}) {
    k.te.split(stage, "i", 32);
    k.te.bind(stage, "i.outer", "blockIdx.x");
    k.te.bind(stage, "i.inner", "threadIdx.x");
  }
  k.te.env_threads(k.scan, {"threadIdx.x"});
  EXPECT_EQ(k.te.notes(),
            (std::vector<std::string>{"the columns of scan are independent, so its time runs "
                                      "inside blockIdx.x, threadIdx.x",
                                      "threadIdx.x stands around the whole of scan"}));
}

TEST(EnvThreads, SaysWhenTheThreadsStartAnewAtEachStep) {
  Cumsum k;
  k.te.split(k.update, "i", 32);
  k.te.bind(k.update, "i.inner", "threadIdx.x");
  k.te.env_threads(k.scan, {"threadIdx.x"});
  EXPECT_EQ(k.te.notes(),
            std::vector<std::string>{"threadIdx.x starts anew at each step of scan: its initial "
                                     "steps and its update are bound differently, or one thread "
                                     "reads what another computed"});
}

TEST(EnvThreads, NeedsABoundAxis) {
  Cumsum k;
  k.te.env_threads(k.scan, {"threadIdx.x"});
  const Error error =
      expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
                   "no axis in scan is bound to threadIdx.x; bind one of its update to it");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: env_threads(scan)"});
}

TEST(SoftwarePipeline, KeepsTheLoopsOnACpu) {
  Rows k;
  k.te.split(k.C, "i", 8);
  k.te.compute_at(k.B, k.C, "i.outer");
  const std::string before = k.te.lowered();
  k.te.software_pipeline(k.C, "i.outer", 3);
  EXPECT_EQ(k.te.lowered(), before);
  EXPECT_EQ(k.te.notes(), std::vector<std::string>{"the 3 stages of i.outer of C run one after the "
                                                   "other: a CPU makes no copies in the "
                                                   "background"});
}

TEST(SoftwarePipeline, NeedsSomethingToRunAhead) {
  Rows k;
  k.te.software_pipeline(k.C, "i", 2);
  const Error error = expect_error(
      [&] { k.te.build(); }, ErrorKind::InvalidArgument,
      "cannot pipeline i of C: nothing is computed at it that could run ahead; compute_at a stage "
      "there");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: software_pipeline(i, stages=2)"});
}

TEST(SoftwarePipeline, NeedsIterationsOneAfterTheOther) {
  Rows k;
  k.te.compute_at(k.B, k.C, "i");
  k.te.parallel(k.C, "i");
  k.te.software_pipeline(k.C, "i", 2);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "cannot pipeline i of C: its iterations do not run one after the other");
}

}  // namespace
}  // namespace kiln::testing
