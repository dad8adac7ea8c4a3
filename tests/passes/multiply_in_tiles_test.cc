#include "compiler/analysis/tile_product.h"
#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const multiply_in_tiles = pass_named("multiply_in_tiles").run;
const PassSetting kTiles = {.arch = "sapphirerapids"};

/// A product of so many rows, columns and groups of bytes; each statement after the zeros.
std::string product(int rows, int columns, int groups, std::string_view update,
                    std::string_view kinds = "unroll vectorize") {
  const std::string of_rows(kinds.substr(0, kinds.find(' ')));
  const std::string of_columns(kinds.substr(kinds.find(' ') + 1));
  return fmt::format(R"(
    fn f(A: int8[64, 512], B: int8[128, 64, 4], D: int8[128, 4, 64], C: int32[64, 64] output) {{
      for i in 0..{0} {3} {{ for j in 0..{1} {4} {{ C[i, j] = 0 }} }}
      for k in 0..{2} {{ for i in 0..{0} {3} {{ for j in 0..{1} {4} {{ for t in 0..4 {{ {5} }} }} }} }}
    }})",
                     rows, columns, groups, of_rows == "serial" ? "" : of_rows,
                     of_columns == "serial" ? "" : of_columns, update);
}

constexpr std::string_view kUpdate = "C[i, j] = C[i, j] + int32(A[i, k*4 + t])*int32(B[k, j, t])";

bool is_marked(const std::string& text, const PassSetting& setting = kTiles) {
  return ir::print(run_pass(multiply_in_tiles, text, setting)).find("multiply_tiles") !=
         std::string::npos;
}

TEST(MultiplyInTiles, MarksAProductWithTheZerosBeforeIt) {
  expect_becomes(multiply_in_tiles, product(32, 32, 128, kUpdate), R"(
    fn f(A: int8[64, 512], B: int8[128, 64, 4], D: int8[128, 4, 64], C: int32[64, 64] output) {
      multiply_tiles {
        for i in 0..32 { for j in 0..32 { C[i, j] = 0 } }
        for k in 0..128 {
          for i in 0..32 { for j in 0..32 { for t in 0..4 {
            C[i, j] = C[i, j] + int32(A[i, k*4 + t])*int32(B[k, j, t])
          } } }
        }
      }
    })",
                 kTiles);
}

TEST(MultiplyInTiles, TakesSumsThatHaveBegunAndStepsOfAWindow) {
  expect_becomes(multiply_in_tiles, R"(
    fn f(X: bfloat16[4, 40, 32], W: bfloat16[2, 3, 16, 16, 2], Y: float32[16, 16] output) {
      for r in 0..2 { for s in 0..3 unroll { for c in 0..16 {
        for i in 0..16 unroll { for j in 0..16 vectorize { for t in 0..2 {
          Y[i, j] = float32(W[r, s, c, j, t])*float32(X[r, i*2 + s, c*2 + t]) + Y[i, j]
        } } }
      } } }
    })",
                 R"(
    fn f(X: bfloat16[4, 40, 32], W: bfloat16[2, 3, 16, 16, 2], Y: float32[16, 16] output) {
      multiply_tiles {
        for r in 0..2 { for s in 0..3 { for c in 0..16 {
          for i in 0..16 { for j in 0..16 { for t in 0..2 {
            Y[i, j] = float32(W[r, s, c, j, t])*float32(X[r, i*2 + s, c*2 + t]) + Y[i, j]
          } } }
        } } }
      }
    })",
                 kTiles);
}

TEST(MultiplyInTiles, WantsRoomForAllTiles) {
  EXPECT_TRUE(is_marked(product(16, 48, 64, kUpdate)));
  EXPECT_TRUE(is_marked(product(48, 16, 64, kUpdate)));
  EXPECT_TRUE(is_marked(product(20, 20, 64, kUpdate)));
  EXPECT_FALSE(is_marked(product(16, 64, 64, kUpdate)));
  EXPECT_FALSE(is_marked(product(33, 32, 64, kUpdate)));
  EXPECT_FALSE(is_marked(product(1, 32, 64, kUpdate)));
  // Steps that are left over have tiles too, so that those of one side are all alike.
  EXPECT_TRUE(is_marked(product(32, 32, 101, kUpdate)));
  EXPECT_TRUE(is_marked(product(16, 64, 101, kUpdate)));
  EXPECT_FALSE(is_marked(product(20, 32, 101, kUpdate)));
}

TEST(MultiplyInTiles, StepsThatLeaveNoneOverGoTogether) {
  EXPECT_EQ(analysis::groups_at_once(128), 16);
  EXPECT_EQ(analysis::groups_at_once(196), 14);
  EXPECT_EQ(analysis::groups_at_once(250), 16);
  EXPECT_EQ(analysis::groups_at_once(5), 5);
}

TEST(MultiplyInTiles, LeavesOtherLoopsAlone) {
  for (const std::string_view update :
       {"C[i, j] = C[i, j] + int32(A[i, k*4 + t])*int32(D[k, t, j])",  // columns lie together
        "C[i, j] = C[i, j] + int32(A[k, i*4 + t])*int32(B[k, j, t])",  // rows lie along rows
        "C[j, i] = C[j, i] + int32(A[i, k*4 + t])*int32(B[k, j, t])",  // sums are transposed
        "C[i, j] = C[i, j] - int32(A[i, k*4 + t])*int32(B[k, j, t])",  // no sum
        "C[i, j] = C[i, j] + int32(int16(A[i, k*4 + t]))*int32(B[k, j, t])"}) {
    expect_unchanged(multiply_in_tiles, product(32, 32, 64, update), kTiles);
  }
  expect_unchanged(multiply_in_tiles, product(32, 32, 64, kUpdate, "unroll serial"), kTiles);
}

TEST(MultiplyInTiles, ServesCpusThatHaveThemAndCompactArguments) {
  const std::string text = product(32, 32, 64, kUpdate);
  EXPECT_FALSE(is_marked(text, {.arch = "icelake-server"}));
  EXPECT_FALSE(is_marked(text, {.arch = ""}));
  EXPECT_TRUE(is_marked(text, {.arch = "x86-64-v4+amx-int8"}));
  EXPECT_FALSE(is_marked(text, {.arch = "x86-64-v4+amx-bf16"}));
  expect_becomes(multiply_in_tiles, text, text,
                 {.layout = Layout::Strided, .arch = "sapphirerapids"});
}

TEST(MultiplyInTiles, TakesFloat16WhereTheCpuHasTilesOfIt) {
  const std::string text = R"(
    fn f(A: float16[16, 32], B: float16[16, 16, 2], C: float32[16, 16] output) {
      for k in 0..16 { for i in 0..16 unroll { for j in 0..16 vectorize { for t in 0..2 {
        C[i, j] = C[i, j] + float32(A[i, k*2 + t])*float32(B[k, j, t])
      } } } }
    })";
  EXPECT_TRUE(is_marked(text, {.arch = "graniterapids"}));
  EXPECT_FALSE(is_marked(text, {.arch = "sapphirerapids"}));
  CompileOptions strict;
  strict.strict = true;
  EXPECT_FALSE(is_marked(text, {.options = strict, .arch = "graniterapids"}));
}

TEST(MultiplyInTiles, LeavesHalvesAloneInStrictMode) {
  const std::string text = R"(
    fn f(A: bfloat16[16, 32], B: bfloat16[16, 16, 2], C: float32[16, 16] output) {
      for k in 0..16 { for i in 0..16 unroll { for j in 0..16 vectorize { for t in 0..2 {
        C[i, j] = C[i, j] + float32(A[i, k*2 + t])*float32(B[k, j, t])
      } } } }
    })";
  EXPECT_TRUE(is_marked(text));
  CompileOptions strict;
  strict.strict = true;
  EXPECT_FALSE(is_marked(text, {.options = strict, .arch = "sapphirerapids"}));
}

}  // namespace
}  // namespace kiln::testing
