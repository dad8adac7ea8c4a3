#include "compiler/autoschedule/choose/choose_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text.h"
#include "tests/schedule/kernels.h"

namespace kiln::testing {
namespace {

TEST(ChooseSchedule, GivesElementsVectorsAndCores) {
  AddOne k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i in 0..n parallel {
    for j.outer in 0..floordiv(m + 31, 32) {
      for j.inner in 0..32 vectorize {
        if likely(j.outer*32 + j.inner < m) {
          B[i, j.outer*32 + j.inner] = A[i, j.outer*32 + j.inner] + 1.0
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, KeepsSmallKernelsOnOneCore) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(20), te.integer(30)});
  const TeTensor B = te.compute("B", "i j", {te.integer(20), te.integer(30)},
                                [&](auto v) { return A(v[0], v[1]) + te.real(1); });
  te.arguments({A, B});
  EXPECT_EQ(te.automatic(), R"(fn k(A: float32[20, 30], B: float32[20, 30]) {
  for i.j.fused.outer in 0..19 {
    for i.j.fused.inner in 0..32 vectorize {
      if likely(i.j.fused.outer*32 + i.j.fused.inner < 600) {
        B[floordiv(i.j.fused.outer*32 + i.j.fused.inner, 30), floormod(i.j.fused.outer*32 + i.j.fused.inner, 30)] = A[floordiv(i.j.fused.outer*32 + i.j.fused.inner, 30), floormod(i.j.fused.outer*32 + i.j.fused.inner, 30)] + 1.0
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, TilesAProduct) {
  Matmul k;
  EXPECT_EQ(k.te.automatic(),
            R"(fn k[n, m, l](A: float32[n, l], B: float32[l, m], C: float32[n, m]) {
  for i.outer in 0..floordiv(n + 7, 8) parallel {
    for j.outer in 0..floordiv(m + 31, 32) {
      for i.inner in 0..8 unroll {
        if likely(i.outer*8 + i.inner < n) {
          for j.inner in 0..32 vectorize {
            if likely(j.outer*32 + j.inner < m) {
              C[i.outer*8 + i.inner, j.outer*32 + j.inner] = 0.0
            }
          }
        }
      }
      for k in 0..l {
        for i.inner_1 in 0..8 unroll {
          if likely(i.outer*8 + i.inner_1 < n) {
            for j.inner_1 in 0..32 vectorize {
              if likely(j.outer*32 + j.inner_1 < m) {
                C[i.outer*8 + i.inner_1, j.outer*32 + j.inner_1] = C[i.outer*8 + i.inner_1, j.outer*32 + j.inner_1] + A[i.outer*8 + i.inner_1, k]*B[k, j.outer*32 + j.inner_1]
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

TEST(ChooseSchedule, TakesVectorsAlongTheReductionOfAFewRowsOfATransposedProduct) {
  Te te;
  const TeExpr m = te.integer(16);
  const TeExpr n = te.integer(256);
  const TeTensor A = te.placeholder("A", {m, n});
  const TeTensor B = te.placeholder("B", {n, n});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor C =
      te.compute("C", "i j", {m, n}, [&](auto v) { return te.sum(A(v[0], k) * B(v[1], k), {k}); });
  te.arguments({A, B, C});
  EXPECT_EQ(te.automatic(),
            R"(fn k(A: float32[16, 256], B: float32[256, 256], C: float32[16, 256]) {
  for j.outer in 0..64 parallel {
    for i.outer in 0..4 {
      for i.inner in 0..4 unroll {
        for j.inner in 0..4 unroll {
          C[i.outer*4 + i.inner, j.outer*4 + j.inner] = 0.0
        }
      }
      for k.outer in 0..16 {
        for i.inner_1 in 0..4 unroll {
          for j.inner_1 in 0..4 unroll {
            for k.inner in 0..16 vectorize {
              C[i.outer*4 + i.inner_1, j.outer*4 + j.inner_1] = C[i.outer*4 + i.inner_1, j.outer*4 + j.inner_1] + A[i.outer*4 + i.inner_1, k.outer*16 + k.inner]*B[j.outer*4 + j.inner_1, k.outer*16 + k.inner]
            }
          }
        }
      }
    }
  }
}
)");
  // Strict code adds in the order of the definition.
  EXPECT_EQ(te.automatic(TargetKind::Llvm, CompileOptions{.strict = true}),
            R"(fn k(A: float32[16, 256], B: float32[256, 256], C: float32[16, 256]) {
  for j.outer in 0..6 parallel {
    allocate B.global: float32[1, 256, 48] scope(global)
    for k.outer in 0..16 {
      for j.inner.outer in 0..3 {
        for j.inner.inner in 0..16 unroll {
          if likely(j.outer*48 + j.inner.outer*16 + j.inner.inner < 256) {
            for k.inner in 0..16 vectorize {
              B.global[0, k.outer*16 + k.inner, j.inner.outer*16 + j.inner.inner] = B[j.outer*48 + j.inner.outer*16 + j.inner.inner, k.outer*16 + k.inner]
            }
          }
        }
      }
    }
    for i.outer in 0..2 {
      for i.inner in 0..8 unroll {
        for j.inner in 0..48 vectorize {
          if likely(j.outer*48 + j.inner < 256) {
            C[i.outer*8 + i.inner, j.outer*48 + j.inner] = 0.0
          }
        }
      }
      for k in 0..256 {
        for i.inner_1 in 0..8 unroll {
          for j.inner_1 in 0..48 vectorize {
            if likely(j.outer*48 + j.inner_1 < 256) {
              C[i.outer*8 + i.inner_1, j.outer*48 + j.inner_1] = C[i.outer*8 + i.inner_1, j.outer*48 + j.inner_1] + A[i.outer*8 + i.inner_1, k]*B.global[0, k, j.inner_1]
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, SumsRowsInVectors) {
  RowSum k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(A: float32[n, m], B: float32[n]) {
  for i in 0..n parallel {
    B[i] = 0.0
    for k.outer in 0..floordiv(m + 31, 32) {
      for k.inner in 0..32 vectorize {
        if likely(k.outer*32 + k.inner < m) {
          B[i] = B[i] + A[i, k.outer*32 + k.inner]
        }
      }
    }
  }
}
)");
}

/// B[i, j] = A[i, j] - sum(A[i, k]): one sum a row.
struct MinusRowSum {
  Te te;
  MinusRowSum() {
    const TeExpr n = te.integer(64);
    const TeExpr m = te.integer(1024);
    const TeTensor A = te.placeholder("A", {n, m});
    const TeExpr k = te.reduce_axis("k", te.integer(0), m);
    const TeTensor B = te.compute("B", "i j", {n, m},
                                  [&](auto v) { return A(v[0], v[1]) - te.sum(A(v[0], k), {k}); });
    te.arguments({A, B});
  }
};

TEST(ChooseSchedule, LeavesASumOverNothingAlone) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(16)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(-5));
  const TeTensor S = te.compute("S", "", {}, [&](auto) { return te.sum(A(k), {k}); });
  te.arguments({A, S});
  EXPECT_EQ(te.automatic().find("vectorize"), std::string::npos);
}

TEST(ChooseSchedule, SumsInsideOfAnExpressionInVectors) {
  MinusRowSum k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(A: float32[64, 1024], B: float32[64, 1024]) {
  for i in 0..64 parallel {
    allocate B.sum: float32[1] scope(global)
    B.sum[0] = 0.0
    for k.outer in 0..16 {
      for k.inner in 0..64 vectorize {
        B.sum[0] = B.sum[0] + A[i, k.outer*64 + k.inner]
      }
    }
    for j.outer in 0..32 {
      for j.inner in 0..32 vectorize {
        B[i, j.outer*32 + j.inner] = A[i, j.outer*32 + j.inner] - B.sum[0]
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, SumsInsideOfAnExpressionInOrderWhenStrict) {
  MinusRowSum k;
  EXPECT_EQ(k.te.automatic(TargetKind::Llvm, CompileOptions{.strict = true}),
            R"(fn k(A: float32[64, 1024], B: float32[64, 1024]) {
  for i in 0..64 parallel {
    allocate B.sum: float32[1] scope(global)
    B.sum[0] = 0.0
    for k in 0..1024 {
      B.sum[0] = B.sum[0] + A[i, k]
    }
    for j.outer in 0..32 {
      for j.inner in 0..32 vectorize {
        B[i, j.outer*32 + j.inner] = A[i, j.outer*32 + j.inner] - B.sum[0]
      }
    }
  }
}
)");
}

/// C[i, j] = 1 + sum(max(A[i, k], B[j, k])): one sum an element.
TEST(ChooseSchedule, LeavesTheVectorsToASumForEachElement) {
  Te te;
  const TeExpr n = te.integer(64);
  const TeExpr m = te.integer(48);
  const TeExpr l = te.integer(256);
  const TeTensor A = te.placeholder("A", {n, l});
  const TeTensor B = te.placeholder("B", {m, l});
  const TeExpr k = te.reduce_axis("k", te.integer(0), l);
  const TeTensor C = te.compute("C", "i j", {n, m}, [&](auto v) {
    const TeExpr larger = te.op(Operator::Max, {A(v[0], k), B(v[1], k)});
    return te.real(1) + te.sum(larger, {k});
  });
  te.arguments({A, B, C});
  EXPECT_EQ(te.automatic(), R"(fn k(A: float32[64, 256], B: float32[48, 256], C: float32[64, 48]) {
  for i in 0..64 parallel {
    for j in 0..48 {
      allocate C.sum: float32[1, 1] scope(global)
      C.sum[0, 0] = 0.0
      for k.outer in 0..8 {
        for k.inner in 0..32 vectorize {
          C.sum[0, 0] = C.sum[0, 0] + max(A[i, k.outer*32 + k.inner], B[j, k.outer*32 + k.inner])
        }
      }
      C[i, j] = 1.0 + C.sum[0, 0]
    }
  }
}
)");
}

/// C[i, j] = exp(sum(A[i, k] * B[k, j])), with sizes that tiles fit.
struct ExpOfProduct {
  ExpOfProduct() {
    const TeExpr n = te.integer(72);
    const TeExpr m = te.integer(64);
    const TeExpr l = te.integer(16);
    const TeTensor A = te.placeholder("A", {n, l});
    const TeTensor B = te.placeholder("B", {l, m});
    const TeExpr k = te.reduce_axis("k", te.integer(0), l);
    C = te.compute("C", "i j", {n, m}, [&](auto v) {
      return te.op(Operator::Exp, {te.sum(A(v[0], k) * B(k, v[1]), {k})});
    });
    te.arguments({A, B, C});
  }
  Te te;
  TeTensor C;
};

TEST(ChooseSchedule, MakesAStageOfAProductInsideOfAnExpression) {
  ExpOfProduct k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(A: float32[72, 16], B: float32[16, 64], C: float32[72, 64]) {
  allocate C.sum: float32[72, 64] scope(global)
  for j.outer in 0..2 {
    for i.outer in 0..6 {
      for i.inner in 0..12 unroll {
        for j.inner in 0..32 vectorize {
          C.sum[i.outer*12 + i.inner, j.outer*32 + j.inner] = 0.0
        }
      }
      for k in 0..16 {
        for i.inner_1 in 0..12 unroll {
          for j.inner_1 in 0..32 vectorize {
            C.sum[i.outer*12 + i.inner_1, j.outer*32 + j.inner_1] = C.sum[i.outer*12 + i.inner_1, j.outer*32 + j.inner_1] + A[i.outer*12 + i.inner_1, k]*B[k, j.outer*32 + j.inner_1]
          }
        }
      }
    }
  }
  for i in 0..72 {
    for j.outer_1 in 0..2 {
      for j.inner_2 in 0..32 vectorize {
        C[i, j.outer_1*32 + j.inner_2] = exp(C.sum[i, j.outer_1*32 + j.inner_2])
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, GivesTheStageOfAReductionWhatAnyStageGets) {
  const auto chosen_for = [](std::string_view steps) {
    const std::string text = fmt::format(
        "kernel k(A: float32[64, 64], B: float32[64, 64]) -> (C: float32[64, 64]) {{\n"
        "  C[i, j] = exp(sum[k < 64](A[i, k] * B[k, j]))\n"
        "  schedule cpu {{ {} }}\n"
        "}}\n",
        steps);
    const language::TextKernel kernel = language::parse_text(text, "test.kiln").at(0);
    const language::Schedule chosen = choose_schedule(kernel.kernel, kernel.schedules.at(0).second,
                                                      {.kind = TargetKind::Llvm}, {});
    return language::kernel_file_text(chosen, kernel.kernel.definition, kernel.kernel.names);
  };
  EXPECT_EQ(chosen_for("reduction_stage(C.i, C.j, C.k, sum)"), chosen_for(""));
}

/// One step of a recurrence whose product is inside of its update.
TEST(ChooseSchedule, MakesAStageOfAProductAtEachStepOfAScan) {
  const std::string_view text =
      "kernel k(x: float32[9, 64], W: float32[64, 64], s0: float32[1, 64]) -> (s: float32[9, 64]) "
      "{\n"
      "  scan t {\n"
      "    s[0, j] = s0[0, j]\n"
      "    s[t, j] = tanh(sum[k < 64](s[t - 1, k] * W[k, j]) + x[t, j])\n"
      "  }\n"
      "}\n";
  const language::Kernel kernel = language::parse_text(text, "test.kiln").at(0).kernel;
  const Target target{.kind = TargetKind::Llvm};
  const language::Schedule chosen = choose_schedule(kernel, {}, target, {});
  EXPECT_EQ(language::kernel_file_text(chosen, kernel.definition, kernel.names).at(0),
            "reduction_stage(s.update.t, s.update.j, s.update.k, sum)");
}

TEST(ChooseSchedule, LeavesAProductInsideOfAStageWithStepsAlone) {
  ExpOfProduct k;
  k.te.split(k.C, "i", 4);
  EXPECT_EQ(k.te.automatic(), k.te.lowered());
}

TEST(ChooseSchedule, SumsRowsInOrderWhenStrict) {
  RowSum k;
  EXPECT_EQ(k.te.automatic(TargetKind::Llvm, CompileOptions{.strict = true}),
            R"(fn k(A: float32[n, m], B: float32[n]) {
  for i in 0..n parallel {
    B[i] = 0.0
    for k in 0..m {
      B[i] = B[i] + A[i, k]
    }
  }
}
)");
}

/// B[i] = sum(A[i + k]): neighbours along both axes are neighbours in memory.
TEST(ChooseSchedule, SlidesAWindowOfVectors) {
  Te te;
  const TeExpr n = te.integer(1024);
  const TeTensor A = te.placeholder("A", {te.integer(1026)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(3));
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return te.sum(A(v[0] + k), {k}); });
  te.arguments({A, B});
  EXPECT_EQ(te.automatic(), R"(fn k(A: float32[1026], B: float32[1024]) {
  for i.outer in 0..32 {
    for i.inner in 0..32 vectorize {
      B[i.outer*32 + i.inner] = 0.0
    }
    for k in 0..3 {
      for i.inner_1 in 0..32 vectorize {
        B[i.outer*32 + i.inner_1] = B[i.outer*32 + i.inner_1] + A[i.outer*32 + i.inner_1 + k]
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, BindsAScanWithStepsButNoThreads) {
  Cumsum k;
  k.te.split(k.init, "i", 64);
  k.te.split(k.update, "i", 64);
  EXPECT_EQ(k.te.automatic(TargetKind::Cuda), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for blockIdx.x in 0..floordiv(n + 16383, 16384) bind {
    for threadIdx.x in 0..256 bind {
      for i.inner in 0..64 {
        if likely(blockIdx.x*16384 + threadIdx.x*64 + i.inner < n) {
          scan[0, blockIdx.x*16384 + threadIdx.x*64 + i.inner] = X[0, blockIdx.x*16384 + threadIdx.x*64 + i.inner]
        }
      }
      for scan.idx in 0..m - 1 {
        for i.inner_1 in 0..64 {
          if likely(blockIdx.x*16384 + threadIdx.x*64 + i.inner_1 < n) {
            scan[scan.idx + 1, blockIdx.x*16384 + threadIdx.x*64 + i.inner_1] = scan[scan.idx, blockIdx.x*16384 + threadIdx.x*64 + i.inner_1] + X[scan.idx + 1, blockIdx.x*16384 + threadIdx.x*64 + i.inner_1]
          }
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, KeepsTimeOutsideWhereStatesMeet) {
  TwoStateScan k;
  EXPECT_EQ(k.te.automatic(),
            R"(fn k(X: float32[m, n], scan.v0: float32[m, n], scan.v1: float32[m, l]) {
  for i.outer in 0..floordiv(n + 31, 32) {
    for i.inner in 0..32 vectorize {
      if likely(i.outer*32 + i.inner < n) {
        scan.v0[0, i.outer*32 + i.inner] = X[0, i.outer*32 + i.inner]
      }
    }
  }
  for i.outer_1 in 0..floordiv(l + 31, 32) {
    for i.inner_1 in 0..32 vectorize {
      if likely(i.outer_1*32 + i.inner_1 < l) {
        scan.v1[0, i.outer_1*32 + i.inner_1] = 0.0
      }
    }
  }
  for scan.idx in 0..m - 1 {
    for i.outer_2 in 0..floordiv(n + 31, 32) {
      for i.inner_2 in 0..32 vectorize {
        if likely(i.outer_2*32 + i.inner_2 < n) {
          scan.v0[scan.idx + 1, i.outer_2*32 + i.inner_2] = scan.v0[scan.idx, i.outer_2*32 + i.inner_2] + X[scan.idx + 1, i.outer_2*32 + i.inner_2]
        }
      }
    }
    for i.outer_3 in 0..floordiv(l + 31, 32) {
      for i.inner_3 in 0..32 vectorize {
        if likely(i.outer_3*32 + i.inner_3 < l) {
          check 0 < n #0
          scan.v1[scan.idx + 1, i.outer_3*32 + i.inner_3] = scan.v1[scan.idx, i.outer_3*32 + i.inner_3] + scan.v0[scan.idx, 0]
        }
      }
    }
  }
}
#0: stage 6, tensor 1, dimension 1
)");
}

TEST(ChooseSchedule, LeavesStagesWithStepsAlone) {
  Stencils k;
  k.te.split(k.C, "i", 10);
  EXPECT_EQ(k.te.automatic(), R"(fn k(A: float32[103], C: float32[100]) {
  allocate B: float32[102] scope(global)
  for i.outer in 0..4 {
    for i.inner in 0..32 vectorize {
      if likely(i.outer*32 + i.inner < 102) {
        B[i.outer*32 + i.inner] = A[i.outer*32 + i.inner] + A[i.outer*32 + i.inner + 1]
      }
    }
  }
  for i.outer_1 in 0..10 {
    for i.inner_1 in 0..10 {
      C[i.outer_1*10 + i.inner_1] = B[i.outer_1*10 + i.inner_1] + B[i.outer_1*10 + i.inner_1 + 1] + B[i.outer_1*10 + i.inner_1 + 2]
    }
  }
}
)");
}

TEST(ChooseSchedule, AddsNothingToAStageWithSomethingScheduledInside) {
  Stencils k;
  k.te.compute_at(k.B, k.C, "i");
  EXPECT_EQ(k.te.automatic(), k.te.lowered());
}

TEST(ChooseSchedule, AddsNothingWhenItIsOff) {
  Matmul k;
  EXPECT_EQ(k.te.automatic(TargetKind::Llvm, CompileOptions{.automatic = false}), k.te.lowered());
}

TEST(ChooseSchedule, GivesEachElementAThread) {
  AddOne k;
  EXPECT_EQ(k.te.automatic(TargetKind::Cuda), R"(fn k(A: float32[n, m], B: float32[n, m]) {
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

TEST(ChooseSchedule, GivesEachColumnOfAScanAThread) {
  TwoStageScan k;
  EXPECT_EQ(k.te.automatic(TargetKind::Cuda), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for blockIdx.x in 0..floordiv(n + 255, 256) bind {
    for threadIdx.x in 0..256 bind {
      if likely(blockIdx.x*256 + threadIdx.x < n) {
        scan[0, blockIdx.x*256 + threadIdx.x] = X[0, blockIdx.x*256 + threadIdx.x]
      }
      for scan.idx in 0..m - 1 {
        allocate s1: float32[1, 1] scope(local)
        if likely(blockIdx.x*256 + threadIdx.x < n) {
          s1[0, 0] = scan[scan.idx, blockIdx.x*256 + threadIdx.x]*2.0
        }
        if likely(blockIdx.x*256 + threadIdx.x < n) {
          scan[scan.idx + 1, blockIdx.x*256 + threadIdx.x] = s1[0, 0] + X[scan.idx + 1, blockIdx.x*256 + threadIdx.x]
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, BindsTheOutermostLoopOfAStageWithSteps) {
  Matmul k;
  k.te.split(k.C, "k", 4);
  EXPECT_EQ(k.te.automatic(TargetKind::Cuda),
            R"(fn k[n, m, l](A: float32[n, l], B: float32[l, m], C: float32[n, m]) {
  for blockIdx.x in 0..floordiv(n + 255, 256) bind {
    for threadIdx.x in 0..256 bind {
      if likely(blockIdx.x*256 + threadIdx.x < n) {
        for j in 0..m {
          C[blockIdx.x*256 + threadIdx.x, j] = 0.0
          for k.outer in 0..floordiv(l + 3, 4) {
            for k.inner in 0..4 {
              if likely(k.outer*4 + k.inner < l) {
                C[blockIdx.x*256 + threadIdx.x, j] = C[blockIdx.x*256 + threadIdx.x, j] + A[blockIdx.x*256 + threadIdx.x, k.outer*4 + k.inner]*B[k.outer*4 + k.inner, j]
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
