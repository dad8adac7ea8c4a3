// Products become programs on tiles that compute what the definition says.
#include "compiler/tile/contraction.h"

#include <cstdlib>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/tileiras.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/tile/bytecode.h"
#include "compiler/tile/interpret.h"
#include "compiler/tile/text.h"
#include "tests/support/expect_error.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

/// A contraction as text, and sizes to call it with.
struct Drawn {
  std::string text;
  std::vector<int64_t> sizes;
};

/// A name for each axis, with its extent.
struct DrawnAxis {
  std::string name;
  std::string extent;
};

std::string names_of(const std::vector<DrawnAxis>& axes) {
  std::vector<std::string> names;
  for (const DrawnAxis& axis : axes)
    names.push_back(axis.name);
  return fmt::format("{}", fmt::join(names, ", "));
}
std::string extents_of(const std::vector<DrawnAxis>& axes) {
  std::vector<std::string> extents;
  for (const DrawnAxis& axis : axes)
    extents.push_back(axis.extent);
  return fmt::format("{}", fmt::join(extents, ", "));
}

/// Sizes that are no multiples of tiles, one in four open; up to two batches, which a factor may do
/// without; any order of dimensions; and something made of the sums.
Drawn drawn_contraction(Random& random) {
  Drawn drawn;
  const auto axis = [&](const char* name, int least, int most) {
    const int extent = random.between(least, most);
    if (!random.chance(0.25)) return DrawnAxis{name, fmt::to_string(extent)};
    drawn.sizes.push_back(extent);
    return DrawnAxis{name, fmt::format("n{}", drawn.sizes.size())};
  };
  const DrawnAxis i = axis("i", 1, 75);
  const DrawnAxis j = axis("j", 1, 75);
  const DrawnAxis k = axis("k", 1, 90);
  std::vector<DrawnAxis> rows = {i, k};
  std::vector<DrawnAxis> columns = {k, j};
  std::vector<DrawnAxis> output = {i, j};
  for (const char* name : {"b", "c"}) {
    if (!random.chance(0.4)) continue;
    const DrawnAxis batch = axis(name, 1, 3);
    const int where = random.between(0, 2);  // of both factors, or of one
    if (where != 1) rows.push_back(batch);
    if (where != 2) columns.push_back(batch);
    output.push_back(batch);
  }
  for (std::vector<DrawnAxis>* axes : {&rows, &columns, &output})
    random.shuffle(*axes);
  const std::string type = random.chance(0.5) ? "float16" : "bfloat16";
  std::string arguments =
      fmt::format("A: {0}[{1}], B: {0}[{2}]", type, extents_of(rows), extents_of(columns));
  std::string result = fmt::format("S[{}]", names_of(output));
  std::string output_type = "float32";
  if (random.chance(0.5)) {
    std::vector<DrawnAxis> some = output;
    random.shuffle(some);
    some.resize(static_cast<size_t>(random.between(1, static_cast<int>(some.size()))));
    arguments += fmt::format(", bias: float32[{}]", extents_of(some));
    result = fmt::format("{} + bias[{}]", result, names_of(some));
  }
  if (random.chance(0.3)) result = fmt::format("({}) * 0.125", result);
  if (random.chance(0.5)) result = fmt::format("max({}, 0.0)", result);
  if (random.chance(0.5)) {
    output_type = random.chance(0.5) ? "float16" : "bfloat16";
    result = fmt::format("{}({})", output_type, result);
  }
  drawn.text = fmt::format(
      "kernel k({}) -> (C: {}[{}]) {{\n"
      "  S: float32[{}]\n"
      "  S[{}] = sum[k < {}](float32(A[{}]) * float32(B[{}]))\n"
      "  C[{}] = {}\n}}\n",
      arguments, output_type, extents_of(output), extents_of(output), names_of(output), k.extent,
      names_of(rows), names_of(columns), names_of(output), result);
  return drawn;
}

language::Kernel drawn_kernel(uint64_t seed, std::vector<int64_t>* sizes = nullptr) {
  Random random(seed);
  Drawn drawn = drawn_contraction(random);
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
    EXPECT_EQ(tile::parse(tile::print(program)), program);
    Random random(seed);
    const std::vector<HostTensor> inputs = random_inputs(kernel, sizes, random);
    const std::vector<HostTensor> actual = tile::interpret(program, sizes, inputs);
    const std::vector<HostTensor> expected =
        language::evaluate(kernel.definition, kernel.names, sizes, inputs);
    ASSERT_EQ(actual.size(), 1u);
    EXPECT_EQ(actual[0].shape, expected[0].shape);
    EXPECT_TRUE(actual[0].bytes == expected[0].bytes);
  }
}

/// Each for one of the architectures; with KILN_LONG for all of them.
TEST(TileContraction, OfAnySizeBatchLayoutAndEpilogueIsAssembled) {
  try {
    codegen::find_tileiras();
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  const std::vector<std::string_view> archs = {"sm_80", "sm_90", "sm_100", "sm_120"};
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    const language::Kernel kernel = drawn_kernel(seed);
    const tile::BlockShape shape = tile::block_shape(kernel);
    const tile::Program program = tile::contraction(kernel, shape);
    SCOPED_TRACE(tile::print(program));
    for (size_t i = 0; i < archs.size(); ++i) {
      if (std::getenv("KILN_LONG") == nullptr && i != seed % archs.size()) continue;
      const std::string bytecode =
          tile::bytecode(program, "kiln_tile_0", {.arch = archs[i], .warps = shape.warps});
      const std::string cubin = codegen::Tileiras().assemble(bytecode, archs[i]);
      EXPECT_EQ(codegen::kernels_of_cubin(cubin).at(0).name, "kiln_tile_0");
    }
  }
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
  EXPECT_EQ(shape_of("17"), "32 x 32 x 32, 0");
  EXPECT_EQ(shape_of("1"), "16 x 16 x 16, 0");
}

struct Refused {
  std::string_view text;
  std::string_view reason;
};

/// Arguments, what is computed, and why it is no contraction.
constexpr Refused kRefused[] = {
    {"(A: float32[8]) -> (C: float32[8]) { C[i] = A[i] + 1.0 }",
     "it is no sum of products of 16-bit floats"},
    {"(A: float32[8, 4], B: float32[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](A[i, k] * B[k, j]) }",
     "it is no sum of products of 16-bit floats"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) + float32(B[k, j])) }",
     "it is no sum of products of 16-bit floats"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float16[8, 8]) {"
     " C[i, j] = sum[k < 4](A[i, k] * B[k, j]) }",
     "its reduction is more than a sum in float32 along one axis"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = max[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "its reduction is more than a sum in float32 along one axis"},
    {"(A: float16[8, 4], B: bfloat16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j])) }",
     "its factors have two types"},
    {"(A: float16[8, 5], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " C[i, j] = sum[k < 4](float32(A[i, k + 1]) * float32(B[k, j])) }",
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
     " C[i, j] = exp(S[i, j]) }",
     "exp is not done on tiles"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float64[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = float64(S[i, j]) }",
     "it computes in float64"},
    {"(A: float16[8, 4], B: float16[4, 8]) -> (C: float32[8, 8]) {"
     " S: float32[8, 8] S[i, j] = sum[k < 4](float32(A[i, k]) * float32(B[k, j]))"
     " C[i, j] = S[i, j] * S[i, j] }",
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

TEST(TileContraction, SaysWhyADefinitionIsNone) {
  for (const Refused& refused : kRefused) {
    const language::Kernel kernel = kernel_of(fmt::format("kernel k{}", refused.text)).kernel;
    const Error error =
        expect_error([&] { tile::block_shape(kernel); }, ErrorKind::Unsupported, refused.reason);
    EXPECT_EQ(error.reason(), "TILE_FORM") << refused.text;
  }
}

}  // namespace
}  // namespace kiln::testing
