#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const widen_copies = pass_named("widen_copies").run;

/// Copies of {0} and {1} whose products are added in groups of {2}, and what else reads the first.
constexpr std::string_view kProduct =
    R"(fn f(A: {0}[l, {2}], B: {1}[l, {2}, 16], C: int32[16] output, D: int32[l] output) {{
      allocate a: {0}[l, {2}]
      allocate b: {1}[l, 16, {2}]
      for q in 0..l {{ for k in 0..{2} {{ a[q, k] = A[q, k] }} }}
      for q in 0..l {{ for j in 0..16 {{ for k in 0..{2} {{ b[q, j, k] = B[q, k, j] }} }} }}
      for q in 0..l {{
        for j in 0..16 vectorize {{ C[j] = dot(C[j], a[q, ramp(0, 1, {2})], b[q, j, ramp(0, 1, {2})]) }}
      }}
      for q in 0..l {{ D[q] = {3} }}
    }})";

std::string product(std::string_view a, std::string_view b, int group, std::string_view last) {
  return fmt::format(fmt::runtime(kProduct), a, b, group, last);
}

TEST(WidenCopies, KeepsPairsOfBytesAsWords) {
  expect_becomes(
      widen_copies, product("int8", "uint8", 2, "int32(a[q, 0])"),
      R"(fn f(A: int8[l, 2], B: uint8[l, 2, 16], C: int32[16] output, D: int32[l] output) {
      allocate a: int16[l, 2]
      allocate b: int16[l, 16, 2]
      for q in 0..l { for k in 0..2 { a[q, k] = int16(A[q, k]) } }
      for q in 0..l { for j in 0..16 { for k in 0..2 { b[q, j, k] = int16(B[q, k, j]) } } }
      for q in 0..l {
        for j in 0..16 vectorize { C[j] = dot(C[j], a[q, ramp(0, 1, 2)], b[q, j, ramp(0, 1, 2)]) }
      }
      for q in 0..l { D[q] = int32(a[q, 0]) }
    })");
}

// In int8 a sum of elements wraps.
TEST(WidenCopies, LeavesOtherArithmeticInItsType) {
  expect_becomes(
      widen_copies, product("int8", "int16", 2, "int32(a[q, 0] + a[q, 1])"),
      R"(fn f(A: int8[l, 2], B: int16[l, 2, 16], C: int32[16] output, D: int32[l] output) {
      allocate a: int16[l, 2]
      allocate b: int16[l, 16, 2]
      for q in 0..l { for k in 0..2 { a[q, k] = int16(A[q, k]) } }
      for q in 0..l { for j in 0..16 { for k in 0..2 { b[q, j, k] = B[q, k, j] } } }
      for q in 0..l {
        for j in 0..16 vectorize { C[j] = dot(C[j], a[q, ramp(0, 1, 2)], b[q, j, ramp(0, 1, 2)]) }
      }
      for q in 0..l { D[q] = int32(int8(a[q, 0]) + int8(a[q, 1])) }
    })");
}

TEST(WidenCopies, LeavesGroupsOfFourAlone) {
  expect_unchanged(widen_copies, product("int8", "uint8", 4, "int32(a[q, 0])"));
}

TEST(WidenCopies, LeavesArgumentsAlone) {
  expect_unchanged(widen_copies,
                   R"(fn f(A: int8[l, 2], B: int8[l, 16, 2], C: int32[16] output) {
      for q in 0..l {
        for j in 0..16 vectorize { C[j] = dot(C[j], A[q, ramp(0, 1, 2)], B[q, j, ramp(0, 1, 2)]) }
      }
    })");
}

/// A copy of halves that `read` uses; `value` is what it holds.
std::string halves(std::string_view value, std::string_view read, int again = 8) {
  return fmt::format(R"(fn f(A: float16[l, 16], B: float16[{2}], C: float32[{2}, 16] output) {{
      allocate A.copy: float16[l, 16] scope(global)
      for k in 0..l {{ for j in 0..16 vectorize {{ A.copy[k, j] = {0} }} }}
      for i in 0..{2} {{ for k in 0..l {{ for j in 0..16 vectorize {{
        C[i, j] = C[i, j] + float32(B[i])*{1}
      }} }} }}
    }})",
                     value, read, again);
}

TEST(WidenCopies, KeepsHalvesThatAreReadAgainAsFloats) {
  expect_becomes(widen_copies, halves("A[k, j]", "float32(A.copy[k, j])"),
                 R"(fn f(A: float16[l, 16], B: float16[8], C: float32[8, 16] output) {
      allocate A.copy: float32[l, 16] scope(global)
      for k in 0..l { for j in 0..16 vectorize { A.copy[k, j] = float32(A[k, j]) } }
      for i in 0..8 { for k in 0..l { for j in 0..16 vectorize {
        C[i, j] = C[i, j] + float32(B[i])*A.copy[k, j]
      } } }
    })");
}

TEST(WidenCopies, LeavesHalvesThatAreComputedOrReadOnceOrAsTheyAre) {
  expect_unchanged(widen_copies, halves("A[k, j]*A[k, j]", "float32(A.copy[k, j])"));
  expect_unchanged(widen_copies, halves("A[k, j]", "float32(A.copy[k, j])", 2));
  expect_unchanged(widen_copies, halves("A[k, j]", "float32(A.copy[k, j]*A.copy[k, j])"));
}

}  // namespace
}  // namespace kiln::testing
