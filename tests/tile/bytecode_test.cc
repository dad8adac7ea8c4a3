#include "compiler/tile/bytecode.h"

#include <gtest/gtest.h>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/tile/text.h"
#include "tests/support/with_tileiras.h"
#include "tests/tile/definitions.h"
#include "tests/tile/programs.h"

namespace kiln::testing {
namespace {

class TileBytecode : public WithTileiras {
 protected:
  static void expect_assembled(std::string_view text, const tile::BytecodeOptions& options = {}) {
    const std::string bytecode = tile::bytecode(tile::alone(tile::parse(text)), options);
    for (const std::string_view arch : kArchitectures) {
      if (arch == "sm_80" && text.find("float8") != std::string_view::npos) continue;  // has none
      SCOPED_TRACE(arch);
      const std::vector<codegen::CubinKernel> kernels =
          codegen::kernels_of_cubin(assembled(bytecode, arch));
      ASSERT_EQ(kernels.size(), 1u);
      EXPECT_EQ(kernels[0].name, "kiln_tile_0");
      EXPECT_GT(kernels[0].instructions, 0);
    }
  }
};

TEST_F(TileBytecode, OfAProductWithAnEpilogueOfAnySize) { expect_assembled(kProduct); }

TEST_F(TileBytecode, OfFactorsInFloat32) {
  const std::string text = product_with("A: bfloat16[n, 20]", "A: float32[n, 20]");
  expect_assembled(program_with(text, "B: bfloat16[12, 20]", "B: float32[12, 20]"));
  const std::string windows = program_with(kConvolution, "X: bfloat16[n, ", "X: float32[n, ");
  expect_assembled(program_with(windows, "F: bfloat16[", "F: float32["));
  // One factor is read as it is, too, from the same view.
  expect_assembled(R"(tile squares(A: float32[64, 64], C: float32[64, 64] output) {
  blocks i: 64 by 64, j: 64 by 64
  view v0 = A[64, 64]
  view v1 = C[64, 64]
  t0 = load v0[i, j]
  t1 = load v0[i, j]
  t2 = load v0[i, j]
  t3 = mma t0, t1, t2
  store v1[i, j] = t3
}
)");
}

TEST_F(TileBytecode, OfWindowsOfImages) {
  expect_assembled(kConvolution);
  // Without zeros around; the channels a multiple of a tile.
  std::string inside = program_with(kConvolution, "y*2 + r - 1, x*2 + s - 1", "y + r, x + s");
  inside = program_with(inside, "X: bfloat16[n, 6, 5, 20]", "X: bfloat16[n, 5, 5, 32]");
  inside = program_with(inside, "F: bfloat16[3, 3, 20, 12]", "F: bfloat16[3, 3, 32, 12]");
  expect_assembled(program_with(inside, "c: 20 by 16", "c: 32 by 16"));
}

TEST_F(TileBytecode, OfEveryFunctionOfEveryType) {
  for (const auto& [type, number] : {std::pair{"float16", "-1.5"}, std::pair{"bfloat16", "-1.5"},
                                     std::pair{"float32", "-1.5"}, std::pair{"int32", "-3"}}) {
    SCOPED_TRACE(type);
    expect_assembled(fmt::format(R"(tile functions(A: {0}[3, 70], C: {0}[3, 70] output) {{
  blocks b: 3 by 1, i: 70 by 64
  view v0 = A[1, 64]
  view v1 = C[1, 64]
  t0 = load v0[b, i]
  t1 = constant {0}[1, 64] {1}
  t2 = add t0, t1
  t3 = subtract t2, t0
  t4 = multiply t3, t0
  t5 = min t4, t0
  t6 = max t5, t0
  t7 = negative t6
  store v1[b, i] = t7
}}
)",
                                 type, number));
  }
}

/// The number behind 13 in front of a module.
int version_of(std::string_view text) {
  const std::string module = tile::bytecode(tile::alone(tile::parse(text)));
  EXPECT_TRUE(module.starts_with("\x7fTileIR"));
  EXPECT_EQ(module.at(8), 13);
  return module.at(9);
}

TEST(TileBytecodeVersion, IsTheFirstThatHasWhatAProgramSays) {
  EXPECT_EQ(version_of(kProduct), 1);
  EXPECT_EQ(version_of(byte_float_product("mma")), 1);
  EXPECT_EQ(version_of(byte_float_product("mma_fast")), 3);
}

/// A later version says more of some instructions: of functions, loops and views.
TEST_F(TileBytecode, OfALaterVersionWithAllThatItChanges) {
  expect_assembled(byte_float_product("mma_fast"));
  const std::string functions = program_with(byte_float_product("mma_fast"), "t9 = add t1, t8",
                                             R"(t12 = tanh t1
  t13 = exp t12
  t14 = places [8, 1] i
  t15 = negative t14
  t16 = broadcast [8, 8] t15
  t17 = cast float32 t16
  t18 = reduce max 1 t17
  t19 = broadcast [8, 8] t18
  t20 = add t13, t19
  t9 = add t20, t8)");
  expect_assembled(functions, {.arch = "sm_90", .warps = 4});
}

TEST_F(TileBytecode, OfPlacesSizesAndPartsOfLoops) { expect_assembled(kSums); }

TEST_F(TileBytecode, OfEveryComparisonChoiceAndReduction) {
  for (const std::string_view type : {"float16", "bfloat16", "float32", "int32"}) {
    SCOPED_TRACE(type);
    std::string body;
    int number = 2;
    for (const std::string_view comparison :
         {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
      body += fmt::format("  t{0} = {1} t0, t1\n  t{2} = logical_not t{0}\n", number, comparison,
                          number + 1);
      body += fmt::format("  t{0} = logical_or t{1}, t{2}\n  t{3} = logical_and t{0}, t{1}\n",
                          number + 2, number, number + 1, number + 3);
      body += fmt::format("  t{} = select t{}, t0, t{}\n", number + 4, number + 3,
                          number > 2 ? number - 1 : 1);
      number += 5;
    }
    const bool is_wide = type.ends_with("32");
    for (const std::string_view combiner : {"sum", "min", "max"}) {
      if (!is_wide) break;
      body += fmt::format("  t{0} = reduce {1} 0 t{2}\n  t{3} = broadcast [16, 64] t{0}\n", number,
                          combiner, number - 1, number + 1);
      number += 2;
    }
    expect_assembled(fmt::format(R"(tile functions(A: {0}[16, 64], C: {0}[16, 64] output) {{
  blocks b: 16 by 16, i: 64 by 64
  view v0 = A[16, 64]
  view v1 = C[16, 64]
  t0 = load v0[b, i]
  t1 = constant {0}[16, 64] 2
{1}  store v1[b, i] = t{2}
}}
)",
                                 type, body, number - 1));
  }
}

TEST_F(TileBytecode, OfWhatIsDoneInFloat32Alone) {
  expect_assembled(R"(tile functions(A: float32[16, 64], C: float32[16, 64] output) {
  blocks b: 16 by 16, i: 64 by 64
  view v0 = A[16, 64]
  view v1 = C[16, 64]
  t0 = load v0[b, i]
  t1 = divide t0, t0
  t2 = fma t1, t0, t0
  t3 = exp2 t2
  t4 = exp t3
  t5 = log t4
  t6 = sqrt t5
  t7 = rsqrt t6
  t8 = tanh t7
  store v1[b, i] = t8
}
)");
}

TEST_F(TileBytecode, OfEveryCast) {
  for (const std::string_view from :
       {"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "int8", "uint8", "int32"}) {
    SCOPED_TRACE(from);
    std::string parameters = fmt::format("A: {}[64]", from);
    std::string views = "  view v0 = A[64]\n";
    std::string body = "  t0 = load v0[i]\n";
    int number = 0;
    for (const std::string_view to : {"float16", "bfloat16", "float32", "int32"}) {
      if (to == from || (to == "int32" && from.find("float") != std::string_view::npos)) continue;
      ++number;
      parameters += fmt::format(", C{}: {}[64] output", number, to);
      views += fmt::format("  view v{0} = C{0}[64]\n", number);
      body += fmt::format("  t{0} = cast {1} t0\n  store v{0}[i] = t{0}\n", number, to);
    }
    expect_assembled(
        fmt::format("tile casts({}) {{\n  blocks i: 64 by 64\n{}{}}}\n", parameters, views, body));
  }
}

TEST_F(TileBytecode, OfTensorsOfWhichNoSizeIsKnown) {
  expect_assembled(
      R"(tile open[b, m, n, l](A: float16[b, l, m], B: float16[b, l, n], C: float16[b, n, m] output) {
  blocks g: b by 1, i: m by 64, j: n by 64
  view v0 = A[1, 64, 32] order [0, 2, 1]
  view v1 = B[1, 32, 64]
  view v2 = C[1, 64, 64] order [0, 2, 1]
  t0 = constant float32[64, 64] 0
  t1 = for k: l by 32 with t2 = t0 {
    t3 = load v0[g, i, k]
    t4 = reshape [64, 32] t3
    t5 = load v1[g, k, j]
    t6 = reshape [32, 64] t5
    t7 = mma t4, t6, t2
    yield t7
  }
  t8 = cast float16 t1
  t9 = reshape [1, 64, 64] t8
  store v2[g, i, j] = t9
}
)",
      {.arch = "sm_90", .warps = 4});
}

}  // namespace
}  // namespace kiln::testing
