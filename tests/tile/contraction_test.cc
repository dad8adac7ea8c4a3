// Products become programs on tiles that compute what the definition says.
#include "compiler/tile/contraction.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/language/evaluate/scalar.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/random_contraction.h"
#include "tests/support/with_tileiras.h"
#include "tests/tile/definitions.h"

namespace kiln::testing {
namespace {

language::Kernel drawn_kernel(uint64_t seed, std::vector<int64_t>* sizes = nullptr) {
  Random random(seed);
  DrawnContraction drawn = drawn_contraction(random);
  if (sizes != nullptr) *sizes = std::move(drawn.sizes);
  return kernel_of(drawn.text).kernel;
}

TEST(TileContraction, OfAnySizeBatchLayoutAndEpilogueIsTheDefinition) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(60));
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    std::vector<int64_t> sizes;
    const language::Kernel kernel = drawn_kernel(seed, &sizes);
    const tile::Program program = tile::contraction(kernel, tile::block_shape(kernel));
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, tile::print(program)));
    Random random(seed);
    expect_definition(program, kernel, sizes, random_inputs(kernel, sizes, random));
  }
}

/// gelu in both forms, silu, and other functions of sums: near the definition, whose functions are
/// the host's.
TEST(TileContraction, FunctionsOfSumsArePartOfTheKernel) {
  // What 1 + erf(x) and 1 + tanh(x) lose near -1, they lose of 1.
  for (const auto& [text, least] :
       {std::pair{"S[i, j]*0.5*(1.0 + erf(S[i, j]*0.70710678))", 1.0},
        std::pair{
            "0.5*S[i, j]*(1.0 + tanh(0.7978846*(S[i, j] + 0.044715*S[i, j]*S[i, j]*S[i, j])))",
            1.0},
        std::pair{"S[i, j]*sigmoid(S[i, j])", 0.0}, std::pair{"log(1.0 + exp(S[i, j]))", 0.01},
        std::pair{"sqrt(max(S[i, j], 0.25))*rsqrt(max(S[i, j], 0.25))", 0.0},
        std::pair{"erf(S[i, j])", 0.0}, std::pair{"sigmoid(S[i, j]*30.0)", 1e-24}}) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(A: float16[48, 20], B: float16[20, 40], T: float32[48, 40])"
                              " -> (C: float32[48, 40]) {{\n"
                              "  P: float32[48, 40]\n"
                              "  P[i, j] = sum[k < 20](float32(A[i, k]) * float32(B[k, j]))\n"
                              "  S: float32[48, 40]\n"
                              "  S[i, j] = P[i, j]*0.0 + T[i, j]\n"
                              "  C[i, j] = {}\n}}\n",
                              text))
            .kernel;
    SCOPED_TRACE(text);
    const tile::Program program = tile::contraction(kernel, tile::block_shape(kernel));
    Random random(7);
    std::vector<HostTensor> inputs = random_inputs(kernel, {}, random);
    for (int64_t i = 0; i < 48 * 40; ++i) {
      const double number = (static_cast<double>(i) - 960) / 200;
      language::write_element(inputs[2], i, language::Scalar::of_float(DType::Float32, number));
    }
    const HostTensor actual = tile::interpret(program, {}, inputs)[0];
    const HostTensor expected = language::evaluate(kernel.definition, kernel.names, {}, inputs)[0];
    for (int64_t i = 0; i < 48 * 40; ++i) {
      const double wanted = language::read_element(expected, i).floating;
      EXPECT_NEAR(language::read_element(actual, i).floating, wanted,
                  5e-7 * std::max(std::abs(wanted), least))
          << i;
    }
  }
}

class AssembledContraction : public WithTileiras {};

TEST_F(AssembledContraction, OfAnySizeBatchLayoutAndEpilogue) {
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed)
    expect_assembled(drawn_kernel(seed));
}

TEST(TileContraction, TheColumnIsWhatLiesSideBySideInTheOutput) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(A: float16[64, 32], B: float16[32, 128]) -> (C: float32[128, 64]) {\n"
          "  C[j, i] = sum[k < 32](float32(A[i, k]) * float32(B[k, j])) }")
          .kernel;
  EXPECT_EQ(tile::print(tile::contraction(kernel, {64, 32, 16, 0})),
            R"(tile k(A: float16[64, 32], B: float16[32, 128], C: float32[128, 64] output) {
  blocks j: 128 by 64, i: 64 by 32
  view v0 = B[64, 16] order [1, 0]
  view v1 = A[16, 32] order [1, 0]
  view v2 = C[64, 32]
  t0 = constant float32[64, 32] 0
  t1 = for k: 32 by 16 with t2 = t0 {
    t3 = load v0[j, k]
    t4 = load v1[k, i]
    t5 = mma t3, t4, t2
    yield t5
  }
  store v2[j, i] = t1
}
)");
}

TEST(TileContraction, BlocksAreSmallerWhereThereAreFew) {
  const auto shape_of = [](std::string_view sizes) {
    const language::Kernel kernel =
        kernel_of(
            fmt::format("kernel k(A: float16[b, {0}, {1}], B: float16[{1}, {2}]) -> (C: float32[b, "
                        "{0}, {2}]) {{\n"
                        "  C[g, i, j] = sum[k < {1}](float32(A[g, i, k]) * float32(B[k, j])) }}",
                        sizes, sizes, sizes))
            .kernel;
    const tile::BlockShape shape = tile::block_shape(kernel);
    return fmt::format("{} x {} x {}, {}", shape.rows, shape.columns, shape.steps, shape.warps);
  };
  EXPECT_EQ(shape_of("n"), "128 x 256 x 64, 8");
  EXPECT_EQ(shape_of("768"), "128 x 256 x 64, 8");
  EXPECT_EQ(shape_of("512"), "128 x 256 x 32, 8");  // a longer loop
  EXPECT_EQ(shape_of("90"), "128 x 128 x 64, 0");
  EXPECT_EQ(shape_of("17"), "128 x 32 x 32, 0");  // of several batches
  EXPECT_EQ(shape_of("1"), "64 x 16 x 16, 0");
}

/// A row of a part has 128 bytes; sums of 8-bit floats, which are there twice, have fewer columns.
TEST(TileContraction, BlocksAreOfOtherShapesForEightBits) {
  const auto shape_of = [](std::string_view type, std::string_view wide, std::string_view rows,
                           std::string_view row) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(A: {0}[{2}], B: {0}[4096, 4096]) -> (C: {1}[4096, 4096]) {{"
                              " C[i, j] = sum[k < 4096]({1}(A[{3}]) * {1}(B[k, j])) }}",
                              type, wide, rows, row))
            .kernel;
    const tile::BlockShape shape = tile::block_shape(kernel);
    return fmt::format("{} x {} x {}, {}", shape.rows, shape.columns, shape.steps, shape.warps);
  };
  EXPECT_EQ(shape_of("int8", "int32", "4096, 4096", "i, k"), "128 x 256 x 128, 8");
  EXPECT_EQ(shape_of("float8_e5m2", "float32", "4096, 4096", "i, k"), "128 x 128 x 128, 8");
  EXPECT_EQ(shape_of("float8_e5m2", "float32", "4096, 4096", "k, i"), "128 x 128 x 64, 8");
}

/// Sums that are there once have blocks as large as those of other types.
TEST(TileContraction, SumsOfByteFloatsAreThereOnceWhereTensorCoresKeepThem) {
  using enum tile::ByteFloatSums;
  const auto text_of = [](std::string_view type, tile::ByteFloatSums sums) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(A: {0}[4096, 4096], B: {0}[4096, 4096])"
                              " -> (C: float32[4096, 4096]) {{ C[i, j] ="
                              " sum[k < 4096](float32(A[i, k]) * float32(B[j, k])) }}",
                              type))
            .kernel;
    const tile::BlockShape shape = tile::block_shapes(kernel, sums)[0];
    const std::string text = tile::print(tile::contraction(kernel, shape));
    return fmt::format("{} x {} x {}, {}, {}", shape.rows, shape.columns, shape.steps, shape.warps,
                       text.substr(text.find("mma"), 8));
  };
  EXPECT_EQ(text_of("float8_e5m2", InParts), "128 x 128 x 128, 8, mma t3, ");
  EXPECT_EQ(text_of("float8_e5m2", InFewBits), "128 x 256 x 128, 8, mma_fast");
  EXPECT_EQ(text_of("float8_e5m2", InFloat32), "128 x 256 x 128, 8, mma t3, ");
  EXPECT_EQ(text_of("float16", InFewBits), "128 x 256 x 64, 8, mma t3, ");

  EXPECT_EQ(tile::byte_float_sums("sm_90", false), InParts);
  EXPECT_EQ(tile::byte_float_sums("sm_90", true), InFewBits);
  EXPECT_EQ(tile::byte_float_sums("sm_100", false), InFloat32);
  EXPECT_EQ(tile::byte_float_sums("sm_100", true), InFloat32);
}

TEST(TileContraction, PartsOfSumsAreLongerWhereTensorFloatsAreTurned) {
  const auto steps_of = [](std::string_view a, std::string_view b) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(A: float32[4096, 4096], B: float32[4096, 4096])"
                              " -> (C: float32[4096, 4096]) {{"
                              " C[i, j] = sum[k < 4096](tf32(A[{}]) * tf32(B[{}])) }}",
                              a, b))
            .kernel;
    return tile::block_shape(kernel).steps;
  };
  EXPECT_EQ(steps_of("i, k", "j, k"), 32);
  EXPECT_EQ(steps_of("i, k", "k, j"), 64);
  EXPECT_EQ(steps_of("k, i", "j, k"), 64);
}

struct Refused {
  std::string_view text;
  std::string_view reason;
};

/// Arguments, what is computed, and why it is no contraction.
constexpr Refused kRefused[] = {
    {"(A: float32[8]) -> (C: float32[8]) { C[i] = A[i] + 1.0 }",
     "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
     "integers in int32"},
    {"(A: float32[8, 4], B: float32[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](A[i, k] * B[k, j]) }",
     "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
     "integers in int32"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) + float32(B[k, j])) }",
     "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
     "integers in int32"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float16[8, 8]) {"
     " C[i, j] = sum[k < 4](A[i, k] * B[k, j]) }",
     "its reduction is more than a sum in float32 or int32"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = max[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "its reduction is more than a sum in float32 or int32"},
    {"(A: float16[8, 4], B: bfloat16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "its factors have two types"},
    {"(A: float16[8, 5], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k + 1]) * float32(B[k, j])) }",
     "a window of it is not summed over all of its last dimension"},
    {"(A: float16[8, 4], B: float16[4, 8], D: float32[9]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = S[i, j] + D[i + 1] }",
     "an index of what it reads is more than an axis"},
    {"(A: float16[8, 5], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "it reads a part of a tensor"},
    {"(A: float16[8, 5], B: float16[5, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[1 <= k < 5](float32(A[i, k]) * float32(B[k, j])) }",
     "an axis does not begin at 0"},
    {"(A: float16[n + 1, 4], B: float16[4, 8]) -> (C: float32[n + 1, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "an extent is neither a number nor a size"},
    {"(A: float16[8, 4], B: float16[8, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[i, j])) }",
     "a factor does not have the axis that is summed over"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8, 3]) {"
     " C[i, j, b] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "an axis of its output is none of its factors"},
    {"(A: float16[8, 4], B: float16[4]) -> (C: float32[8]) {"
     " C[i] = sum[k < 4](float32(A[i, k]) * float32(B[k])) }",
     "it is a product with a vector"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = sin(S[i, j]) }",
     "sin is not done on tiles"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float64[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = float64(S[i, j]) }",
     "it reads or stores float64"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = float32(float64(S[i, j])) }",
     "it computes in float64"},
    {"(A: int8[8, 4], B: int8[4, 8], D: float16[8, 8]) -> (C: int32[8, 8]) {"
     " S: int32[8, 8] S[i, j] = sum[k < 4](int32(A[i, k]) * int32(B[k, j]))"
     " C[i, j] = S[i, j] + int32(D[i, j]) }",
     "it makes integers of floats"},
    {"(A: int8[8, 4], B: int8[4, 8]) -> (C: int8[8, 8]) {"
     " S: int32[8, 8] S[i, j] = sum[k < 4](int32(A[i, k]) * int32(B[k, j]))"
     " C[i, j] = int8(S[i, j]) }",
     "it computes in int8"},
    {"(A: int8[8, 4], B: int16[4, 8]) -> (C: int32[8, 8]) {"
     " C[i, j] = sum[k < 4](int32(A[i, k]) * int32(B[k, j])) }",
     "it reads or stores int16"},
    {"(A: int8[8, 4], B: int8[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
     "integers in int32"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = S[i, j] * S[j, i] }",
     "it has several sums"},
    {"(A: float16[8, 4], B: float16[4, 8], s: float32[]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = S[i, j] * s[] }",
     "it reads a tensor without dimensions"},
    {"(A: float16[8, 4], B: float16[4, 8], s: float32[8, 8]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = S[i, j] * s[i, i] }",
     "what it reads has one axis twice"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (S: float32[8, 8], C: float32[8, 8]) {"
     " S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) C[i, j] = S[i, j] + 1.0 }",
     "it has several outputs"},
};

TEST(TileContraction, IsDoneWhereTensorCoresWorkOnTheirOwn) {
  const auto product = [](const char* type, int columns) {
    return kernel_of(
               fmt::format("kernel k(A: {0}[64, 64], B: {0}[64, {1}]) -> (C: float32[64, {1}])"
                           " {{ C[i, j] = sum[k < 64](float32(A[i, k]) * float32(B[k, j])) }}",
                           type, columns))
        .kernel;
  };
  EXPECT_TRUE(tile::is_plain_product(product("float16", 64), "sm_90"));
  EXPECT_TRUE(tile::is_plain_product(product("float16", 64), "sm_100"));
  EXPECT_FALSE(tile::is_plain_product(product("float16", 64), "sm_80"));
  EXPECT_FALSE(tile::is_plain_product(product("float16", 63), "sm_90"));
  EXPECT_FALSE(tile::is_plain_product(product("float32", 64), "sm_90"));
  // Heads side by side in a row are a window of it.
  const char* heads =
      "kernel k(A: float16[64, 128], B: float16[2, 64, 64]) -> (C: float32[2, 64, 64]) {"
      " C[h, i, j] = sum[k < 64](float32(A[i, h*64 + k]) * float32(B[h, j, k])) }";
  EXPECT_FALSE(tile::is_plain_product(kernel_of(heads).kernel, "sm_90"));
}

TEST(TileContraction, SaysWhyADefinitionIsNone) {
  for (const Refused& refused : kRefused) {
    SCOPED_TRACE(refused.text);
    expect_no_form(kernel_of(fmt::format("kernel k{}", refused.text)).kernel, refused.reason);
  }
}

}  // namespace
}  // namespace kiln::testing
