#include <limits>

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "tests/support/parse_ir.h"

namespace kiln::testing {
namespace {

using ir::Expr;

/// The text is already what print writes.
void expect_round_trip(std::string_view text) {
  const ir::Kernel kernel = ir::parse(text);
  EXPECT_EQ(ir::print(kernel), text);
  expect_same(ir::parse(ir::print(kernel)), kernel);
}

TEST(RoundTrip, TheScanOfTheDesign) {
  expect_round_trip(R"(fn myscan(X: float32[m, n], scan: float32[m, n]) {
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

TEST(RoundTrip, EveryStatement) {
  expect_round_trip(R"(fn f(A: float32[n], B: float32[n], C: float32[]) {
  for i in 0..n parallel {
    allocate s1: float32[1, 32] scope(shared) swizzle(32)
    for j in 0..32 vectorize {
      s1[0, j] = 0.0
    }
    for k in 0..4 unroll {
      for i.outer in 0..2 bind(vthread) {
        barrier
        {
          allocate s3: float32[1] scope(local)
          background {
            s1[0, i] = 1.0
          }
          await 2
          shuffle 16 of 32: s3[0] = s1[0, i] + 1.0
          shuffle lane i + 1 of 32: s3[0] = s1[0, i]
        }
        atomic max: B[i] = 2.0
      }
    }
    if i < 3 {
      check i + 1 < n #0
      B[i] = s1[0, i]
    } else {
      B[i] = 1.0
    }
  }
  {
    allocate s2: int8[4] scope(local)
    s2[0] = 1
  }
  C[] = 2.5
}
#0: stage 1, tensor 0, dimension -1
)");
}

TEST(RoundTrip, Expressions) {
  const auto round = [](std::string_view type, std::string_view value) {
    const std::string text =
        "fn f(O: " + std::string(type) +
        "[n], A: int64[n, m], F: float32[n], B: bool[n], H: float16[n]) {\n" +
        "  for i in 0..n {\n    for j in 0..m {\n      O[i] = " + std::string(value) +
        "\n    }\n  }\n}\n";
    expect_round_trip(text);
  };
  for (const char* text : {
           "i - (j - n) - m",
           "(i + j)*(i - j)",
           "i*(j*n)",
           "-(i + j)",
           "-i*j",
           "negative(5)",
           "i - -5",
           "i & j | ~i ^ 3",
           "i << 3 >> (j << 1)",
           "floordiv(n + 31, 32)*32 - floormod(i, 32)",
           "truncdiv(i, 2) + truncmod(j, 3)",
           "min(max(i, j), n)",
           "select(i < j, A[i, j], 3)",
           "if_then_else(i == j || !(i >= 2), i, j)",
           "int64(F[i])",
           "int64(2.5)",
           "int64(7:int32)",
           "popcount(i) + clz(j) + abs(i)",
           "A[A[i, j], floormod(j, 3)]",
           "-9223372036854775808",
       }) {
    round("int64", text);
  }
  for (const char* text : {
           "F[i]*2.0 + 1e-05",
           "F[i] + -0.0",
           "1.0 + 2.0",
           "exp(F[i])/(1.0 + exp(-F[i]))",
           "float32(H[i] + 1.0)",
           "float32(H[i] + (1.0 + 0.5))",
           "float32(2.0:float64)",
           "float32(2)",
           "select(F[i] < 0.5, F[i], inf)",
           "select(0.5 < F[i], nan, -inf)",
           "select(1.0 < 2.0, 1.0, 2.0)",
           "fma(F[i], 2.0, 1.0)",
           "pow(F[i], 0.1)",
           "1234567.0",
           "1e+20",
       }) {
    round("float32", text);
  }
  for (const char* text : {
           "i < j && B[i] && !B[j]",
           "i < j && (B[i] || B[j])",
           "i < j == B[i]",
           "(B[i] == B[j]) == B[i]",
           "B[i] == (B[i] == B[j])",
           "1.0:float64 < 2.0:float64",
           "isnan(F[i])",
           "isnan(1.0)",
           "true",
           "float64(F[i]) < 2.0",
       }) {
    round("bool", text);
  }
  round("uint64", "18446744073709551615");
  round("int8", "-128");
  round("float64", "0.1");
  round("float16", "H[i] + 0.1");
}

TEST(RoundTrip, Vectors) {
  expect_round_trip(R"(fn f(A: float32[n], B: float32[n], C: float64[n]) {
  for i in 0..floordiv(n, 8) {
    B[ramp(i*8, 1, 8)] = A[ramp(i*8, 1, 8)]*broadcast(2.0, 8) + broadcast(A[i], 8)
    B[ramp(i*8, 1, 8) where ramp(i*8, 1, 8) < broadcast(n, 8)] = A[ramp(i*8, 1, 8) where ramp(0, 1, 8) < broadcast(4, 8)]
    C[i] = reduce_sum(C[i], float64(A[ramp(i*8, 1, 8)]))
    B[i] = reduce_max(0.0, A[ramp(i*8, 1, 8)], reassociate)
    C[ramp(0, 1, 4)] = broadcast(1.5, 4)
  }
}
)");
}

TEST(RoundTrip, Workspace) {
  expect_round_trip(R"(fn f(A: float32[n], B: float32[n]) {
  workspace s1: float32[n] at 0
  workspace s2: float32[32] at 0 per_thread
  workspace bytes n*4, 128 per_thread
  s1[0] = A[0]
  B[0] = s1[0]
}
)");
}

TEST(RoundTrip, SizesAndOutputsThatAreNotImplied) {
  expect_round_trip(R"(fn f[n, m, k](A: float32[m], B: float32[n] output, C: float32[n] input) {
  C[0] = A[k]
}
)");
  expect_round_trip(R"(fn f(A: float32[m + 1, n]) {
  A[m, n - 1] = 0.0
}
)");
}

TEST(RoundTrip, Strides) {
  expect_round_trip(R"(fn f(A: float32[m, n] strides[A.s0, A.s1], B: float32[n] strides[B.s0]) {
  B[0] = A[A.s0 + A.s1]
}
)");
  const ir::Kernel kernel = ir::parse("fn f(A: float32[m, n] strides[s0, s1]) { A[0] = 1.0 }");
  ASSERT_EQ(kernel.strides.size(), 2u);
  EXPECT_EQ(kernel.strides[1]->name, "s1");
}

TEST(Print, GivesRepeatedNamesANumber) {
  const ir::VarRef a = ir::Var::make("i");
  const ir::VarRef b = ir::Var::make("i");
  const ir::VarRef c = ir::Var::make("i_1");
  EXPECT_EQ(ir::print(Expr(a) + b + c + a), "i + i_1 + i_1_1 + i");
}

TEST(RoundTrip, TensorIntrinsicsAndPrefetches) {
  expect_round_trip(R"(fn f(A: uint8[n, 4], B: int8[n, 16, 4], C: int32[16]) {
  for k in 0..n {
    if k + 1 < n {
      prefetch B[k + 1, 0, 0]
      prefetch_l2 B[k + 2, 0, 0]
    }
    tensorize x86.dot.u8s8s32 {
      for j in 0..16 {
        C[j] = C[j] + int32(A[k, 0])*int32(B[k, j, 0])
      }
    }
    multiply_tiles {
      for j_2 in 0..16 {
        C[j_2] = 0
      }
    }
    for j_1 in 0..16 vectorize {
      C[j_1] = dot(C[j_1], A[k, ramp(0, 1, 4)], B[k, j_1, ramp(0, 1, 4)])
    }
    C[0] = dot(1, A[k, ramp(0, 1, 4)], B[k, 0, ramp(0, 1, 4)])
  }
}
)");
}

TEST(Print, ManglesNamesThatWouldNotParse) {
  const auto name = [](const char* text) { return ir::print(Expr(ir::Var::make(text))); };
  EXPECT_EQ(name("my var"), "my_var");
  EXPECT_EQ(name("for"), "for_");
  EXPECT_EQ(name("min"), "min_");
  EXPECT_EQ(name("float32"), "float32_");
  EXPECT_EQ(name("2x"), "_2x");
  EXPECT_EQ(name(""), "v");
  EXPECT_EQ(name("a..b."), "a._b");
  EXPECT_EQ(name("\xce\xb1"), "\xce\xb1");
}

TEST(Print, SiblingLoopsOfOneThreadAxisShareItsName) {
  expect_round_trip(R"(fn f(A: float32[n]) {
  for blockIdx.x in 0..n bind {
    for threadIdx.x in 0..32 bind {
      A[0] = 1.0
    }
    for threadIdx.x in 0..8 bind {
      A[0] = 2.0
    }
  }
}
)");
}

TEST(Print, ShowsTheTypeOfAConstantThatStandsAlone) {
  EXPECT_EQ(ir::print(ir::constant({DType::Int32, 1}, 7)), "7:int32");
  EXPECT_EQ(ir::print(ir::constant({DType::Float64, 1}, 2)), "2.0:float64");
  EXPECT_EQ(ir::print(ir::constant({DType::Float32, 1}, 0.1)), "0.1");
  EXPECT_EQ(ir::print(ir::index(7)), "7");
}

}  // namespace
}  // namespace kiln::testing
