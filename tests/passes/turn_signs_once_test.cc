#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const turn_signs_once = pass_named("turn_signs_once").run;

TEST(TurnSignsOnce, TakesWhatFactorsAreMovedByOffAtTheEnd) {
  expect_becomes(turn_signs_once,
                 R"(fn f(A: int8[2, l, 4], B: int8[l, 16, 4], C: int32[2, 16] output) {
      allocate acc: int32[2, 16] scope(local)
      for i in 0..2 unroll { for j in 0..16 vectorize { acc[i, j] = 0 } }
      for q in 0..l {
        for i in 0..2 unroll {
          for j in 0..16 vectorize {
            acc[i, j] = dot(acc[i, j], A[i, q, ramp(0, 1, 4)], B[q, j, ramp(0, 1, 4)])
          }
        }
      }
      for i in 0..2 unroll { for j in 0..16 vectorize { C[i, j] = acc[i, j] } }
    })",
                 R"(fn f(A: int8[2, l, 4], B: int8[l, 16, 4], C: int32[2, 16] output) {
      allocate acc: int32[2, 16] scope(local)
      for i in 0..2 unroll { for j in 0..16 vectorize { acc[i, j] = 0 } }
      {
        allocate acc.moved: int32[16] scope(local)
        for j in 0..16 vectorize { acc.moved[j] = 0 }
        for q in 0..l {
          for j in 0..16 vectorize {
            acc.moved[j] = dot(acc.moved[j], broadcast(128:uint8, 4), B[q, j, ramp(0, 1, 4)])
          }
          for i in 0..2 unroll {
            for j in 0..16 vectorize {
              acc[i, j] = dot(acc[i, j], uint8(A[i, q, ramp(0, 1, 4)]) ^ broadcast(128:uint8, 4), B[q, j, ramp(0, 1, 4)])
            }
          }
        }
        for i in 0..2 unroll { for j in 0..16 vectorize { acc[i, j] = acc[i, j] - acc.moved[j] } }
      }
      for i in 0..2 unroll { for j in 0..16 vectorize { C[i, j] = acc[i, j] } }
    })");
}

constexpr std::string_view kOther =
    R"(fn f(A: {0}[2, l, 4], B: {1}[l, 2, 16, 4], C: int32[2, 16] output) {{
      allocate acc: int32[2, 16] scope(local)
      for i in 0..2 unroll {{ for j in 0..16 vectorize {{ acc[i, j] = 0 }} }}
      for q in 0..l {{
        for i in 0..2 unroll {{
          for j in 0..16 vectorize {{
            acc[i, j] = dot(acc[i, j], A[i, q, ramp(0, 1, 4)], B[q, {2}, j, ramp(0, 1, 4)])
          }}
        }}
      }}
      for i in 0..2 unroll {{ for j in 0..16 vectorize {{ C[i, j] = acc[i, j] }} }}
    }})";

TEST(TurnSignsOnce, LeavesBytesOfTwoKindsAlone) {
  expect_unchanged(turn_signs_once, fmt::format(fmt::runtime(kOther), "uint8", "int8", "0"));
}

TEST(TurnSignsOnce, LeavesRowsWithColumnsOfTheirOwnAlone) {
  expect_unchanged(turn_signs_once, fmt::format(fmt::runtime(kOther), "int8", "int8", "i"));
}

}  // namespace
}  // namespace kiln::testing
