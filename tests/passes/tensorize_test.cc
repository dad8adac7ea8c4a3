#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const tensorize = pass_named("tensorize").run;

const char* const kBytes = R"(fn f(A: uint8[l, 4], B: int8[l, 16, 4], C: int32[16] output) {
      for k.outer in 0..l {
        tensorize x86.dot.u8s8s32 {
          for j in 0..16 {
            for k in 0..4 { C[j] = C[j] + int32(A[k.outer, k])*int32(B[k.outer, j, k]) }
          }
        }
      }
    })";

TEST(Tensorize, MakesSumsOfProductsOfAReduction) {
  expect_becomes(tensorize, kBytes,
                 R"(fn f(A: uint8[l, 4], B: int8[l, 16, 4], C: int32[16] output) {
      for k.outer in 0..l {
        for j in 0..16 vectorize {
          C[j] = dot(C[j], A[k.outer, ramp(0, 1, 4)], B[k.outer, j, ramp(0, 1, 4)])
        }
      }
    })");
}

TEST(Tensorize, TakesTheFactorsInAnyOrder) {
  expect_becomes(tensorize, R"(fn f(A: bfloat16[l], B: bfloat16[l, 16, 2], C: float32[16] output) {
      for k.outer in 0..l {
        tensorize x86.dot.bf16f32 {
          for j in 0..16 {
            for k in 0..2 { C[j] = float32(B[k.outer, j, k])*float32(A[k.outer*2 + k]) + C[j] }
          }
        }
      }
    })",
                 R"(fn f(A: bfloat16[l], B: bfloat16[l, 16, 2], C: float32[16] output) {
      for k.outer in 0..l {
        for j in 0..16 vectorize {
          C[j] = dot(C[j], A[ramp(k.outer*2, 1, 2)], B[k.outer, j, ramp(0, 1, 2)])
        }
      }
    })");
}

TEST(Tensorize, WritesATileOfProductsOut) {
  expect_becomes(tensorize, R"(fn f(A: float32[6, l], B: float32[l, 32], C: float32[6, 32] output) {
      for k in 0..l {
        tensorize x86.fma.f32 {
          for i in 0..6 { for j in 0..32 { C[i, j] = C[i, j] + A[i, k]*B[k, j] } }
        }
      }
    })",
                 R"(fn f(A: float32[6, l], B: float32[l, 32], C: float32[6, 32] output) {
      for k in 0..l {
        for i in 0..6 unroll { for j in 0..32 vectorize { C[i, j] = C[i, j] + A[i, k]*B[k, j] } }
      }
    })");
}

TEST(Tensorize, LeavesTilesThatAreCutOffAsTheyAreWritten) {
  const ir::Kernel kernel =
      expect_becomes(tensorize, R"(fn f(A: float32[l], B: float32[l, n], C: float32[n] output) {
      for k in 0..l {
        tensorize x86.fma.f32 {
          for j in 0..16 { if likely(j < n) { C[j] = C[j] + A[k]*B[k, j] } }
        }
      }
    })",
                     R"(fn f(A: float32[l], B: float32[l, n], C: float32[n] output) {
      for k in 0..l { for j in 0..16 { if likely(j < n) { C[j] = C[j] + A[k]*B[k, j] } } }
    })");
  EXPECT_EQ(kernel.notes,
            std::vector<std::string>{"tiles that the end of an axis cuts off are not x86.fma.f32, "
                                     "but run as the loops they are written as"});
}

TEST(Tensorize, RunsPlainLoopsForArgumentsOfAnyStride) {
  const ir::Kernel kernel = expect_becomes(
      tensorize, kBytes, R"(fn f(A: uint8[l, 4], B: int8[l, 16, 4], C: int32[16] output) {
      for k.outer in 0..l {
        for j in 0..16 {
          for k in 0..4 { C[j] = C[j] + int32(A[k.outer, k])*int32(B[k.outer, j, k]) }
        }
      }
    })",
      {TargetKind::Llvm, Layout::Strided, {}});
  EXPECT_TRUE(kernel.notes.empty());
}

TEST(Tensorize, SaysThatTheTypesDiffer) {
  expect_error(
      [] {
        run_pass(tensorize, R"(fn f(A: int8[l, 4], B: int8[l, 16, 4], C: int32[16] output) {
          for k.outer in 0..l {
            tensorize x86.dot.u8s8s32 {
              for j in 0..16 {
                for k in 0..4 { C[j] = C[j] + int32(A[k.outer, k])*int32(B[k.outer, j, k]) }
              }
            }
          }
        })");
      },
      ErrorKind::Unsupported,
      "cannot tensorize j with x86.dot.u8s8s32: it multiplies uint8 by int8 into int32, but here "
      "it "
      "is int8 by int8 into int32");
}

TEST(Tensorize, SaysThatElementsLieApart) {
  expect_error(
      [] {
        run_pass(tensorize, R"(fn f(A: uint8[l, 4], B: int8[l, 4, 16], C: int32[16] output) {
          for k.outer in 0..l {
            tensorize x86.dot.u8s8s32 {
              for j in 0..16 {
                for k in 0..4 { C[j] = C[j] + int32(A[k.outer, k])*int32(B[k.outer, k, j]) }
              }
            }
          }
        })");
      },
      ErrorKind::Unsupported,
      "cannot tensorize j with x86.dot.u8s8s32: neighbours of B along j must lie 4 elements apart, "
      "but they lie 1 apart");
}

TEST(Tensorize, SaysThatElementsLieASizeApart) {
  expect_error(
      [] {
        run_pass(tensorize, R"(fn f(A: float32[l], B: float32[16, l], C: float32[16] output) {
          for k in 0..l {
            tensorize x86.fma.f32 { for j in 0..16 { C[j] = C[j] + A[k]*B[j, k] } }
          }
        })");
      },
      ErrorKind::Unsupported,
      "cannot tensorize j with x86.fma.f32: neighbours of B along j must lie 0 or 1 element apart, "
      "but they lie no constant number apart");
}

TEST(Tensorize, SaysThatItIsNoSumOfProducts) {
  expect_error(
      [] {
        run_pass(tensorize, R"(fn f(B: float32[l, 16], C: float32[16] output) {
          for k in 0..l {
            tensorize x86.fma.f32 { for j in 0..16 { C[j] = max(C[j], B[k, j]) } }
          }
        })");
      },
      ErrorKind::Unsupported,
      "cannot tensorize j with x86.fma.f32: it is c = c + a*b, but what C is stored is no sum with "
      "a product of two elements");
}

TEST(Tensorize, SaysThatTheSumIsAFactorOfItself) {
  expect_error(
      [] {
        run_pass(tensorize, R"(fn f(B: float32[l, 16], C: float32[16] output) {
          for k in 0..l {
            tensorize x86.fma.f32 { for j in 0..16 { C[j] = C[j] + C[0]*B[k, j] } }
          }
        })");
      },
      ErrorKind::Unsupported,
      "cannot tensorize j with x86.fma.f32: the product reads C, which the sum is stored to");
}

TEST(Tensorize, SaysThatThereIsMoreInTheLoops) {
  expect_error(
      [] {
        run_pass(tensorize, R"(fn f(A: float32[16], C: float32[16] output) {
          tensorize x86.fma.f32 { for j in 0..16 { C[j] = 0.0  C[j] = C[j] + A[j]*A[j] } }
        })");
      },
      ErrorKind::Unsupported,
      "cannot tensorize j with x86.fma.f32: there is more in it than one sum");
}

}  // namespace
}  // namespace kiln::testing
