// Attentions become programs on tiles that compute what the definition says, and store no score.
#include "compiler/tile/attention.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/language/evaluate/scalar.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/with_tileiras.h"
#include "tests/tile/attentions.h"
#include "tests/tile/definitions.h"

namespace kiln::testing {
namespace {

void expect_attention(const std::string& text, const std::vector<int64_t>& sizes,
                      std::string_view arch, Random& random) {
  const language::Kernel kernel = kernel_of(text).kernel;
  const language::Definition& definition = kernel.definition;
  ASSERT_TRUE(tile::is_attention(kernel));
  std::vector<tile::AttentionShape> shapes = tile::attention_shapes(kernel, arch);
  tile::AttentionShape& in_parts = shapes.emplace_back(shapes[0]);
  in_parts.depth = in_parts.columns = 16;
  for (const tile::AttentionShape& shape : shapes) {
    const tile::Program program = tile::attention(kernel, shape);
    SCOPED_TRACE(tile::print(program));
    EXPECT_EQ(tile::parse(tile::print(program)), program);
    const std::vector<HostTensor> inputs = drawn_inputs(kernel, sizes, random);
    expect_disjoint_blocks(program);
    const std::vector<HostTensor> actual = tile::interpret(program, sizes, inputs);
    const std::vector<HostTensor> expected =
        language::evaluate(definition, kernel.names, sizes, inputs);
    expect_near(actual.at(0), expected.at(0), inputs[2]);
  }
}

TEST(TileAttention, OfAnySizeBatchLayoutMaskAndEpilogueIsTheDefinition) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(60));
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    std::vector<int64_t> sizes;
    const std::string text = drawn_attention(random, sizes);
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, text));
    expect_attention(text, sizes, seed % 2 == 0 ? "sm_90" : "sm_80", random);
  }
}

/// Rows that see nothing are nan, as 0 / 0 is in the definition; parts of keys that a row does not
/// see make nothing nan.
TEST(TileAttention, RowsThatSeeNoKeyAreNan) {
  Attention written;
  for (const char* seen : {"j <= i - 7", "j > 66 + i", "j >= 64"}) {
    written.score = fmt::format("select({}, T, -inf)", seen);
    const language::Kernel kernel = kernel_of(written.text()).kernel;
    const tile::Program program = tile::attention(kernel, {32, 32, 0});
    Random random(1);
    std::vector<HostTensor> inputs;
    for (int i = 0; i < 3; ++i)
      inputs.push_back(drawn_floats(DType::Float16, {3, 70, 16}, random));
    const HostTensor actual = tile::interpret(program, {}, inputs)[0];
    const HostTensor expected = language::evaluate(kernel.definition, kernel.names, {}, inputs)[0];
    SCOPED_TRACE(seen);
    for (int64_t i = 0; i < element_count(actual.shape); ++i) {
      const double got = language::read_element(actual, i).floating;
      const double wanted = language::read_element(expected, i).floating;
      EXPECT_EQ(std::isnan(got), std::isnan(wanted)) << i;
      if (std::isnan(wanted)) continue;
      EXPECT_NEAR(got, wanted, 4e-3) << i;
    }
  }
}

class AssembledAttention : public WithTileiras {};

TEST_F(AssembledAttention, OfAnySizeBatchLayoutMaskAndEpilogue) {
  const size_t count = std::size(kArchitectures);
  for (uint64_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
    Random random(seed);
    std::vector<int64_t> sizes;
    const language::Kernel kernel = kernel_of(drawn_attention(random, sizes)).kernel;
    const std::string_view arch = kArchitectures[seed % count];
    const tile::AttentionShape shape = tile::attention_shapes(kernel, arch)[0];
    const tile::Program program = tile::attention(kernel, shape);
    SCOPED_TRACE(tile::print(program));
    const std::string bytecode =
        tile::bytecode(tile::alone(program), {.arch = arch, .warps = shape.warps});
    const std::string cubin = assembled(bytecode, arch);
    EXPECT_EQ(codegen::kernels_of_cubin(cubin).at(0).name, "kiln_tile_0");
  }
}

TEST(TileAttention, GoesThroughTheKeysThatAllSeeFirst) {
  Attention written;
  written.batches.clear();
  written.query = {{"i", "64"}, {"k", "16"}};
  written.row = {"i", "64"};
  written.key = {"j", "n"};
  written.keys = {{"j", "n"}, {"k", "16"}};
  written.values = {{"j", "n"}, {"d", "16"}};
  written.output = {{"i", "64"}, {"d", "16"}};
  written.score = "select(j <= i, T, -inf)";
  const language::Kernel kernel = kernel_of(written.text()).kernel;
  EXPECT_EQ(
      tile::print(tile::attention(kernel, {32, 64, 0})),
      R"(tile attention[n](Q: float16[64, 16], K: float16[n, 16], V: float16[n, 16], O: float32[64, 16] output) {
  blocks i: 64 by 32, d: 16 by 16, k: 16 by 16
  view v0 = Q[32, 16]
  view v1 = K[16, 64] order [1, 0]
  view v2 = V[64, 16]
  view v3 = O[32, 16]
  t0 = load v0[i, k]
  t1 = constant float32[32, 1] -inf
  t2 = constant float32[32, 1] 0
  t3 = constant float32[32, 16] 0
  t4 = size [1, 1] n
  t5 = places [1, 1] i
  t6 = constant int32[1, 1] 32
  t7 = add t5, t6
  t8 = constant int32[1, 1] 1
  t9 = add t5, t8
  t10 = min t4, t9
  t11 = constant int32[1, 1] -63
  t12 = add t10, t11
  t13, t14, t15 = for j: n by 64 until t12 with t16 = t1, t17 = t2, t18 = t3 {
    t19 = load v1[k, j]
    t20 = constant float32[32, 64] 0
    t21 = mma t0, t19, t20
    t22 = reduce max 1 t21
    t23 = max t16, t22
    t24 = constant float32[32, 1] -inf
    t25 = equal t23, t24
    t26 = constant float32[32, 1] 0
    t27 = select t25, t26, t23
    t28 = constant float32[32, 1] -1.4426950408889634
    t29 = multiply t27, t28
    t30 = constant float32[32, 64] 1.4426950408889634
    t31 = broadcast [32, 64] t29
    t32 = fma t21, t30, t31
    t33 = exp2 t32
    t34 = constant float32[32, 1] 1.4426950408889634
    t35 = fma t16, t34, t29
    t36 = exp2 t35
    t37 = reduce sum 1 t33
    t38 = fma t17, t36, t37
    t39 = broadcast [32, 16] t36
    t40 = multiply t18, t39
    t41 = load v2[j, d]
    t42 = cast float16 t33
    t43 = mma t42, t41, t40
    yield t23, t38, t43
  }
  t44, t45, t46 = for j_: n by 64 from t12 until t7 with t47 = t13, t48 = t14, t49 = t15 {
    t50 = places [1, 64] j_
    t51 = broadcast [32, 64] t50
    t52 = places [32] i
    t53 = reshape [32, 1] t52
    t54 = broadcast [32, 64] t53
    t55 = less_equal t51, t54
    t56 = load v1[k, j_]
    t57 = constant float32[32, 64] 0
    t58 = mma t0, t56, t57
    t59 = constant float32[32, 64] -inf
    t60 = select t55, t58, t59
    t61 = places [1, 64] j_
    t62 = size [1, 1] n
    t63 = broadcast [1, 64] t62
    t64 = less t61, t63
    t65 = broadcast [32, 64] t64
    t66 = constant float32[32, 64] -inf
    t67 = select t65, t60, t66
    t68 = reduce max 1 t67
    t69 = max t47, t68
    t70 = constant float32[32, 1] -inf
    t71 = equal t69, t70
    t72 = constant float32[32, 1] 0
    t73 = select t71, t72, t69
    t74 = constant float32[32, 1] -1.4426950408889634
    t75 = multiply t73, t74
    t76 = constant float32[32, 64] 1.4426950408889634
    t77 = broadcast [32, 64] t75
    t78 = fma t67, t76, t77
    t79 = exp2 t78
    t80 = constant float32[32, 1] 1.4426950408889634
    t81 = fma t47, t80, t75
    t82 = exp2 t81
    t83 = reduce sum 1 t79
    t84 = fma t48, t82, t83
    t85 = broadcast [32, 16] t82
    t86 = multiply t49, t85
    t87 = load v2[j_, d]
    t88 = cast float16 t79
    t89 = mma t88, t87, t86
    yield t69, t84, t89
  }
  t90 = constant float32[32, 1] 1
  t91 = divide t90, t45
  t92 = broadcast [32, 16] t91
  t93 = multiply t46, t92
  store v3[i, d] = t93
}
)");
}

TEST(TileAttention, BlocksAreOfOtherShapesForOtherSizesAndProcessors) {
  const auto shapes_of = [](const char* queries, const char* keys, const char* depth,
                            std::string_view arch, const char* type = "float16") {
    Attention written;
    written.type = type;
    written.batches = {{"b", "32"}};
    written.row.second = queries;
    written.key.second = keys;
    written.column.second = written.depth.second = depth;
    written.query = {{"b", "32"}, {"i", queries}, {"k", depth}};
    written.keys = {{"b", "32"}, {"j", keys}, {"k", depth}};
    written.values = {{"b", "32"}, {"j", keys}, {"d", depth}};
    written.output = {{"b", "32"}, {"i", queries}, {"d", depth}};
    std::vector<std::string> shapes;
    for (const tile::AttentionShape& each :
         tile::attention_shapes(kernel_of(written.text()).kernel, arch))
      shapes.push_back(fmt::format("{} x {}, {}{}{}", each.queries, each.keys, each.warps,
                                   each.depth > 0 ? fmt::format(" by {}", each.depth) : "",
                                   each.columns > 0 ? fmt::format(" of {}", each.columns) : ""));
    return fmt::format("{}", fmt::join(shapes, "; "));
  };
  EXPECT_EQ(shapes_of("4096", "4096", "128", "sm_90"), "128 x 128, 8; 64 x 128, 0; 64 x 64, 0");
  EXPECT_EQ(shapes_of("4096", "1024", "64", "sm_100"), "128 x 64, 8; 64 x 64, 0");
  EXPECT_EQ(shapes_of("4096", "n", "256", "sm_90"), "128 x 64, 8; 64 x 64, 0; 64 x 32, 0");
  EXPECT_EQ(shapes_of("200", "4096", "64", "sm_90"), "64 x 128, 0; 64 x 64, 0");
  EXPECT_EQ(shapes_of("1", "20", "64", "sm_90"), "16 x 32, 0");
  EXPECT_EQ(shapes_of("4096", "4096", "128", "sm_80"), "64 x 64, 0; 32 x 64, 0");
  EXPECT_EQ(shapes_of("4096", "4096", "200", "sm_120"), "64 x 32, 8; 32 x 32, 0");
  EXPECT_EQ(shapes_of("4096", "4096", "512", "sm_90"), "64 x 64, 8 of 512; 64 x 32, 8 of 512");
  EXPECT_EQ(shapes_of("4096", "4096", "1024", "sm_100"),
            "64 x 64, 8 by 256 of 512; 64 x 32, 8 by 256 of 512");
  EXPECT_EQ(shapes_of("4096", "4096", "300", "sm_80"),
            "64 x 32, 8 by 128 of 512; 32 x 32, 8 by 64 of 512");
  const auto in_float32 = [&](const char* queries, const char* depth) {
    return shapes_of(queries, "4096", depth, "sm_90", "float32");
  };
  EXPECT_EQ(in_float32("4096", "64"), "64 x 32, 8 by 32; 32 x 32, 4 by 32; 64 x 16, 8 by 32");
  EXPECT_EQ(in_float32("4096", "80"), "64 x 16, 8 by 32; 32 x 16, 8 by 32");
  EXPECT_EQ(in_float32("1", "64"), "16 x 32, 0 by 32; 16 x 16, 0 by 32");
}

TEST(TileAttention, SaysWhyOneIsNotDone) {
  const auto expect_refused = [](const Attention& written, std::string_view reason) {
    const language::Kernel kernel = kernel_of(written.text()).kernel;
    SCOPED_TRACE(written.text());
    EXPECT_TRUE(tile::is_attention(kernel));
    const Error error = expect_error([&] { tile::attention_shapes(kernel, "sm_90"); },
                                     ErrorKind::Unsupported, reason);
    EXPECT_EQ(error.reason(), "TILE_FORM");
  };
  const auto with_depth = [](const char* depth) {
    Attention written;
    written.depth.second = depth;
    written.query[2].second = written.keys[2].second = depth;
    return written;
  };
  expect_refused(with_depth("n"), "the call says how many numbers a query has");
  Attention written = with_depth("130");
  written.type = "float32";
  expect_refused(written,
                 "a query or a value has 256 numbers, and in float32 a block computes with 128");
  written = {};
  written.score = "sin(T)";
  expect_refused(written, "sin is not done on tiles");
  written = {};
  written.result = "R + cbrt(R)";
  expect_refused(written, "cbrt is not done on tiles");
  written = {};
  written.score = "T + float32(i*j)";
  EXPECT_EQ(tile::attention_shapes(kernel_of(written.text()).kernel, "sm_90").size(), 1u);
  written.score = "T + float32(i*j*1000000)";
  expect_refused(written, "it computes in int64");
}

/// Parts of the text of an attention replaced, and why it is not done then.
TEST(TileAttention, SaysWhatOfItsFactorsIsNotDone) {
  struct Case {
    std::vector<std::pair<std::string_view, std::string_view>> parts;
    std::string_view reason;
  };
  const Case cases[] = {
      {{{"V: float16", "V: bfloat16"}}, "its weights are float16 and its values bfloat16"},
      {{{"V: float16", "V: bfloat16"},
        {"float32(W[b, i, j]) * float32(V[b, j, d])", "float32(V[b, j, d]) * float32(W[b, i, j])"}},
       "its weights are float16 and its values bfloat16"},
      {{{"Q: float16", "Q: float8_e5m2"}, {"K: float16", "K: float8_e5m2"}},
       "its queries are float8_e5m2, and no float of 16 or 32 bits"},
      {{{"W: float16", "W: float8_e5m2"}, {"float16(E[b, i, j]", "float8_e5m2(E[b, i, j]"}},
       "its weights are multiplied as float8_e5m2, and not as a float of 16 or 32 bits"},
      {{{"Q: float16", "Q: float32"},
        {"K: float16", "K: float32"},
        {"float32(Q[b, i, k])", "tf32(Q[b, i, k])"},
        {"float32(K[b, j, k])", "tf32(K[b, j, k])"}},
       "its scores are products of tf32()"},
      {{{"Q: float16", "Q: float32"},
        {"K: float16", "K: float32"},
        {"float32(Q[b, i, k])", "tf32(Q[b, i, k])"},
        {"float32(K[b, j, k])", "K[b, j, k]"}},
       "one of its factors alone is tf32()"},
      {{{"V: float16", "V: float32"},
        {"W: float16", "W: float32"},
        {"float16(E[b, i, j]", "(E[b, i, j]"},
        {"float32(V[b, j, d])", "tf32(V[b, j, d])"}},
       "its values are tf32(), its weights are not"},
      {{{"Q: float16[3, 70, 16]", "Q: float16[3, 70, 4, 4]"},
        {"K: float16[3, 70, 16]", "K: float16[3, 70, 4, 4]"},
        {"sum[k < 16](float32(Q[b, i, k]) * float32(K[b, j, k]))",
         "sum[k < 4, l < 4](float32(Q[b, i, k, l]) * float32(K[b, j, k, l]))"}},
       "its scores are sums over several axes"},
      {{{"K: float16[3, 70, 16]", "K: float16[3, 71, 16]"}, {"K[b, j, k]", "K[b, j + 1, k]"}},
       "it reads a window of a tensor"},
      {{{"Q[b, i, k]", "Q[b, j, k]"}}, "its scores are no products of a query and a key"},
      {{{"V: float16[3, 70, 16]", "V: float16[3, 70, 16, 2]"},
        {"O: float32[3, 70, 16]", "O: float32[3, 70, 16, 2]"},
        {"A: float32[3, 70, 16]", "A: float32[3, 70, 16, 2]"},
        {"A[b, i, d] = ", "A[b, i, d, e] = "},
        {"V[b, j, d]", "V[b, j, d, e]"},
        {"O[b, i, d] = A[b, i, d]", "O[b, i, d, e] = A[b, i, d, e]"}},
       "its values have several axes of their own"},
      {{{"O: float32[3, 70, 16]", "O: float32[3, 70, 16, 2]"},
        {"O[b, i, d] = A[b, i, d]", "O[b, i, d, e] = A[b, i, d]"}},
       "an axis of its output is one of neither queries, keys nor values"},
      {{{"V: float16[3, 70, 16]", "V: float16[3, 70]"},
        {"O: float32[3, 70, 16]", "O: float32[3, 70]"},
        {"A: float32[3, 70, 16]", "A: float32[3, 70]"},
        {"A[b, i, d] = ", "A[b, i] = "},
        {"V[b, j, d]", "V[b, j]"},
        {"O[b, i, d] = A[b, i, d]", "O[b, i] = A[b, i]"}},
       "its queries or its values have no axis of their own"},
      {{{"P[b, i, j] * 0.25", "P[b, i, j] * float32(j % 2)"}},
       "floormod of int64 is not done on tiles"},
      {{{"P[b, i, j] * 0.25", "P[b, i, j] * float32(j < i)"}},
       "it makes a number of a condition, or one of a number"},
  };
  for (const auto& [parts, reason] : cases) {
    std::string text = Attention().text();
    for (const auto& [part, other] : parts) {
      const size_t at = text.find(part);
      ASSERT_NE(at, std::string::npos) << part;
      text.replace(at, part.size(), other);
    }
    SCOPED_TRACE(text);
    const language::Kernel kernel = kernel_of(text).kernel;
    EXPECT_TRUE(tile::is_attention(kernel));
    const Error error = expect_error([&] { tile::attention_shapes(kernel, "sm_90"); },
                                     ErrorKind::Unsupported, reason);
    EXPECT_EQ(error.reason(), "TILE_FORM");
  }
}

TEST(TileAttention, AnElementOfTooManyExpressionsIsNotLookedAt) {
  std::string text =
      "kernel k(A: float32[8]) -> (C: float32[8]) {\n  S0: float32[8]\n  S0[i] = A[i]\n";
  for (int n = 1; n <= 30; ++n) {
    std::string sum = fmt::format("S{}[i]", n - 1);
    for (int term = 0; term < 200; ++term)
      sum += fmt::format(" + S{}[i]", n - 1);
    text += fmt::format("  S{0}: float32[8]\n  S{0}[i] = {1}\n", n, sum);
  }
  expect_no_form(kernel_of(text + "  C[i] = S30[i]\n}\n").kernel,
                 "an element is made of more than 10000 expressions, through all of its stages");
}

/// Each stage reads the one before it twice, at the same place or at others.
TEST(TileAttention, AnElementOfManyStagesIsLookedAtOnce) {
  const auto kernel_with = [](const char* second) {
    std::string text =
        "kernel k(A: float32[8, 8]) -> (C: float32[8, 8]) {\n"
        "  S0: float32[8, 8]\n  S0[i, j] = A[i, j]\n";
    for (int n = 1; n <= 64; ++n)
      text += fmt::format("  S{0}: float32[8, 8]\n  S{0}[i, j] = S{1}[i, j] + S{1}[{2}]\n", n,
                          n - 1, second);
    return kernel_of(text + "  C[i, j] = S64[i, j]\n}\n").kernel;
  };
  for (const char* second : {"i, j", "j, i"}) {
    const language::Kernel kernel = kernel_with(second);
    EXPECT_FALSE(tile::is_attention(kernel));
    expect_no_form(kernel,
                   "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or "
                   "of 8-bit integers in int32");
  }
}

}  // namespace
}  // namespace kiln::testing
