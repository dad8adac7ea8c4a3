#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const accumulate_in_registers = pass_named("accumulate_in_registers").run;

TEST(AccumulateInRegisters, KeepsATileOutOfMemory) {
  expect_becomes(accumulate_in_registers,
                 R"(fn f(A: float32[8, l], B: float32[l, n], C: float32[8, n]) {
      for j.outer in 0..floordiv(n, 32) {
        for k in 0..l {
          for i in 0..8 unroll {
            for j in 0..32 vectorize {
              C[i, j.outer*32 + j] = C[i, j.outer*32 + j] + A[i, k]*B[k, j.outer*32 + j]
            }
          }
        }
      }
    })",
                 R"(fn f(A: float32[8, l], B: float32[l, n], C: float32[8, n]) {
      for j.outer in 0..floordiv(n, 32) {
        allocate C.acc: float32[8, 32] scope(local)
        for i in 0..8 unroll { for j in 0..32 vectorize { C.acc[i, j] = C[i, j.outer*32 + j] } }
        for k in 0..l {
          for i in 0..8 unroll {
            for j in 0..32 vectorize { C.acc[i, j] = C.acc[i, j] + A[i, k]*B[k, j.outer*32 + j] }
          }
        }
        for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j.outer*32 + j] = C.acc[i, j] } }
      }
    })");
}

/// As in the tutorial's schedule: what is read for the steps of k stays in registers while rows
/// pass.
TEST(AccumulateInRegisters, WritesOutAShortLoopUnderVectors) {
  expect_becomes(accumulate_in_registers,
                 R"(fn f(A: float32[n, 4], B: float32[4, 32], C: float32[n, 32]) {
      for i in 0..n {
        for j in 0..32 vectorize { for k in 0..4 { C[i, j] = C[i, j] + A[i, k]*B[k, j] } }
      }
    })",
                 R"(fn f(A: float32[n, 4], B: float32[4, 32], C: float32[n, 32]) {
      for i in 0..n {
        allocate C.acc: float32[32] scope(local)
        for j in 0..32 vectorize { C.acc[j] = C[i, j] }
        for k in 0..4 unroll { for j in 0..32 vectorize { C.acc[j] = C.acc[j] + A[i, k]*B[k, j] } }
        for j in 0..32 vectorize { C[i, j] = C.acc[j] }
      }
    })");
}

/// Its vectors are collected in lanes, which wants the loop; and written out it would be long.
TEST(AccumulateInRegisters, LeavesAShortLoopOverLongVectorsOfTheSum) {
  expect_becomes(accumulate_in_registers,
                 R"(fn f(A: float32[4, 1024], B: float32[4]) {
      for k.outer in 0..16 {
        for i in 0..4 unroll {
          for k.inner in 0..64 vectorize { B[i] = B[i] + A[i, k.outer*64 + k.inner] }
        }
      }
    })",
                 R"(fn f(A: float32[4, 1024], B: float32[4]) {
      allocate B.acc: float32[4] scope(local)
      for i in 0..4 unroll { B.acc[i] = B[i] }
      for k.outer in 0..16 {
        for i in 0..4 unroll {
          for k.inner in 0..64 vectorize { B.acc[i] = B.acc[i] + A[i, k.outer*64 + k.inner] }
        }
      }
      for i in 0..4 unroll { B[i] = B.acc[i] }
    })");
}

/// Rows that lie a power of two apart would fall on the same sets of the first cache.
TEST(AccumulateInRegisters, CollectsASmallTileWhileALongSumPasses) {
  expect_becomes(accumulate_in_registers,
                 R"(fn f(A: float32[32, l], B: float32[l, n], C: float32[32, n]) {
      for k in 0..l {
        for i in 0..32 { for j in 0..16 vectorize { C[i, j] = C[i, j] + A[i, k]*B[k, j] } }
      }
    })",
                 R"(fn f(A: float32[32, l], B: float32[l, n], C: float32[32, n]) {
      allocate C.acc: float32[32, 16] scope(local)
      for i in 0..32 { for j in 0..16 vectorize { C.acc[i, j] = C[i, j] } }
      for k in 0..l {
        for i in 0..32 { for j in 0..16 vectorize { C.acc[i, j] = C.acc[i, j] + A[i, k]*B[k, j] } }
      }
      for i in 0..32 { for j in 0..16 vectorize { C[i, j] = C.acc[i, j] } }
    })");
}

TEST(AccumulateInRegisters, LeavesLargeTilesAndShortSumsInTheirPlace) {
  for (const std::string_view text : {R"(fn f(A: float32[l, 129], C: float32[129, 16]) {
      for k in 0..l { for i in 0..129 { for j in 0..16 vectorize { C[i, j] = C[i, j] + A[k, i] } } }
    })",
                                      R"(fn f(A: float32[7, 32], C: float32[32, 16]) {
      for k in 0..7 { for i in 0..32 { for j in 0..16 vectorize { C[i, j] = C[i, j] + A[k, i] } } }
    })",
                                      R"(fn f(A: float32[l, 32], C: float32[32]) {
      for k in 0..l { for i in 0..32 parallel { C[i] = C[i] + A[k, i] } }
    })"}) {
    const std::string result = ir::print(run_pass(accumulate_in_registers, text));
    EXPECT_EQ(result.find("C.acc"), std::string::npos) << result;
  }
}

/// What a sum begins with is not stored only to be loaded again.
TEST(AccumulateInRegisters, BeginsWithTheConstantStoredBefore) {
  expect_becomes(accumulate_in_registers,
                 R"(fn f(A: float32[8, l], B: float32[l, 31], C: float32[8, 31]) {
      for i in 0..8 unroll { for j in 0..31 vectorize { C[i, j] = 0.0 } }
      for k in 0..l {
        for i in 0..8 unroll {
          for j in 0..31 vectorize { C[i, j] = C[i, j] + A[i, k]*B[k, j] }
        }
      }
    })",
                 R"(fn f(A: float32[8, l], B: float32[l, 31], C: float32[8, 31]) {
      allocate C.acc: float32[8, 32] scope(local)
      for i in 0..8 unroll { for j in 0..32 vectorize { C.acc[i, j] = 0.0 } }
      for k in 0..l {
        for i in 0..8 unroll {
          for j in 0..32 vectorize { C.acc[i, j] = C.acc[i, j] + A[i, k]*B[k, j where j < 31] }
        }
      }
      for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j where j < 31] = C.acc[i, j] } }
    })");
}

TEST(AccumulateInRegisters, KeepsStoresBeforeThatAreOtherElementsOrNoConstant) {
  for (const std::string_view before :
       {"for i in 0..9 unroll { for j in 0..32 vectorize { C[i, j] = 0.0 } }",
        "for i in 0..8 unroll { for j in 0..32 vectorize { C[i + 1, j] = 0.0 } }",
        "for i in 0..8 unroll { for j in 0..32 vectorize { D[i, j] = 0.0 } }",
        "for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j] = D[i, j] } }"}) {
    const std::string result = ir::print(
        run_pass(accumulate_in_registers,
                 fmt::format(R"(fn f(A: float32[8, l], C: float32[9, 32], D: float32[9, 32]) {{
      {}
      for k in 0..l {{
        for i in 0..8 unroll {{ for j in 0..32 vectorize {{ C[i, j] = C[i, j] + A[i, k] }} }}
      }}
    }})",
                             before)));
    EXPECT_NE(result.find("C.acc[i_1, j_1] = C[i_1, j_1]"), std::string::npos) << result;
  }
}

/// Vectors of 8, 4, 2 and 1 would take four times as long as one of 16.
TEST(AccumulateInRegisters, FillsUpTheLastVectorOfATile) {
  expect_becomes(accumulate_in_registers,
                 R"(fn f(A: float32[8, l], B: float32[l, 31], C: float32[8, 31]) {
      for k in 0..l {
        for i in 0..8 unroll {
          for j in 0..31 vectorize { C[i, j] = C[i, j] + A[i, k]*B[k, j] }
        }
      }
    })",
                 R"(fn f(A: float32[8, l], B: float32[l, 31], C: float32[8, 31]) {
      allocate C.acc: float32[8, 32] scope(local)
      for i in 0..8 unroll { for j in 0..32 vectorize { C.acc[i, j] = C[i, j where j < 31] } }
      for k in 0..l {
        for i in 0..8 unroll {
          for j in 0..32 vectorize { C.acc[i, j] = C.acc[i, j] + A[i, k]*B[k, j where j < 31] }
        }
      }
      for i in 0..8 unroll { for j in 0..32 vectorize { C[i, j where j < 31] = C.acc[i, j] } }
    })");
}

TEST(AccumulateInRegisters, ReadsNoIndexOutsideEither) {
  const ir::Kernel kernel =
      run_pass(accumulate_in_registers, R"(fn f(A: float32[l, 9], N: int64[31], C: float32[31]) {
      for k in 0..l { for j in 0..31 vectorize { C[j] = C[j] + A[k, min(max(N[j], 0), 8)] } }
    })");
  EXPECT_NE(ir::print(kernel).find("N[j_1 where j_1 < 31]"), std::string::npos)
      << ir::print(kernel);
}

TEST(AccumulateInRegisters, FillsUpAShortVectorToAPowerOfTwo) {
  const ir::Kernel kernel =
      run_pass(accumulate_in_registers, R"(fn f(A: float32[l, 7], C: float32[7]) {
      for k in 0..l { for j in 0..7 vectorize { C[j] = C[j] + A[k, j] } }
    })");
  EXPECT_NE(ir::print(kernel).find("allocate C.acc: float32[8]"), std::string::npos)
      << ir::print(kernel);
}

/// 24 are as many vectors as 32; an element that is not read may be no divisor; there are no masks
/// of bytes.
TEST(AccumulateInRegisters, LeavesVectorsThatGainNothingByFilling) {
  for (const std::string_view text : {R"(fn f(A: float32[l, 24], C: float32[24]) {
      for k in 0..l { for j in 0..24 vectorize { C[j] = C[j] + A[k, j] } }
    })",
                                      R"(fn f(A: int32[l, 31], C: int32[31]) {
      for k in 0..l { for j in 0..31 vectorize { C[j] = C[j] + floordiv(7, A[k, j]) } }
    })",
                                      R"(fn f(A: int8[l, 31], C: int8[31]) {
      for k in 0..l { for j in 0..31 vectorize { C[j] = C[j] + A[k, j] } }
    })"}) {
    const std::string result = ir::print(run_pass(accumulate_in_registers, text));
    EXPECT_EQ(result.find("where"), std::string::npos) << result;
  }
}

TEST(AccumulateInRegisters, LooksBehindPrefetches) {
  expect_becomes(accumulate_in_registers, R"(fn f(A: float32[l, 16], C: float32[16] output) {
      for k in 0..l {
        if k + 1 < l { prefetch A[k + 1, 0] }
        for j in 0..16 vectorize { C[j] = C[j] + A[k, j] }
      }
    })",
                 R"(fn f(A: float32[l, 16], C: float32[16] output) {
      allocate C.acc: float32[16] scope(local)
      for j in 0..16 vectorize { C.acc[j] = C[j] }
      for k in 0..l {
        if k + 1 < l { prefetch A[k + 1, 0] }
        for j in 0..16 vectorize { C.acc[j] = C.acc[j] + A[k, j] }
      }
      for j in 0..16 vectorize { C[j] = C.acc[j] }
    })");
}

TEST(AccumulateInRegisters, KeepsGuardsOfTheTile) {
  expect_becomes(accumulate_in_registers, R"(fn f(A: float32[l, n], C: float32[n]) {
      for k in 0..l {
        for j in 0..16 vectorize { if likely(j < n) { C[j] = C[j] + A[k, j] } }
      }
    })",
                 R"(fn f(A: float32[l, n], C: float32[n]) {
      allocate C.acc: float32[16] scope(local)
      for j in 0..16 vectorize { if likely(j < n) { C.acc[j] = C[j] } }
      for k in 0..l {
        for j in 0..16 vectorize { if likely(j < n) { C.acc[j] = C.acc[j] + A[k, j] } }
      }
      for j in 0..16 vectorize { if likely(j < n) { C[j] = C.acc[j] } }
    })");
}

TEST(AccumulateInRegisters, LeavesGuardsOfTheReductionInside) {
  expect_becomes(accumulate_in_registers, R"(fn f(A: float32[l, 16], C: float32[16]) {
      for k.outer in 0..floordiv(l + 3, 4) {
        for k in 0..4 {
          for j in 0..16 vectorize {
            if likely(k.outer*4 + k < l) { C[j] = C[j] + A[k.outer*4 + k, j] }
          }
        }
      }
    })",
                 R"(fn f(A: float32[l, 16], C: float32[16]) {
      allocate C.acc: float32[16] scope(local)
      for j in 0..16 vectorize { C.acc[j] = C[j] }
      for k.outer in 0..floordiv(l + 3, 4) {
        for k in 0..4 {
          for j in 0..16 vectorize {
            if likely(k.outer*4 + k < l) { C.acc[j] = C.acc[j] + A[k.outer*4 + k, j] }
          }
        }
      }
      for j in 0..16 vectorize { C[j] = C.acc[j] }
    })");
}

TEST(AccumulateInRegisters, LeavesElementsThatLanesAroundShareAlone) {
  const char* const text = R"(fn f(A: float32[n, 2], C: float32[n, 16]) {
      for r in 0..2 vectorize {
        for i in 0..n parallel {
          for q in 0..n { for j in 0..16 { C[i, j] = C[i, j] + A[i, r] } }
        }
      }
    })";
  expect_becomes(accumulate_in_registers, text, text);
}

TEST(AccumulateInRegisters, LeavesScansAlone) {
  expect_unchanged(accumulate_in_registers, R"(fn f(X: float32[m, 16], S: float32[m, 16]) {
      for t in 0..m - 1 {
        for j in 0..16 vectorize { S[t + 1, j] = S[t, j] + X[t + 1, j] }
      }
    })");
}

TEST(AccumulateInRegisters, LeavesTilesThatFoldOntoThemselvesAlone) {
  // i + j names one element several times.
  expect_unchanged(accumulate_in_registers, R"(fn f(A: float32[l], C: float32[32]) {
      for k in 0..l {
        for i in 0..4 unroll { for j in 0..16 vectorize { C[i + j] = C[i + j] + A[k] } }
      }
    })");
}

TEST(AccumulateInRegisters, LeavesReadsOfOtherElementsAlone) {
  expect_unchanged(accumulate_in_registers, R"(fn f(A: float32[l], C: float32[32]) {
      for k in 0..l {
        for j in 0..16 vectorize { C[j] = C[j] + C[j + 16]*A[k] }
      }
    })");
}

TEST(AccumulateInRegisters, LeavesTilesThatNoRegistersHoldAlone) {
  expect_unchanged(accumulate_in_registers, R"(fn f(A: float32[l], C: float32[32, 32]) {
      for k in 0..l {
        for i in 0..32 unroll { for j in 0..32 vectorize { C[i, j] = C[i, j] + A[k] } }
      }
    })");
}

}  // namespace
}  // namespace kiln::testing
