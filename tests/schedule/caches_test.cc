#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

/// The loops of a kernel under its schedule for the CPU.
std::string loops_of(std::string_view text, TargetKind target = TargetKind::Llvm) {
  const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
  return lowered_text(kernel.kernel, kernel.schedules.at(0).second, Target{.kind = target},
                      CompileOptions{}, "");
}

constexpr std::string_view kProduct =
    "kernel k(A: float32[100, 64], B: float32[64, 96]) -> (C: float32[100, 96]) {{\n"
    "  C[i, j] = sum[k < 64](A[i, k] * B[k, j])\n"
    "  schedule cpu {{ {} }}\n"
    "}}\n";

std::string product(std::string_view steps) { return fmt::format(kProduct, steps); }

TEST(CacheRead, CopiesWhatATileNeeds) {
  EXPECT_EQ(loops_of(product(
                "cache_read(A, shared, C) split(C.i, factor=32) compute_at(A.shared, C.i.outer)")),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  for i.outer in 0..4 {
    allocate A.shared: float32[32, 64] scope(shared)
    for ax0 in 0..32 {
      if likely(i.outer*32 + ax0 < 100) {
        for ax1 in 0..64 {
          A.shared[ax0, ax1] = A[i.outer*32 + ax0, ax1]
        }
      }
    }
    for i.inner in 0..32 {
      if likely(i.outer*32 + i.inner < 100) {
        for j in 0..96 {
          C[i.outer*32 + i.inner, j] = 0.0
          for k in 0..64 {
            C[i.outer*32 + i.inner, j] = C[i.outer*32 + i.inner, j] + A.shared[i.inner, k]*B[k, j]
          }
        }
      }
    }
  }
}
)");
}

// Without rows nothing of B is read, so that no index into it is outside.
TEST(CacheRead, ReadsNothingForAReaderWithoutIterations) {
  EXPECT_EQ(loops_of("kernel k(A: float32[n, m], B: float32[p, q]) -> (C: float32[n, m]) {\n"
                     "  C[i, j] = sum[k < m](A[i, k] * B[k, j])\n"
                     "  schedule cpu { cache_read(B, global, C, C.j, C.k) }\n"
                     "}\n"),
            R"(fn k(A: float32[n, m], B: float32[p, q], C: float32[n, m]) {
  allocate B.global: float32[m, m] scope(global)
  if likely(0 < n) {
    for j in 0..m {
      check j < q #1
      for k in 0..m {
        check k < p #0
        B.global[j, k] = B[k, j]
      }
    }
  }
  for i in 0..n {
    for j_1 in 0..m {
      C[i, j_1] = 0.0
      for k_1 in 0..m {
        C[i, j_1] = C[i, j_1] + A[i, k_1]*B.global[j_1, k_1]
      }
    }
  }
}
)");
}

TEST(CacheRead, HasTheLayoutOfOneReader) {
  expect_error(
      [&] {
        loops_of(
            "kernel k(A: float32[n, n]) -> (B: float32[n, n], C: float32[n, n]) {\n"
            "  B[i, j] = A[i, j] + 1\n"
            "  C[i, j] = A[i, j] * 2\n"
            "  schedule cpu { cache_read(A, global, B, C, B.j) }\n"
            "}\n");
      },
      ErrorKind::InvalidArgument,
      "the layout of a copy of A is the order of one reader's loops, but it has 2 readers");
}

TEST(CacheRead, CannotKnowWhetherALoopThatDependsOnOthersHasIterations) {
  expect_error(
      [&] {
        loops_of(
            "kernel k(A: float32[n, n], B: float32[p]) -> (C: float32[n, n]) {\n"
            "  C[i, j] = sum[k < i + 1](A[i, k] * B[j])\n"
            "  schedule cpu { cache_read(B, global, C, C.j) }\n"
            "}\n");
      },
      ErrorKind::Unsupported,
      "the layout of B.global leaves out k, whose extent depends on other loops");
}

TEST(CacheRead, TakesTheLayoutOfLoopsOfItsReader) {
  EXPECT_EQ(loops_of(product("split(C.j, factor=40) reorder(C.j.outer, C.i, C.k, C.j.inner) "
                             "cache_read(B, global, C, C.j.outer, C.k, C.j.inner) "
                             "compute_at(B.global, C.j.outer)")),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  for j.outer in 0..3 {
    allocate B.global: float32[1, 64, 40] scope(global)
    for k in 0..64 {
      for j.inner in 0..40 {
        if likely(j.outer*40 + j.inner < 96) {
          B.global[0, k, j.inner] = B[k, j.outer*40 + j.inner]
        }
      }
    }
    for i in 0..100 {
      for j.inner_1 in 0..40 {
        if likely(j.outer*40 + j.inner_1 < 96) {
          C[i, j.outer*40 + j.inner_1] = 0.0
        }
      }
      for k_1 in 0..64 {
        for j.inner_2 in 0..40 {
          if likely(j.outer*40 + j.inner_2 < 96) {
            C[i, j.outer*40 + j.inner_2] = C[i, j.outer*40 + j.inner_2] + A[i, k_1]*B.global[0, k_1, j.inner_2]
          }
        }
      }
    }
  }
}
)");
}

TEST(CacheRead, LayoutOfAWindowHasEachPlaceOfIt) {
  EXPECT_EQ(loops_of("kernel k(X: float32[9], W: float32[3]) -> (Y: float32[7]) {\n"
                     "  Y[i] = sum[k < 3](X[i + k] * W[k])\n"
                     "  schedule cpu { cache_read(X, global, Y, Y.k, Y.i) }\n"
                     "}\n"),
            R"(fn k(X: float32[9], W: float32[3], Y: float32[7]) {
  allocate X.global: float32[3, 7] scope(global)
  for k in 0..3 {
    for i in 0..7 {
      X.global[k, i] = X[i + k]
    }
  }
  for i_1 in 0..7 {
    Y[i_1] = 0.0
    for k_1 in 0..3 {
      Y[i_1] = Y[i_1] + X.global[k_1, i_1]*W[k_1]
    }
  }
}
)");
}

TEST(CacheRead, LayoutReachesAReductionInsideAnExpression) {
  EXPECT_EQ(loops_of("kernel k(A: float32[4, 8], w: float32[8]) -> (C: float32[4]) {\n"
                     "  C[i] = tanh(sum[k < 8](A[i, k] * w[7 - k]))\n"
                     "  schedule cpu { cache_read(w, global, C, C.k) }\n"
                     "}\n"),
            R"(fn k(A: float32[4, 8], w: float32[8], C: float32[4]) {
  allocate w.global: float32[8] scope(global)
  for k in 0..8 {
    w.global[k] = w[7 - k]
  }
  for i in 0..4 {
    allocate C.sum: float32[1] scope(global)
    C.sum[0] = 0.0
    for k_1 in 0..8 {
      C.sum[0] = C.sum[0] + A[i, k_1]*w.global[k_1]
    }
    C[i] = tanh(C.sum[0])
  }
}
)");
}

TEST(CacheRead, OfThreadsIntoSharedMemoryIsDoneByAllOfThem) {
  const std::string steps =
      "cache_read(A, shared, C) split(C.i, factor=8) bind(C.i.outer, blockIdx.x) "
      "bind(C.i.inner, threadIdx.y) bind(C.j, threadIdx.x) split(C.k, factor=4) "
      "compute_at(A.shared, C.k.outer) bind(A.shared.ax1, threadIdx.x)";
  // What all threads of the block read, once a block; a guard of C stands inside, since all threads
  // take part.
  EXPECT_EQ(loops_of(product(steps), TargetKind::Cuda),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  for blockIdx.x in 0..13 bind {
    allocate A.shared: float32[8, 4] scope(shared)
    for threadIdx.y in 0..8 bind {
      for threadIdx.x in 0..96 bind {
        if likely(blockIdx.x*8 + threadIdx.y < 100) {
          C[blockIdx.x*8 + threadIdx.y, threadIdx.x] = 0.0
        }
        for k.outer in 0..16 {
          for threadIdx.y_1 in 0..1 bind(threadIdx.y) {
            for ax0 in 0..8 {
              if likely(blockIdx.x*8 + ax0 < 100) {
                for threadIdx.x_1 in 0..4 bind(threadIdx.x) {
                  A.shared[ax0, threadIdx.x_1] = A[blockIdx.x*8 + ax0, k.outer*4 + threadIdx.x_1]
                }
              }
            }
          }
          if likely(blockIdx.x*8 + threadIdx.y < 100) {
            for k.inner in 0..4 {
              C[blockIdx.x*8 + threadIdx.y, threadIdx.x] = C[blockIdx.x*8 + threadIdx.y, threadIdx.x] + A.shared[threadIdx.y, k.inner]*B[k.outer*4 + k.inner, threadIdx.x]
            }
          }
        }
      }
    }
  }
}
)");
  EXPECT_EQ(loops_of(product(steps)),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  for blockIdx.x in 0..13 bind {
    for threadIdx.y in 0..8 bind {
      if likely(blockIdx.x*8 + threadIdx.y < 100) {
        for threadIdx.x in 0..96 bind {
          C[blockIdx.x*8 + threadIdx.y, threadIdx.x] = 0.0
          for k.outer in 0..16 {
            allocate A.shared: float32[1, 4] scope(shared)
            for threadIdx.x_1 in 0..4 bind(threadIdx.x) {
              A.shared[0, threadIdx.x_1] = A[blockIdx.x*8 + threadIdx.y, k.outer*4 + threadIdx.x_1]
            }
            for k.inner in 0..4 {
              C[blockIdx.x*8 + threadIdx.y, threadIdx.x] = C[blockIdx.x*8 + threadIdx.y, threadIdx.x] + A.shared[0, k.inner]*B[k.outer*4 + k.inner, threadIdx.x]
            }
          }
        }
      }
    }
  }
}
)");
}

/// Memory that a block shares needs one: a launch over threads alone is a single block.
TEST(CacheRead, OfThreadsWithoutBlocksIsIntoTheMemoryOfAnOnlyBlock) {
  EXPECT_EQ(
      loops_of("kernel k(A: float32[4, 64]) -> (C: float32[4, 64]) {\n"
               "  C[i, j] = A[i, 63 - j]\n"
               "  schedule cuda { cache_read(A, shared, C) bind(C.j, threadIdx.x)\n"
               "    reorder(C.j, C.i) compute_at(A.shared, C.i) bind(A.shared.ax1, threadIdx.x) }\n"
               "}\n",
               TargetKind::Cuda),
      R"(fn k(A: float32[4, 64], C: float32[4, 64]) {
  for blockIdx.x in 0..1 bind {
    allocate A.shared: float32[1, 64] scope(shared)
    for threadIdx.x in 0..64 bind {
      for i in 0..4 {
        for threadIdx.x_1 in 0..64 bind(threadIdx.x) {
          A.shared[0, threadIdx.x_1] = A[i, threadIdx.x_1]
        }
        C[i, threadIdx.x] = A.shared[0, 63 - threadIdx.x]
      }
    }
  }
}
)");
}

TEST(CacheRead, OfThreadsIsRefusedWhereBlocksStandInsideOfThem) {
  const auto text = [](int64_t rows) {
    return fmt::format(
        "kernel k(A: float32[{0}, 64]) -> (C: float32[{0}, 64]) {{\n"
        "  C[i, j] = A[i, 63 - j]\n"
        "  schedule cuda {{ cache_read(A, shared, C) reorder(C.j, C.i) bind(C.j, threadIdx.x)\n"
        "    compute_at(A.shared, C.j) bind(A.shared.ax1, threadIdx.x)\n"
        "    bind(C.i, blockIdx.x) }}\n"
        "}}\n",
        rows);
  };
  expect_error(
      [&] { loops_of(text(4), TargetKind::Cuda); }, ErrorKind::Unsupported,
      "A.shared cannot lie in shared memory: loops over blockIdx stand inside of its loops "
      "over threadIdx, so that no block could fill it for itself; reorder the loops so "
      "that blockIdx comes first");
  // An only block is there for all threads.
  EXPECT_NE(loops_of(text(1), TargetKind::Cuda).find("for blockIdx.x in 0..1 bind {\n    allocate"),
            std::string::npos);
}

TEST(CacheRead, IsNotFilledByThreadsInALoopThatDataBounds) {
  const std::string text =
      "kernel k(X: float32[8, 64], N: int32[64]) -> (T: float32[64]) {\n"
      "  T[i] = min[r < int64(N[i])](X[r, i])\n"
      "  schedule cpu { cache_read(X, shared, T) bind(T.i, threadIdx.x) compute_at(X.shared, T.r) "
      "}\n"
      "}\n";
  expect_error([&] { loops_of(text, TargetKind::Cuda); }, ErrorKind::Unsupported,
               "the threads of a block cannot fill X.shared together inside r: data says for each "
               "thread how often it runs; compute X.shared outside of r");
}

/// Not for as many elements as the type of the data could ask for.
TEST(CacheRead, IsWholeWhereDataSaysHowMuchIsRead) {
  EXPECT_EQ(loops_of(R"(
kernel k(X: float32[n, 64], N: int32[64]) -> (T: float32[64]) {
  T[i] = min[r < int64(N[i])](X[r, i])
  schedule cpu { cache_read(X, local, T) compute_at(X.local, T.i) }
})"),
            R"(fn k(X: float32[n, 64], N: int32[64], T: float32[64]) {
  for i in 0..64 {
    allocate X.local: float32[n, 1] scope(local)
    for ax0 in 0..n {
      X.local[ax0, 0] = X[ax0, i]
    }
    T[i] = inf
    for r in 0..max(int64(N[i]), 0) {
      check r < n #0
      T[i] = min(T[i], X.local[r, 0])
    }
  }
}
)");
}

TEST(CacheRead, OfWhatACopyIsTheIndexOfComesAfterThatCopy) {
  EXPECT_EQ(loops_of(R"(
kernel k(X: float32[2], N: int8[5]) -> (T: float32[5]) {
  T[i] = X[floormod(int64(N[i]), 2)] + 3
  schedule cpu { cache_read(N, local, T, T.i) cache_read(X, local, T, T.i) }
})"),
            R"(fn k(X: float32[2], N: int8[5], T: float32[5]) {
  allocate N.local: int8[5] scope(local)
  for i in 0..5 {
    N.local[i] = N[i]
  }
  allocate X.local: float32[5] scope(local)
  for i_1 in 0..5 {
    X.local[i_1] = X[floormod(int64(N.local[i_1]), 2)]
  }
  for i_2 in 0..5 {
    T[i_2] = X.local[i_2] + 3.0
  }
}
)");
}

TEST(CacheRead, HasAsManyIterationsAsThereAreThreads) {
  expect_error(
      [] {
        loops_of(product("cache_read(A, shared, C) split(C.i, factor=8) "
                         "bind(C.i.outer, blockIdx.x) bind(C.i.inner, threadIdx.x) "
                         "compute_at(A.shared, C.i.inner) bind(A.shared.ax1, threadIdx.x)"),
                 TargetKind::Cuda);
      },
      ErrorKind::Unsupported,
      "cannot bind ax1 of A.shared to threadIdx.x: it has 64 iterations, but i.inner, inside which "
      "it runs, has 8; split ax1 into 8 parts first");
}

TEST(CacheRead, OfTheBaseOfAScatterIsUpdatedInPlace) {
  EXPECT_EQ(loops_of(R"(
kernel k(X: float32[8], idx: int64[5]) -> (S: float32[8]) {
  T: float32[8]
  T[i] = X[i] + 1
  S = scatter_add[r < 5](T, idx[r], 2)
  schedule cpu { cache_read(T, local, S) }
})"),
            R"(fn k(X: float32[8], idx: int64[5], S: float32[8]) {
  allocate T: float32[8] scope(global)
  for i in 0..8 {
    T[i] = X[i] + 1.0
  }
  for ax0 in 0..8 {
    S[ax0] = T[ax0]
  }
  for r in 0..5 {
    check idx[r] < 8 #0
    S[idx[r]] = S[idx[r]] + 2.0
  }
}
)");
}

TEST(CacheRead, OfAnInputThatAScatterStartsFromIsCopiedOnce) {
  EXPECT_EQ(loops_of(R"(
kernel k(X: float32[8], idx: int64[5]) -> (S: float32[8]) {
  S = scatter_add[r < 5](X, idx[r], 2)
  schedule cpu { cache_read(X, local, S) }
})"),
            R"(fn k(X: float32[8], idx: int64[5], S: float32[8]) {
  allocate X.local: float32[8] scope(local)
  for ax0 in 0..8 {
    X.local[ax0] = X[ax0]
  }
  for i0 in 0..8 {
    S[i0] = X.local[i0]
  }
  for r in 0..5 {
    check idx[r] < 8 #0
    S[idx[r]] = S[idx[r]] + 2.0
  }
}
)");
}

TEST(CacheRead, OfAStateThatNeverChangesIsNotRun) {
  EXPECT_EQ(loops_of(R"(
kernel k(X: float32[1, 4]) -> (S: float32[1, 4]) {
  scan t { S[0, i] = X[0, i]  S[t, i] = S[t - 1, i] + X[t, i] }
  schedule cpu { cache_read(S.state, local, S.update) }
})"),
            R"(fn k(X: float32[1, 4], S: float32[1, 4]) {
  for i in 0..4 {
    S[0, i] = X[0, i]
  }
}
)");
}

TEST(CacheWrite, ComputesATileInItsOwnMemory) {
  EXPECT_EQ(loops_of(product(
                "cache_write(C, local) tile(C.i, C.j, 32, 16) compute_at(C.local, C.j.outer)")),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  for i.outer in 0..4 {
    for j.outer in 0..6 {
      allocate C.local: float32[32, 16] scope(local)
      for i.c in 0..32 {
        if likely(i.outer*32 + i.c < 100) {
          for j.c in 0..16 {
            C.local[i.c, j.c] = 0.0
            for k in 0..64 {
              C.local[i.c, j.c] = C.local[i.c, j.c] + A[i.outer*32 + i.c, k]*B[k, j.outer*16 + j.c]
            }
          }
        }
      }
      for i.inner in 0..32 {
        if likely(i.outer*32 + i.inner < 100) {
          for j.inner in 0..16 {
            C[i.outer*32 + i.inner, j.outer*16 + j.inner] = C.local[i.inner, j.inner]
          }
        }
      }
    }
  }
}
)");
}

TEST(CacheWrite, TakesItsLayoutFromTheLoopsBefore) {
  EXPECT_EQ(loops_of(product("tile(C.i, C.j, 32, 16) cache_write(C, local)")),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  allocate C.local: float32[4, 6, 32, 16] scope(local)
  for i.outer.c in 0..4 {
    for j.outer.c in 0..6 {
      for i.inner.c in 0..32 {
        if likely(i.outer.c*32 + i.inner.c < 100) {
          for j.inner.c in 0..16 {
            C.local[i.outer.c, j.outer.c, i.inner.c, j.inner.c] = 0.0
            for k in 0..64 {
              C.local[i.outer.c, j.outer.c, i.inner.c, j.inner.c] = C.local[i.outer.c, j.outer.c, i.inner.c, j.inner.c] + A[i.outer.c*32 + i.inner.c, k]*B[k, j.outer.c*16 + j.inner.c]
            }
          }
        }
      }
    }
  }
  for i in 0..100 {
    for j in 0..96 {
      C[i, j] = C.local[floordiv(i, 32), floordiv(j, 16), floormod(i, 32), floormod(j, 16)]
    }
  }
}
)");
}

TEST(Rfactor, ReducesInParallel) {
  EXPECT_EQ(loops_of(product("split(C.k, factor=24) rfactor(C.k.outer) parallel(C.rf.k.outer)")),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  allocate C.rf: float32[3, 100, 96] scope(global)
  for k.outer in 0..3 parallel {
    for i in 0..100 {
      for j in 0..96 {
        C.rf[k.outer, i, j] = 0.0
        for k.inner in 0..24 {
          if likely(k.outer*24 + k.inner < 64) {
            C.rf[k.outer, i, j] = C.rf[k.outer, i, j] + A[i, k.outer*24 + k.inner]*B[k.outer*24 + k.inner, j]
          }
        }
      }
    }
  }
  for i_1 in 0..100 {
    for j_1 in 0..96 {
      C[i_1, j_1] = 0.0
      for k.outer.v in 0..3 {
        C[i_1, j_1] = C[i_1, j_1] + C.rf[k.outer.v, i_1, j_1]
      }
    }
  }
}
)");
}

TEST(Rfactor, PutsThePartialResultsWhereAsked) {
  EXPECT_EQ(loops_of(product(
                "split(C.k, factor=24) rfactor(C.k.inner, factor_axis=2) compute_at(C.rf, C.j)")),
            R"(fn k(A: float32[100, 64], B: float32[64, 96], C: float32[100, 96]) {
  for i in 0..100 {
    for j in 0..96 {
      allocate C.rf: float32[1, 1, 24] scope(global)
      for k.inner in 0..24 {
        C.rf[0, 0, k.inner] = 0.0
        for k.outer in 0..3 {
          if likely(k.outer*24 + k.inner < 64) {
            C.rf[0, 0, k.inner] = C.rf[0, 0, k.inner] + A[i, k.outer*24 + k.inner]*B[k.outer*24 + k.inner, j]
          }
        }
      }
      C[i, j] = 0.0
      for k.inner.v in 0..24 {
        C[i, j] = C[i, j] + C.rf[0, 0, k.inner.v]
      }
    }
  }
}
)");
}

void expect_refused(std::string_view steps, ErrorKind kind, std::string_view message) {
  SCOPED_TRACE(steps);
  expect_error([&] { loops_of(product(steps)); }, kind, message);
}

TEST(CacheRead, RefusesWhatMakesNoSense) {
  const ErrorKind wrong = ErrorKind::InvalidArgument;
  expect_refused("cache_read(A, sharedd, C)", wrong,
                 "unknown memory scope sharedd; known: global, shared, shared.dyn, local, warp, "
                 "wmma.matrix_a, wmma.matrix_b, wmma.accumulator");
  expect_refused("cache_read(A, shared)", wrong,
                 "cache_read of A names no stage that reads the copy");
  expect_refused("cache_read(A, shared, B)", wrong, "B does not read A: it is a placeholder");
  expect_refused("cache_read(A, shared, C, C)", wrong, "cache_read of A names the reader C twice");
  expect_refused("cache_read(A, shared, C) cache_read(A, local, C)", wrong, "C does not read A");
}

TEST(CacheWrite, RefusesWhatMakesNoSense) {
  const ErrorKind wrong = ErrorKind::InvalidArgument;
  expect_refused("cache_write(A, local)", wrong,
                 "A is a placeholder; steps apply to what is computed");
  expect_refused("cache_write(C, global) split(C.k, factor=4)", wrong,
                 "C is now a copy; the reduction is in C.global");
  expect_refused(
      "split(C.i, factor=4) cache_write(C, global) unroll(C.i.inner)", wrong,
      "C is now a copy of C.global, with its own axes as loops; i.inner gave the copy its "
      "layout");
  expect_refused("split(C.k, factor=4) cache_write(C, local)", wrong,
                 "reduction axis k.outer of C was made at line 3; cache_write C before that, and "
                 "split the axes of the new stage");
  expect_refused("parallel(C.i) cache_write(C, local)", wrong,
                 "axis i of C was made parallel at line 3; cache_write C before that");
  expect_refused("cache_read(A, local, C) compute_at(A.local, C.i) cache_write(C, local)", wrong,
                 "A.local is computed at axis i of C; cache_write C before compute_at");
}

TEST(Rfactor, RefusesWhatMakesNoSense) {
  const ErrorKind wrong = ErrorKind::InvalidArgument;
  expect_refused("rfactor(C.i)", wrong,
                 "axis i of C is not a reduction axis; rfactor takes a reduction axis or a part of "
                 "one");
  expect_refused("rfactor(C.k, factor_axis=3)", wrong,
                 "factor_axis is 3, but the partial results of C have the dimensions 0 to 2");
  expect_refused("unroll(C.k) rfactor(C.k)", wrong,
                 "axis k of C was unrolled at line 3; rfactor C before that");
  expect_refused("split(C.k, factor=8) rfactor(C.k.inner) split(C.k.outer, factor=2)", wrong,
                 "C now reduces what C.rf has; the reduction over k.outer is in C.rf");
}

TEST(SetScope, RefusesOutputs) {
  expect_refused(
      "set_scope(C, local)", ErrorKind::InvalidArgument,
      "C is an output, whose memory is the caller's; set the scope of a cache_write of it");
}

}  // namespace
}  // namespace kiln::testing
