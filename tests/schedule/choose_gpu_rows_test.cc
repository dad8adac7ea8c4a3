// What rows, columns and transposes become on a GPU, where no step says how they run.
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string automatic(std::string_view definition, std::string_view arch = "sm_90",
                      const CompileOptions& options = {}) {
  const language::TextKernel text = kernel_of(definition);
  const Target target{TargetKind::Cuda, std::string(arch)};
  return lowered_text(text.kernel, choose_schedule(text.kernel, {}, target, options), target,
                      options, "");
}

TEST(ChooseGpuRows, AWarpKeepsARow) {
  EXPECT_EQ(automatic(R"(kernel k(X: float32[8, 200]) -> (Y: float32[8, 200]) {
  M: float32[8]
  M[i] = max[k < 200](X[i, k])
  E: float32[8, 200]
  E[i, j] = exp(X[i, j] - M[i])
  T: float32[8]
  T[i] = sum[k < 200](E[i, k])
  Y[i, j] = E[i, j] / T[i]
})"),
            R"(fn k(X: float32[8, 200], Y: float32[8, 200]) {
  for blockIdx.x in 0..8 bind {
    allocate X.warp: float32[1, 200] scope(warp)
    for ax1.outer.outer in 0..2 unroll {
      for threadIdx.x in 0..32 bind {
        for ax1.inner in 0..4 vectorize {
          if likely(ax1.outer.outer*128 + threadIdx.x*4 + ax1.inner < 200) {
            X.warp[0, ax1.outer.outer*128 + threadIdx.x*4 + ax1.inner] = X[blockIdx.x, ax1.outer.outer*128 + threadIdx.x*4 + ax1.inner]
          }
        }
      }
    }
    allocate M: float32[1] scope(shared)
    for threadIdx.x in 0..32 bind {
      allocate M.own: float32[1] scope(local)
      M.own[0] = -inf
      for k.outer.outer in 0..2 unroll {
        for k.inner in 0..4 unroll {
          if likely(k.outer.outer*128 + threadIdx.x*4 + k.inner < 200) {
            M.own[0] = max(M.own[0], X.warp[0, k.outer.outer*128 + threadIdx.x*4 + k.inner])
          }
        }
      }
      allocate M.other: float32[1] scope(local)
      shuffle 16 of 32: M.other[0] = M.own[0]
      M.own[0] = max(M.own[0], M.other[0])
      shuffle 8 of 32: M.other[0] = M.own[0]
      M.own[0] = max(M.own[0], M.other[0])
      shuffle 4 of 32: M.other[0] = M.own[0]
      M.own[0] = max(M.own[0], M.other[0])
      shuffle 2 of 32: M.other[0] = M.own[0]
      M.own[0] = max(M.own[0], M.other[0])
      shuffle 1 of 32: M.other[0] = M.own[0]
      M.own[0] = max(M.own[0], M.other[0])
      if threadIdx.x == 0 {
        M[0] = M.own[0]
      }
    }
    allocate E: float32[1, 200] scope(warp)
    for j.outer.outer in 0..2 unroll {
      for threadIdx.x in 0..32 bind {
        for j.inner in 0..4 unroll {
          if likely(j.outer.outer*128 + threadIdx.x*4 + j.inner < 200) {
            E[0, j.outer.outer*128 + threadIdx.x*4 + j.inner] = exp(X.warp[0, j.outer.outer*128 + threadIdx.x*4 + j.inner] - M[0])
          }
        }
      }
    }
    allocate T: float32[1] scope(shared)
    for threadIdx.x in 0..32 bind {
      allocate T.own: float32[1] scope(local)
      T.own[0] = 0.0
      for k.outer.outer_1 in 0..2 unroll {
        for k.inner_1 in 0..4 unroll {
          if likely(k.outer.outer_1*128 + threadIdx.x*4 + k.inner_1 < 200) {
            T.own[0] = T.own[0] + E[0, k.outer.outer_1*128 + threadIdx.x*4 + k.inner_1]
          }
        }
      }
      allocate T.other: float32[1] scope(local)
      shuffle 16 of 32: T.other[0] = T.own[0]
      T.own[0] = T.own[0] + T.other[0]
      shuffle 8 of 32: T.other[0] = T.own[0]
      T.own[0] = T.own[0] + T.other[0]
      shuffle 4 of 32: T.other[0] = T.own[0]
      T.own[0] = T.own[0] + T.other[0]
      shuffle 2 of 32: T.other[0] = T.own[0]
      T.own[0] = T.own[0] + T.other[0]
      shuffle 1 of 32: T.other[0] = T.own[0]
      T.own[0] = T.own[0] + T.other[0]
      if threadIdx.x == 0 {
        T[0] = T.own[0]
      }
    }
    for j.outer.outer_1 in 0..2 unroll {
      for threadIdx.x in 0..32 bind {
        for j.inner_1 in 0..4 vectorize {
          if likely(j.outer.outer_1*128 + threadIdx.x*4 + j.inner_1 < 200) {
            Y[blockIdx.x, j.outer.outer_1*128 + threadIdx.x*4 + j.inner_1] = E[0, j.outer.outer_1*128 + threadIdx.x*4 + j.inner_1]/T[0]
          }
        }
      }
    }
  }
}
)");
}

TEST(ChooseGpuRows, ALongRowHasABlock) {
  const std::string text = automatic(R"(kernel k(X: float32[8, 32000]) -> (Y: float32[8, 32000]) {
    S: float32[8]
    S[i] = sum[k < 32000](X[i, k])
    Y[i, j] = X[i, j] / S[i] })");
  // 64 elements a thread.
  EXPECT_NE(text.find("allocate X.warp: float32[1, 32000] scope(warp)"), std::string::npos) << text;
  EXPECT_NE(text.find("for threadIdx.x in 0..512 bind {"), std::string::npos) << text;
}

TEST(ChooseGpuRows, WhatFitsNoRegistersIsReadAgain) {
  const std::string text = automatic(R"(kernel k(X: float32[8, 80000]) -> (Y: float32[8, 80000]) {
    S: float32[8]
    S[i] = sum[k < 80000](X[i, k])
    Y[i, j] = X[i, j] / S[i] })");
  EXPECT_EQ(text.find("scope(warp)"), std::string::npos) << text;
  EXPECT_NE(text.find(" in 0..4 vectorize {"), std::string::npos) << text;
}

/// Another row begins at no multiple of 128 bits.
TEST(ChooseGpuRows, OddRowsMoveOneByOne) {
  const std::string text = automatic(R"(kernel k(X: float32[8, 1001]) -> (Y: float32[8]) {
    Y[i] = sum[k < 1001](X[i, k]) })");
  EXPECT_EQ(text.find("vectorize"), std::string::npos) << text;
  EXPECT_NE(text.find("for threadIdx.x in 0..128 bind {"), std::string::npos) << text;
}

/// The order of the sum would be another one.
TEST(ChooseGpuRows, StrictSumsHaveOneThread) {
  const CompileOptions strict{.strict = true};
  for (const char* const definition :
       {"kernel k(X: float32[8, 1024]) -> (Y: float32[8]) { Y[i] = sum[k < 1024](X[i, k]) }",
        "kernel k(X: float32[1024, 64]) -> (Y: float32[64]) { Y[j] = sum[k < 1024](X[k, j]) }"}) {
    const std::string text = automatic(definition, "sm_90", strict);
    EXPECT_EQ(text.find("shared"), std::string::npos) << text;
    EXPECT_EQ(text.find("shuffle"), std::string::npos) << text;
  }
}

TEST(ChooseGpuRows, ThreadsDivideTheRowsOfColumns) {
  EXPECT_EQ(automatic(R"(kernel k(X: float32[1024, 4096]) -> (Y: float32[4096]) {
  Y[j] = sum[k < 1024](X[k, j])
})"),
            R"(fn k(X: float32[1024, 4096], Y: float32[4096]) {
  for blockIdx.x in 0..128 bind {
    allocate Y.rf: float32[64, 32] scope(shared)
    for threadIdx.x in 0..512 bind {
      allocate Y.rf.local: float32[1, 4] scope(local)
      for j.c in 0..4 vectorize {
        Y.rf.local[0, j.c] = 0.0
      }
      for k.outer in 0..16 {
        for j.c_1 in 0..4 vectorize {
          Y.rf.local[0, j.c_1] = Y.rf.local[0, j.c_1] + X[k.outer*64 + floordiv(threadIdx.x, 8), blockIdx.x*32 + floormod(threadIdx.x, 8)*4 + j.c_1]
        }
      }
      for j.inner in 0..4 vectorize {
        Y.rf[floordiv(threadIdx.x, 8), floormod(threadIdx.x, 8)*4 + j.inner] = Y.rf.local[0, j.inner]
      }
    }
    for threadIdx.x in 0..32 bind {
      Y[blockIdx.x*32 + threadIdx.x] = 0.0
      for k.inner.v in 0..64 {
        Y[blockIdx.x*32 + threadIdx.x] = Y[blockIdx.x*32 + threadIdx.x] + Y.rf[k.inner.v, threadIdx.x]
      }
    }
  }
}
)");
}

/// So that there are as many blocks as multiprocessors.
TEST(ChooseGpuRows, FewColumnsAreFewerABlock) {
  const char* const definition =
      "kernel k(X: float32[8192, 1024]) -> (Y: float32[1024]) { Y[j] = sum[k < 8192](X[k, j]) }";
  EXPECT_NE(automatic(definition).find("Y.rf: float32[256, 8]"), std::string::npos);
  // A T4 has fewer.
  EXPECT_NE(automatic(definition, "sm_75").find("Y.rf: float32[64, 32]"), std::string::npos);
}

TEST(ChooseGpuRows, TilesOfATransposePassSharedMemory) {
  EXPECT_EQ(automatic(R"(kernel k(X: float32[96, 64]) -> (Y: float32[64, 96]) {
  Y[i, j] = X[j, i]
})"),
            R"(fn k(X: float32[96, 64], Y: float32[64, 96]) {
  for blockIdx.x in 0..6 bind {
    allocate X.shared: float32[32, 32] scope(shared) swizzle(128)
    for threadIdx.y in 0..8 bind {
      for threadIdx.x in 0..8 bind {
        for ax0.outer in 0..4 unroll {
          for ax1.inner in 0..4 vectorize {
            X.shared[ax0.outer*8 + threadIdx.y, threadIdx.x*4 + ax1.inner] = X[floormod(blockIdx.x, 3)*32 + ax0.outer*8 + threadIdx.y, floordiv(blockIdx.x, 3)*32 + threadIdx.x*4 + ax1.inner]
          }
        }
      }
    }
    for threadIdx.y in 0..8 bind {
      for threadIdx.x in 0..8 bind {
        for i.inner.outer in 0..4 unroll {
          for j.inner.inner in 0..4 vectorize {
            Y[floordiv(blockIdx.x, 3)*32 + i.inner.outer*8 + threadIdx.y, floormod(blockIdx.x, 3)*32 + threadIdx.x*4 + j.inner.inner] = X.shared[threadIdx.x*4 + j.inner.inner, i.inner.outer*8 + threadIdx.y]
          }
        }
      }
    }
  }
}
)");
}

/// What lies along the last axis is read where it lies.
TEST(ChooseGpuRows, OnlyWhatLiesAcrossPassesSharedMemory) {
  const std::string text = automatic(
      R"(kernel k(A: float32[64, 64], B: float32[64, 64]) -> (Y: float32[64, 64]) {
        Y[i, j] = A[i, j] + B[j, i] })");
  EXPECT_NE(text.find("allocate B.shared: float32[32, 32] scope(shared) swizzle(128)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("A.shared"), std::string::npos) << text;
}

/// One tensor would need a copy of both places.
TEST(ChooseGpuRows, WhatIsReadAtTwoPlacesAcrossHasNoTile) {
  const std::string text = automatic(
      "kernel k(X: float32[n, n, 64]) -> (Y: float32[n, 64, n]) {\n"
      "  Y[i, j, l] = min(X[l, i, j], X[i, l, j])\n}");
  EXPECT_EQ(text.find("scope(shared)"), std::string::npos) << text;
}

TEST(ChooseGpuRows, WhatIsReadBothWaysHasNoTile) {
  const std::string text = automatic(
      "kernel k(A: float32[64, 64]) -> (Y: float32[64, 64]) { Y[i, j] = A[i, j] + A[j, i] }");
  EXPECT_EQ(text.find("shared"), std::string::npos) << text;
}

}  // namespace
}  // namespace kiln::testing
