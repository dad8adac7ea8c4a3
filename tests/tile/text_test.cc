#include "compiler/tile/text.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/tile/programs.h"

namespace kiln::testing {
namespace {

void expect_round_trip(std::string_view text) {
  const tile::Program program = tile::parse(text);
  EXPECT_EQ(tile::print(program), text);
  EXPECT_EQ(tile::parse(tile::print(program)), program);
}

TEST(TileText, AProductWithAnEpilogue) { expect_round_trip(kProduct); }

TEST(TileText, RowsWithGapsBetweenThem) {
  expect_round_trip(program_with(kProduct, "A: bfloat16[n, 20]", "A: bfloat16[n, 20] rows by 8"));
}

TEST(TileText, AConvolution) { expect_round_trip(kConvolution); }

TEST(TileText, ProductsOfFewerBits) {
  expect_round_trip(byte_float_product("mma_fast"));
  std::string floats = product_with("A: bfloat16[n, 20]", "A: float32[n, 20]");
  floats = program_with(floats, "B: bfloat16[12, 20]", "B: float32[12, 20]");
  expect_round_trip(program_with(floats, "mma", "mma_tf32"));
}

TEST(TileText, IndicesOfEveryKind) {
  for (const char* index : {"y", "-y + 2", "y*2 - r*3 + 1", "-y*2 - 1", "0", "-4", "r + y"}) {
    SCOPED_TRACE(index);
    expect_round_trip(program_with(kConvolution, "y*2 + r - 1", index));
  }
}

TEST(TileText, ConstantsOfEveryKind) {
  for (const char* number : {"1.5", "-2", "1e-05", "inf", "-inf", "0"}) {
    SCOPED_TRACE(number);
    expect_round_trip(fmt::format(
        R"(tile fill(C: float32[6] output) {{
  blocks i: 6 by 4
  view v0 = C[4]
  t0 = constant float32[4] {}
  store v0[i] = t0
}}
)",
        number));
  }
}

TEST(TileText, EveryFunction) {
  expect_round_trip(R"(tile functions(A: float16[4], C: float16[4] output) {
  blocks i: 4 by 4
  view v0 = A[4]
  view v1 = C[4]
  t0 = load v0[i]
  t1 = add t0, t0
  t2 = subtract t1, t0
  t3 = multiply t2, t0
  t4 = min t3, t0
  t5 = max t4, t0
  t6 = negative t5
  t7 = less t6, t0
  t8 = logical_not t7
  t9 = logical_or t8, t7
  t10 = select t9, t6, t0
  store v1[i] = t10
}
)");
}

TEST(TileText, PlacesSizesAndPartsOfLoops) { expect_round_trip(kSums); }

TEST(TileText, NamesOfValuesAndViewsMayBeAny) {
  EXPECT_EQ(tile::print(tile::parse(product_with("t6 = load v2[j]\n  t7 = reshape [1, 8] t6",
                                                 "x = load v2[j]\n  t7 = reshape [1, 8] x"))),
            kProduct);
}

struct Wrong {
  std::string_view part;
  std::string_view other;
  std::string_view message;
};

TEST(TileText, SaysWhereItIsWrong) {
  for (const Wrong& wrong : {
           Wrong{"t7 = reshape", "t7 = turn", "line 15, column 8: there is no instruction 'turn'"},
           Wrong{"load v2[j]", "load v9[j]", "line 14, column 13: there is no 'v9' here"},
           Wrong{"t9 = add t1, t8", "t9 = add t1, t3", "line 17, column 16: there is no 't3' here"},
           Wrong{"t9 = add", "t8 = add", "line 17, column 3: 't8' is named twice"},
           Wrong{"bias: float32[12]", "A: float32[12]", "line 1, column 58: 'A' is named twice"},
           Wrong{"bias: float32", "bias: float31", "line 1, column 64: there is no type 'float31'"},
           Wrong{"[n]", "[m]", "line 1, column 29: there is no 'n' here"},
           Wrong{"8, 8] 0", "8, 8] x", "line 7, column 31: expected a number, but got 'x'"},
           Wrong{"t1 = for", "t1, t20 = for",
                 "line 8, column 3: a loop has as many results as it carries values"},
           Wrong{"t9 = add t1, t8", "t9 = reduce most 0 t1",
                 "line 17, column 15: there is no reducer 'most'"},
           Wrong{"t6 = load", "t6, t7 = load",
                 "line 14, column 7: only a loop has several results"},
       }) {
    const std::string text = product_with(wrong.part, wrong.other);
    const Error error =
        expect_error([&] { tile::parse(text); }, ErrorKind::InvalidArgument, wrong.message);
    EXPECT_EQ(error.reason(), "SYNTAX");
  }
  expect_error([] { tile::parse(std::string(kProduct) + "}"); }, ErrorKind::InvalidArgument,
               "line 22, column 1: expected the end, but got '}'");
}

}  // namespace
}  // namespace kiln::testing
