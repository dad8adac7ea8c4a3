// Contractions get tiles in shared memory, without a step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/autoschedule/templates/block_tile_cost.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::block_tiles {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::vector<std::vector<int64_t>> sizes;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kTiled[] = {
    {"matmul",
     R"(kernel k(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](A[i, k] * B[k, j]) })",
     {{70, 20, 66}, {64, 16, 64}, {1, 3, 2}, {5, 0, 7}}},
    {"dense",
     R"(kernel k(A: float32[n, l], W: float32[m, l]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](A[i, k] * W[j, k]) })",
     {{65, 17, 3}}},
    {"both_transposed",
     R"(kernel k(A: float32[l, n], B: float32[m, l]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](A[k, i] * B[j, k]) })",
     {{5, 40, 70}}},
    {"batches",
     R"(kernel k(A: float32[b, n, l], B: float32[b, l, m]) -> (C: float32[b, n, m]) {
       C[a, i, j] = sum[k < l](A[a, i, k] * B[a, k, j]) })",
     {{3, 20, 9, 65}}},
    {"of_constant_sizes",
     R"(kernel k(A: float64[40, 33], B: float64[33, 100]) -> (C: float64[40, 100]) {
       C[i, j] = sum[k < 33](A[i, k] * B[k, j]) })",
     {{}}},
    {"integers_in_a_wider_sum",
     R"(kernel k(A: int8[n, l], B: int8[l, m]) -> (C: int32[n, m]) {
       C[i, j] = sum[k < l](int32(A[i, k]) * int32(B[k, j])) })",
     {{33, 20, 66}}},
    {"of_computed_factors",
     R"(kernel k(A: float32[n, l], B: float32[l, m]) -> (C: float32[n, m]) {
       C[i, j] = sum[k < l](max(A[i, k], 0.0) * (B[k, j] * sigmoid(B[k, j]))) })",
     {{70, 20, 66}, {1, 3, 2}}},
    {"of_computed_short_factors",
     R"(kernel k(A: float16[40, 35], B: float16[35, 66]) -> (C: float32[40, 66]) {
       C[i, j] = sum[k < 35](float32(max(A[i, k], float16(0))) * float32(B[k, j])) })",
     {{}}},
    {"convolution",
     R"(kernel k(X: float32[n, c, 9, w], F: float32[m, c, 3, 3]) -> (Y: float32[n, m, 7, w - 2]) {
       Y[b, o, i, j] = sum[k < c, p < 3, q < 3](X[b, k, i + p, j + q] * F[o, k, p, q]) })",
     {{2, 5, 34, 6}}},
    {"small_images",
     R"(kernel k(X: float32[n, 5, 9, 9], F: float32[34, 5, 3, 3]) -> (Y: float32[n, 34, 7, 7]) {
       Y[b, o, i, j] = sum[k < 5, p < 3, q < 3](X[b, k, i + p, j + q] * F[o, k, p, q]) })",
     {{3}, {1}, {0}}},
    {"small_images_by_two",
     R"(kernel k(X: float32[2, 3, 16, 17], F: float32[40, 3, 3, 3]) -> (Y: float32[2, 40, 7, 8]) {
       Y[b, o, i, j] = sum[k < 3, p < 3, q < 3](X[b, k, i*2 + p, j*2 + q] * F[o, k, p, q]) })",
     {{}}},
    {"channels_last",
     R"(kernel k(X: float32[n, 8, 8, 8], F: float32[3, 3, 8, 36]) -> (Y: float32[n, 6, 6, 36]) {
       Y[b, i, j, o] = sum[p < 3, q < 3, k < 8](X[b, i + p, j + q, k] * F[p, q, k, o]) })",
     {{2}}},
    {"channels_last_and_filters_first",
     R"(kernel k(X: float64[3, 8, 8, 6], F: float64[36, 3, 3, 6]) -> (Y: float64[3, 6, 6, 36]) {
       Y[b, i, j, o] = sum[p < 3, q < 3, k < 6](X[b, i + p, j + q, k] * F[o, p, q, k]) })",
     {{}}},
    {"one_by_one",
     R"(kernel k(X: float32[n, 20, 6, 6], F: float32[33, 20]) -> (Y: float32[n, 33, 6, 6]) {
       Y[b, o, i, j] = sum[k < 20](X[b, k, i, j] * F[o, k]) })",
     {{3}}},
    {"rows_of_a_batch",
     R"(kernel k(A: float32[n, 7, l], B: float32[l, m]) -> (C: float32[n, 7, m]) {
       C[b, i, j] = sum[k < l](A[b, i, k] * B[k, j]) })",
     {{6, 20, 40}}},
    {"padding_as_a_stage",
     R"(kernel k(X: float32[n, 4, 7, 7], F: float32[33, 4, 3, 3]) -> (Y: float32[n, 33, 7, 7]) {
       P: float32[n, 4, 9, 9]
       P[b, k, i, j] = if_then_else(i >= 1 && i < 8 && j >= 1 && j < 8, X[b, k, i - 1, j - 1], 0.0)
       Y[b, o, i, j] = sum[k < 4, p < 3, q < 3](P[b, k, i + p, j + q] * F[o, k, p, q]) })",
     {{2}}},
    {"padding_of_a_factor",
     R"(kernel k(X: float32[2, 7, 7, 4], F: float32[3, 3, 4, 33]) -> (Y: float32[2, 7, 7, 33]) {
       Y[b, i, j, o] = sum[p < 3, q < 3, k < 4](
         if_then_else(i + p >= 1 && i + p < 8 && j + q >= 1 && j + q < 8,
                      X[b, i + p - 1, j + q - 1, k], 0.0) * F[p, q, k, o]) })",
     {{}}},
    {"batches_of_windows",
     R"(kernel k(X: float32[2, 3, 4, 9, 9], F: float32[3, 33, 4, 3, 3])
         -> (Y: float32[2, 3, 33, 7, 7]) {
       Y[b, g, o, i, j] =
         sum[k < 4, p < 3, q < 3](X[b, g, k, i + p, j + q] * F[g, o, k, p, q]) })",
     {{}}},
};

class BlockTiles : public ::testing::TestWithParam<Case> {};

TEST_P(BlockTiles, ComputeWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  const std::string printed = ir::print(loops);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << printed;
  EXPECT_NE(printed.find("scope(shared)"), std::string::npos) << printed;
  for (const std::vector<int64_t>& sizes : GetParam().sizes)
    EXPECT_EQ(gpu_difference(text, loops, sizes), "");
}

/// The names of the tiles of a kernel, the preferred one first; where a sum is in parts, of these,
/// which are the last stage.
std::vector<std::string> tiles_of(const language::TextKernel& text) {
  const SketchSpace space(text.kernel, {}, {TargetKind::Cuda, "sm_90"}, {});
  std::vector<std::string> names;
  for (const autoschedule::Sketch& sketch : space.stages().back().sketches)
    names.push_back(sketch.name);
  return names;
}

// Of products there are four, and one of many sums where a side is as long; each is right, however
// much of the sum it has at once.
TEST(BlockTiles, OfAnySizeComputeWhatTheDefinitionSays) {
  const char* const kTexts[] = {
      R"(kernel k(A: float32[260, 19], B: float32[19, 150]) -> (C: float32[260, 150]) {
        C[i, j] = sum[k < 19](A[i, k] * B[k, j]) })",
      R"(kernel k(A: float32[2, 19, 64], B: float32[2, 140, 19]) -> (C: float32[2, 64, 140]) {
        C[b, i, j] = sum[k < 19](A[b, k, i] * B[b, j, k]) })",
      R"(kernel k(X: float32[1, 3, 9, 40], F: float32[130, 3, 3, 3]) -> (Y: float32[1, 130, 7, 38]) {
        Y[b, o, i, j] = sum[k < 3, p < 3, q < 3](X[b, k, i + p, j + q] * F[o, k, p, q]) })",
  };
  const Target target{TargetKind::Cuda, "sm_90"};
  // The last has tiles of one axis a side, and of all axes.
  constexpr size_t kSketches[] = {5, 4, 9};
  for (size_t text = 0; text < std::size(kTexts); ++text) {
    const language::TextKernel kernel = kernel_of(kTexts[text]);
    const SketchSpace space(kernel.kernel, {}, target, {});
    ASSERT_EQ(space.stages().size(), 1U);
    ASSERT_EQ(space.stages()[0].sketches.size(), kSketches[text]);
    for (uint32_t sketch = 0; sketch < space.stages()[0].sketches.size(); ++sketch) {
      const autoschedule::Sketch& tile = space.stages()[0].sketches[sketch];
      ASSERT_EQ(tile.parameters.size(), 1U);
      const autoschedule::Parameter& steps_at_once = tile.parameters[0];
      EXPECT_GE(steps_at_once.values.size(), text == 2 ? 1U : 2U);
      for (const int64_t steps : steps_at_once.values) {
        // One kernel has them all tried: each takes the interpreter a second.
        if (text != 0 && steps != steps_at_once.preferred) continue;
        LoweringObserver silent;
        const ir::Kernel loops = lower(kernel.kernel, space.schedule({{{sketch, {steps}}}}), target,
                                       {}, Layout::Compact, silent);
        EXPECT_EQ(gpu_difference(kernel, loops, {}), "")
            << kTexts[text] << tile.name << " " << steps;
      }
    }
  }
}

TEST(BlockTiles, AreAsLargeAsThereAreMultiprocessors) {
  const auto square = [](int n) {
    return kernel_of(fmt::format(
        "kernel k(A: float32[{0}, {0}], B: float32[{0}, {0}]) -> (C: float32[{0}, {0}]) {{"
        " C[i, j] = sum[k < {0}](A[i, k] * B[k, j]) }}",
        n));
  };
  EXPECT_EQ(tiles_of(square(4096))[0], "a tile a block, 8 x 8 a thread");
  EXPECT_EQ(tiles_of(square(256))[0], "a tile a block, 4 x 4 a thread");
  // Of its few large tiles the sum is in parts.
  EXPECT_EQ(tiles_of(square(1024))[0], "a tile a block, 8 x 8 a thread");
  EXPECT_EQ(tiles_of(kernel_of("kernel k(A: float32[1000, 256], B: float32[256, 784])"
                               " -> (C: float32[1000, 784]) {"
                               " C[i, j] = sum[k < 256](A[i, k] * B[k, j]) }"))[0],
            "a tile a block, 8 x 4 a thread");
}

// A sum that is short is computed as soon by a thread for each result.
TEST(BlockTiles, HaveTwoRowsOrColumnsWhereASideIsShort) {
  const auto first_of = [](int rows, int columns, int steps) {
    return tiles_of(kernel_of(fmt::format(
        "kernel k(A: float32[{0}, {2}], B: float32[{2}, {1}]) -> (C: float32[{0}, {1}]) {{"
        " C[i, j] = sum[k < {2}](A[i, k] * B[k, j]) }}",
        rows, columns, steps)))[0];
  };
  EXPECT_EQ(first_of(24, 65536, 128), "a tile a block, 2 x 8 a thread");
  EXPECT_EQ(first_of(65536, 24, 128), "a tile a block, 8 x 2 a thread");
  EXPECT_EQ(first_of(33, 65536, 128), "a tile a block, 4 x 8 a thread");
  EXPECT_EQ(first_of(24, 65536, 32), "threads");
}

TEST(BlockTiles, OfUnknownSizesAreSmallUnlessTheyAreTuned) {
  const std::vector<std::string> tiles = tiles_of(kernel_of(kTiled[0].text));
  EXPECT_EQ(tiles.size(), 6U);
  EXPECT_EQ(tiles[0], "a tile a block, 4 x 4 a thread");
}

// Their code takes NVRTC a second.
TEST(BlockTiles, OfManySumsAreForWhoTunes) {
  const std::vector<std::string> tiles = tiles_of(
      kernel_of("kernel k(A: float32[4096, 4096], B: float32[4096, 4096])"
                " -> (C: float32[4096, 4096]) { C[i, j] = sum[k < 4096](A[i, k] * B[k, j]) }"));
  ASSERT_EQ(tiles.size(), 6U);
  EXPECT_EQ(tiles[4], "a tile a block, 16 x 8 a thread");
  EXPECT_EQ(tiles[5], "a tile a block, 8 x 16 a thread");
}

TEST(BlockTiles, KeepTheSumsInRegisters) {
  const language::TextKernel text = kernel_of(
      "kernel k(A: float64[4096, 4096], B: float64[4096, 4096]) -> (C: float64[4096, 4096]) {"
      " C[i, j] = sum[k < 4096](A[i, k] * B[k, j]) }");
  for (const std::string& name : tiles_of(text))
    EXPECT_NE(name, "a tile a block, 8 x 8 a thread");
}

// A step of 128 x 128 is 128 cycles of 128 lanes; 64 x 64 fetches twice as much for each product.
TEST(BlockTileCost, IsThatOfTheBusiestMultiprocessor) {
  const autoschedule::GpuMachine h100 = autoschedule::gpu_machine("sm_90a");
  EXPECT_EQ(h100.multiprocessors, 132);
  const auto cycles = [&](int64_t rows, int64_t side) {
    return autoschedule::block_cycles({.rows = rows, .columns = 128, .steps = 1000}, {side, side},
                                      8, h100);
  };
  EXPECT_EQ(cycles(128, 8), cycles(128 * 132, 8));        // one each
  EXPECT_GT(cycles(128 * 133, 8), cycles(128 * 132, 8));  // one has two
  EXPECT_GT(cycles(128 * 1320, 4), cycles(128 * 1320, 8));
  EXPECT_LT(cycles(128 * 66, 4), cycles(128 * 66, 8));
  const autoschedule::GpuMachine slow{.multiprocessors = 132, .float_lanes = 128, .l2_bytes = 1};
  const autoschedule::BlockProduct product{.rows = 1280, .columns = 1280, .steps = 1000};
  // 128 rows and columns of four bytes, a byte a cycle; and of 100 cycles at a barrier an eighth.
  EXPECT_EQ(autoschedule::block_cycles(product, {8, 8}, 8, slow), 1000 * (1024 + 12.5));
}

INSTANTIATE_TEST_SUITE_P(All, BlockTiles, ::testing::ValuesIn(kTiled),
                         [](const auto& info) { return std::string(info.param.name); });

void expect_no_tiles(const char* text) {
  const std::string loops = ir::print(gpu_loops(kernel_of(text)));
  EXPECT_EQ(loops.find("scope(shared)"), std::string::npos) << loops;
}

TEST(BlockTilesLeave, WhatIsSmallerThanATile) {
  expect_no_tiles(R"(kernel k(A: float32[n, l], B: float32[l, 8]) -> (C: float32[n, 8]) {
    C[i, j] = sum[k < l](A[i, k] * B[k, j]) })");
}

TEST(BlockTilesLeave, ProductsOfATensorWithItself) {
  expect_no_tiles(R"(kernel k(A: float32[n, l]) -> (C: float32[n, n]) {
    C[i, j] = sum[k < l](A[i, k] * A[j, k]) })");
}

TEST(BlockTilesLeave, WindowsOfAnySize) {
  expect_no_tiles(R"(kernel k(X: float32[c, w], F: float32[m, c, s]) -> (Y: float32[m, w - s + 1]) {
    Y[o, j] = sum[k < c, q < s](X[k, j + q] * F[o, k, q]) })");
}

/// The code for an H100 of a product of squares.
std::string code_of(int64_t size) {
  const language::TextKernel text = kernel_of(fmt::format(
      "kernel k(A: float32[{0}, {0}], B: float32[{0}, {0}]) -> (C: float32[{0}, {0}]) {{"
      " C[i, j] = sum[k < {0}](A[i, k] * B[k, j]) }}",
      size));
  return source_of(gpu_loops(text));
}

// Each of them has its memory as a constant; two blocks find registers.
TEST(BlockTiles, HaveTwoIterationsWrittenOut) {
  const std::string even = code_of(4096);
  EXPECT_EQ(count_in(even, "#pragma unroll 2\n"), 1U) << even;
  EXPECT_EQ(count_in(even, "__launch_bounds__(256, 2)"), 1U);
}

// A is turned on its way to shared memory, fetched at once all the same.
TEST(BlockTiles, HaveNoNotesOfStepsThatNobodyWrote) {
  const ir::Kernel loops = gpu_loops(
      kernel_of("kernel k(A: float32[512, 512], B: float32[512, 512]) -> (C: float32[512, 512]) {"
                " C[i, j] = sum[k < 512](A[i, k] * B[k, j]) }"));
  EXPECT_EQ(loops.notes, std::vector<std::string>());
  EXPECT_GT(count_in(source_of(loops), "*(uint4*)&A_vector"), 0U);
}

// What is fetched one by one has too many addresses; smaller tiles have fewer registers.
TEST(BlockTiles, OfOddRowsAndOfFewHaveOneIteration) {
  const std::string odd = code_of(4095);
  EXPECT_EQ(count_in(odd, "#pragma unroll 2\n"), 0U) << odd;
  EXPECT_EQ(count_in(odd, "__launch_bounds__(256, 2) "), 1U) << odd;
  const std::string few = code_of(256);
  EXPECT_EQ(count_in(few, "#pragma unroll 2\n"), 0U) << few;
  EXPECT_EQ(count_in(few, "__launch_bounds__(256) "), 2U) << few;  // and of what adds up
}

// A tile that is a little larger than all there is has its own size in shared memory, as those have
// that are one of many: what is beyond the end is added up, too.
TEST(BlockTiles, HaveNoGuardsAmongProductsOfTheOneRowThatIsTooMany) {
  const std::string code = source_of(gpu_loops(
      kernel_of("kernel k(A: float32[33, 768], B: float32[768, 1000]) -> (C: float32[33, 1000]) {"
                " C[i, j] = sum[k < 768](A[i, k] * B[k, j]) }")));
  EXPECT_EQ(count_in(code, "< 33)"), 1U) << code;
  EXPECT_GT(count_in(code, ", 32)"), 0U) << code;  // the last row is fetched for those behind it
  // Of less than half of it there is no more memory than elements.
  const std::string few = source_of(gpu_loops(kernel_of(
      "kernel k(A: float32[16, 768], B: float32[768, 1000]) -> (C: float32[16, 1000]) {"
      " C[i, j] = sum[k < 768](A[i, k] * B[k, j])\n"
      " schedule cuda { cache_read(A, shared, C)\n split(C.i, factor=64)\n split(C.j, factor=16)\n"
      " reorder(C.i.outer, C.j.outer, C.i.inner, C.j.inner)\n fuse(C.i.outer, C.j.outer)\n"
      " bind(C.i.outer.j.outer.fused, blockIdx.x)\n bind(C.i.inner, threadIdx.y)\n"
      " bind(C.j.inner, threadIdx.x)\n split(C.k, factor=16)\n compute_at(A.shared, C.k.outer)\n"
      " } }")));
  EXPECT_NE(few.find("A_shared[256]"), std::string::npos) << few;
}

// The sums are added in the order of the definition.
TEST(BlockTiles, AreThoseOfStrictToo) {
  const language::TextKernel text = kernel_of(kTiled[0].text);
  const std::string loops = ir::print(gpu_loops(text, CompileOptions{.strict = true}));
  EXPECT_NE(loops.find("scope(shared)"), std::string::npos) << loops;
}

}  // namespace
}  // namespace kiln::testing::block_tiles
