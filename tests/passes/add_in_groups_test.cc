#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const add_in_groups = pass_named("add_in_groups").run;

TEST(AddInGroups, FindsFourProductsOfBytes) {
  expect_becomes(add_in_groups, R"(fn f(A: int8[l, 4], B: int8[l, 48, 4], C: int32[48] output) {
      for q in 0..l {
        for j in 0..48 vectorize {
          for k in 0..4 { C[j] = C[j] + int32(A[q, k])*int32(B[q, j, k]) }
        }
      }
    })",
                 R"(fn f(A: int8[l, 4], B: int8[l, 48, 4], C: int32[48] output) {
      for q in 0..l {
        for j in 0..48 vectorize {
          C[j] = dot(C[j], A[q, ramp(0, 1, 4)], B[q, j, ramp(0, 1, 4)])
        }
      }
    })");
}

TEST(AddInGroups, FindsTwoProductsOfHalvesInAnyOrder) {
  expect_becomes(add_in_groups,
                 R"(fn f(A: bfloat16[l], B: bfloat16[l, 8, 2], C: float32[8] output) {
      for q in 0..l {
        for j in 0..8 vectorize {
          for k in 0..2 unroll { C[j] = float32(B[q, j, k])*float32(A[q*2 + k]) + C[j] }
        }
      }
    })",
                 R"(fn f(A: bfloat16[l], B: bfloat16[l, 8, 2], C: float32[8] output) {
      for q in 0..l {
        for j in 0..8 vectorize {
          C[j] = dot(C[j], A[ramp(q*2, 1, 2)], B[q, j, ramp(0, 1, 2)])
        }
      }
    })");
}

TEST(AddInGroups, FindsTwoProductsOfBytesAndWords) {
  expect_becomes(add_in_groups, R"(fn f(A: uint8[l, 2], B: int16[l, 48, 2], C: int32[48] output) {
      for q in 0..l {
        for j in 0..48 vectorize {
          for k in 0..2 unroll { C[j] = C[j] + int32(A[q, k])*int32(B[q, j, k]) }
        }
      }
    })",
                 R"(fn f(A: uint8[l, 2], B: int16[l, 48, 2], C: int32[48] output) {
      for q in 0..l {
        for j in 0..48 vectorize {
          C[j] = dot(C[j], A[q, ramp(0, 1, 2)], B[q, j, ramp(0, 1, 2)])
        }
      }
    })");
}

TEST(AddInGroups, FindsOneColumn) {
  expect_becomes(add_in_groups, R"(fn f(A: int8[l, 2, 4], B: int8[l, 4], C: int32[2] output) {
      for q in 0..l { for i in 0..2 unroll {
        for k in 0..4 { C[i] = C[i] + int32(A[q, i, k])*int32(B[q, k]) } } }
    })",
                 R"(fn f(A: int8[l, 2, 4], B: int8[l, 4], C: int32[2] output) {
      for q in 0..l { for i in 0..2 unroll {
        C[i] = dot(C[i], A[q, i, ramp(0, 1, 4)], B[q, ramp(0, 1, 4)]) } }
    })");
  // Elements apart, and lanes of one sum.
  expect_unchanged(add_in_groups, R"(fn f(A: int8[l, 4], B: int8[4, l], C: int32[1] output) {
      for q in 0..l { for k in 0..4 { C[0] = C[0] + int32(A[q, k])*int32(B[k, q]) } } })");
  expect_unchanged(add_in_groups, R"(fn f(A: int8[l, 4], B: int8[l, 4], C: int32[1] output) {
      for q in 0..l { for k in 0..4 vectorize { C[0] = C[0] + int32(A[q, k])*int32(B[q, k]) } } })");
}

/// A row of A ends within a group, and the next one begins.
TEST(AddInGroups, FindsElementsThatAFusedLoopGoesThrough) {
  const auto sums_of = [](std::string_view shape) {
    return fmt::format(
        "fn f(A: bfloat16[{}], B: bfloat16[9, 8, 2], C: float32[8] output) {{"
        " for q in 0..9 {{ for j in 0..8 vectorize {{ for k in 0..2 {{"
        " C[j] = C[j] + float32(B[q, j, k])*"
        "float32(A[floordiv(q*2 + k, 3), floormod(q*2 + k, 3)]) }} }} }} }}",
        shape);
  };
  expect_becomes(add_in_groups, sums_of("6, 3"),
                 R"(fn f(A: bfloat16[6, 3], B: bfloat16[9, 8, 2], C: float32[8] output) {
      for q in 0..9 {
        for j in 0..8 vectorize {
          C[j] = dot(C[j], A[floordiv(ramp(q*2, 1, 2), broadcast(3, 2)), floormod(ramp(q*2, 1, 2), broadcast(3, 2))], B[q, j, ramp(0, 1, 2)])
        }
      }
    })");
  // Rows that go on somewhere else.
  expect_unchanged(add_in_groups, sums_of("6, 4"));
}

TEST(AddInGroups, LeavesTilesOfAMatrixUnitAsTheyAre) {
  expect_unchanged(add_in_groups, R"(fn f(A: int8[16, 4], B: int8[16, 4], C: int32[16, 16] output) {
      multiply_tiles { for i in 0..16 { for j in 0..16 { for k in 0..4 {
        C[i, j] = C[i, j] + int32(A[i, k])*int32(B[j, k]) } } } } })");
}

TEST(AddInGroups, LeavesFourProductsOfWordsAlone) {
  expect_unchanged(add_in_groups, R"(fn f(A: int16[l, 4], B: int16[l, 16, 4], C: int32[16] output) {
      for q in 0..l {
        for j in 0..16 vectorize {
          for k in 0..4 { C[j] = C[j] + int32(A[q, k])*int32(B[q, j, k]) }
        }
      }
    })");
}

TEST(AddInGroups, LeavesOtherSumsAlone) {
  for (const std::string_view update :
       {"C[j] = C[j] + int32(A[q, k])*int32(D[q, k, j])",         // b lies apart
        "C[j] = C[j] + int32(int8(A[q, k]*B[q, j, k]))",          // multiplied in 8 bits
        "C[j] = C[j] + int32(int16(A[q, k]))*int32(B[q, j, k])",  // converted twice
        "C[j] = C[j] + int32(A[q, k]) + int32(B[q, j, k])"}) {    // no product
    expect_unchanged(
        add_in_groups,
        fmt::format("fn f(A: int8[l, 4], B: int8[l, 16, 4], D: int8[l, 4, 16], C: int32[16] "
                    "output) {{ for q in 0..l {{ for j in 0..16 vectorize {{ for k in 0..4 {{ {} "
                    "}} }} }} }}",
                    update));
  }
}

TEST(AddInGroups, LeavesGroupsOfAnotherLengthAlone) {
  expect_unchanged(add_in_groups, R"(fn f(A: int8[l, 3], B: int8[l, 16, 3], C: int32[16] output) {
      for q in 0..l {
        for j in 0..16 vectorize {
          for k in 0..3 { C[j] = C[j] + int32(A[q, k])*int32(B[q, j, k]) }
        }
      }
    })");
}

TEST(AddInGroups, LeavesArgumentsOfAnyStrideAlone) {
  constexpr std::string_view kText =
      R"(fn f(A: int8[l, 4], B: int8[l, 16, 4], C: int32[16] output) {
      for q in 0..l {
        for j in 0..16 vectorize {
          for k in 0..4 { C[j] = C[j] + int32(A[q, k])*int32(B[q, j, k]) }
        }
      }
    })";
  expect_becomes(add_in_groups, kText, kText, {TargetKind::Llvm, Layout::Strided, {}});
}

}  // namespace
}  // namespace kiln::testing
