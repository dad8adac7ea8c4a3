// Contractions of 16-bit floats and of bytes go to tensor cores, without a step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/codegen/cubin.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/cuda_source.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/needs_nvrtc.h"

namespace kiln::testing::matrix_tiles {
namespace {

/// A product with these reads of its factors.
std::string product(std::string_view a, std::string_view a_shape, std::string_view b,
                    std::string_view b_shape, std::string_view c_shape, std::string_view steps,
                    std::string_view type = "float16") {
  return fmt::format(
      "kernel k(A: {0}[{1}], B: {0}[{2}]) -> (C: {7}[{3}]) {{"
      " C[i, j] = sum[k < {4}]({7}(A[{5}]) * {7}(B[{6}])) }}",
      type, a_shape, b_shape, c_shape, steps, a, b, type.ends_with("int8") ? "int32" : "float32");
}

struct Case {
  const char* name;
  std::string text;
  std::vector<int64_t> sizes;
  const char* loads_rows;  // how ldmatrix is called
  const char* loads_columns;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"matmul",
     product("i, k", "80, 32", "k, j", "32, 72", "80, 72", "32"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"dense",
     product("i, k", "80, 32", "j, k", "72, 32", "80, 72", "32"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<false>(kiln_column"},
    {"both_transposed",
     product("k, i", "32, 80", "j, k", "72, 32", "80, 72", "32"),
     {},
     "kiln_load_matrices<true>(kiln_row",
     "kiln_load_matrices<false>(kiln_column"},
    {"of_bfloat16",
     product("k, i", "32, 64", "k, j", "32, 64", "64, 64", "32", "bfloat16"),
     {},
     "kiln_load_matrices<true>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"of_odd_sizes",
     product("i, k", "67, 41", "k, j", "41, 73", "67, 73", "41"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"of_any_sizes",
     product("i, k", "n, l", "k, j", "l, m", "n, m", "l"),
     {70, 37, 66},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"of_bytes",
     product("i, k", "80, 64", "k, j", "64, 96", "80, 96", "64", "int8"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_turned_bytes<true>(kiln_column"},
    {"of_bytes_both_transposed",
     product("k, i", "64, 80", "j, k", "96, 64", "80, 96", "64", "uint8"),
     {},
     "kiln_load_turned_bytes<false>(kiln_row",
     "kiln_load_matrices<false>(kiln_column"},
    {"of_bytes_of_odd_sizes",
     product("k, i", "41, 67", "k, j", "41, 73", "67, 73", "41", "int8"),
     {},
     "kiln_load_turned_bytes<false>(kiln_row",
     "kiln_load_turned_bytes<true>(kiln_column"},
};

/// Of images with channels last, three by three with zeros around; `channel` is the text of the
/// filter's indices.
std::string convolution(std::string_view filter, std::string_view filter_shape, int channels,
                        int stride = 1, std::string_view type = "float16") {
  return fmt::format(
      "kernel k(X: {0}[2, 9, 7, {1}], F: {0}[{2}]) -> (Y: {5}[2, {6}, {7}, 72]) {{"
      " P: {0}[2, 11, 9, {1}]"
      " P[n, y, x, c] = if_then_else(y >= 1 && y < 10 && x >= 1 && x < 8, X[n, y - 1, x - 1, c],"
      " {0}(0))"
      " Y[n, y, x, f] = sum[r < 3, s < 3, c < {1}]({5}(P[n, y*{4} + r, x*{4} + s, c]) *"
      " {5}(F[{3}])) }}",
      type, channels, filter_shape, filter, stride, type.ends_with("int8") ? "int32" : "float32",
      stride == 1 ? 9 : 5, stride == 1 ? 7 : 4);
}

/// Contractions whose sides have several axes.
const Case kJoinedCases[] = {
    {"convolution",
     convolution("r, s, c, f", "3, 3, 16, 72", 16),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"with_filters_along_the_sum",
     convolution("f, r, s, c", "72, 3, 3, 16", 16),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<false>(kiln_column"},
    {"of_odd_channels",
     convolution("f, c, r, s", "72, 5, 3, 3", 5),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"of_bytes",
     convolution("f, r, s, c", "72, 3, 3, 16", 16, 1, "int8"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<false>(kiln_column"},
    {"of_bytes_turned",
     convolution("r, s, c, f", "3, 3, 16, 72", 16, 1, "uint8"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_turned_bytes<true>(kiln_column"},
    {"channels_first",
     "kernel k(X: bfloat16[2, 16, 9, 8], F: bfloat16[66, 16, 3, 3]) -> (Y: float32[2, 66, 7, 6]) {"
     " Y[n, f, y, x] = sum[c < 16, r < 3, s < 3](float32(X[n, c, y + r, x + s]) *"
     " float32(F[f, c, r, s])) }",
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"one_by_one",
     "kernel k(X: float16[2, 6, 7, 32], F: float16[32, 64]) -> (Y: float32[2, 6, 7, 64]) {"
     " Y[n, y, x, f] = sum[c < 32](float32(X[n, y, x, c]) * float32(F[c, f])) }",
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"padded_product",
     "kernel k(A: float16[60, 32], B: float16[32, 64]) -> (C: float32[64, 64]) {"
     " P: float16[64, 32] P[i, k] = if_then_else(i < 60, A[i, k], float16(0))"
     " C[i, j] = sum[k < 32](float32(P[i, k]) * float32(B[k, j])) }",
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"batches_that_share_a_factor",
     "kernel k(A: float16[n, 40, 32], B: float16[32, 64]) -> (C: float32[n, 40, 64]) {"
     " C[b, i, j] = sum[k < 32](float32(A[b, i, k]) * float32(B[k, j])) }",
     {3},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
    {"groups",
     "kernel k(X: float16[10, 10, 2, 16], F: float16[3, 3, 2, 16, 64]) -> (Y: float32[8, 8, 2, "
     "64]) {"
     " Y[y, x, g, f] = sum[r < 3, s < 3, c < 16](float32(X[y + r, x + s, g, c]) *"
     " float32(F[r, s, g, c, f])) }",
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<true>(kiln_column"},
};

/// Products of float32 of which tensor cores read some of the bits.
std::string tensor_float(std::string_view a, std::string_view a_shape, std::string_view b,
                         std::string_view b_shape, std::string_view c_shape,
                         std::string_view steps) {
  return fmt::format(
      "kernel k(A: float32[{}], B: float32[{}]) -> (C: float32[{}]) {{"
      " C[i, j] = sum[k < {}](tf32(A[{}]) * tf32(B[{}])) }}",
      a_shape, b_shape, c_shape, steps, a, b);
}

const Case kTensorFloatCases[] = {
    {"dense",
     tensor_float("i, k", "80, 32", "j, k", "72, 32", "80, 72", "32"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_matrices<false>(kiln_column"},
    {"matmul",
     tensor_float("i, k", "80, 32", "k, j", "32, 72", "80, 72", "32"),
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_words<288, 8>(kiln_column"},
    {"of_odd_sizes",
     tensor_float("k, i", "41, 67", "k, j", "41, 73", "67, 73", "41"),
     {},
     "kiln_load_words<8, 288>(kiln_row",
     "kiln_load_words<288, 8>(kiln_column"},
    {"of_any_sizes",
     tensor_float("i, k", "n, l", "k, j", "l, m", "n, m", "l"),
     {70, 37, 66},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_words<288, 8>(kiln_column"},
    {"convolution",
     "kernel k(X: float32[2, 9, 7, 8], F: float32[3, 3, 8, 72]) -> (Y: float32[2, 9, 7, 72]) {"
     " P: float32[2, 11, 9, 8]"
     " P[n, y, x, c] = if_then_else(y >= 1 && y < 10 && x >= 1 && x < 8, X[n, y - 1, x - 1, c],"
     " 0.0)"
     " Y[n, y, x, f] = sum[r < 3, s < 3, c < 8](tf32(P[n, y + r, x + s, c]) *"
     " tf32(F[r, s, c, f])) }",
     {},
     "kiln_load_matrices<false>(kiln_row",
     "kiln_load_words<288, 8>(kiln_column"},
};

class MatrixTiles : public ::testing::TestWithParam<Case> {};

TEST_P(MatrixTiles, ComputeWhatTheDefinitionSaysByMatrixInstructions) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
  EXPECT_EQ(gpu_difference(text, loops, GetParam().sizes), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_NE(source.find(GetParam().loads_rows), std::string::npos) << source;
  EXPECT_NE(source.find(GetParam().loads_columns), std::string::npos) << source;
  const bool are_bytes = GetParam().text.find("int8") != std::string::npos;
  const bool are_words = GetParam().text.find("tf32") != std::string::npos;
  EXPECT_NE(source.find(are_bytes   ? "kiln_multiply_bytes<"
                        : are_words ? "kiln_multiply_tf32("
                                    : "kiln_multiply<"),
            std::string::npos)
      << source;
}

INSTANTIATE_TEST_SUITE_P(OfTensorFloats, MatrixTiles, ::testing::ValuesIn(kTensorFloatCases),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(OfAllAxes, MatrixTiles, ::testing::ValuesIn(kJoinedCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Where a sum is in parts, of these, which are the last stage.
std::vector<std::string> sketches_of(const std::string& text, std::string_view arch,
                                     const CompileOptions& options = {}) {
  const language::TextKernel kernel = kernel_of(text);
  const SketchSpace space(kernel.kernel, {}, {TargetKind::Cuda, std::string(arch)}, options);
  std::vector<std::string> names;
  for (const autoschedule::Sketch& sketch : space.stages().back().sketches)
    names.push_back(sketch.name);
  return names;
}

/// Lanes have neighbours of factors whose bytes are turned: rows that are eight apart do not do.
TEST(MatrixTiles, OfTurnedBytesAreInAnOrderOfTheirOwn) {
  const language::TextKernel plain =
      kernel_of(product("i, k", "64, 64", "j, k", "64, 64", "64, 64", "64", "int8"));
  const language::TextKernel turned =
      kernel_of(product("k, i", "64, 64", "k, j", "64, 64", "64, 64", "64", "int8"));
  const Target target{TargetKind::Cuda, "sm_90"};
  LoweringObserver silent;
  const ir::Kernel loops = lower(turned.kernel, choose_schedule(plain.kernel, {}, target, {}),
                                 target, {}, Layout::Compact, silent);
  EXPECT_EQ(source_of(loops).find("kiln_multiply"), std::string::npos) << ir::print(loops);
  EXPECT_EQ(gpu_difference(turned, loops, {}), "");
}

/// ldmatrix reads shared memory, which a launch has where no loop is bound to blocks, too.
TEST(MatrixTilesOfAnOnlyBlock, LieInSharedMemory) {
  const language::TextKernel text =
      kernel_of(product("i, k", "64, 32", "k, j", "32, 64", "64, 64", "32"));
  const Target target{TargetKind::Cuda, "sm_90"};
  language::Schedule schedule = choose_schedule(text.kernel, {}, target, {});
  const auto removed = std::erase_if(schedule.steps, [](const language::Step& step) {
    return step.kind == language::StepKind::Bind && step.tag == "blockIdx.x";
  });
  ASSERT_EQ(removed, 1u);
  LoweringObserver silent;
  const ir::Kernel loops = lower(text.kernel, schedule, target, {}, Layout::Compact, silent);
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_EQ(loops.workspace.size(), 0u) << ir::print(loops);
  EXPECT_NE(source.find("kiln_multiply<"), std::string::npos) << source;
}

TEST_P(MatrixTiles, EachLineOfTheSourceHasItsStatement) {
  const ir::Kernel loops = gpu_loops(kernel_of(GetParam().text));
  const codegen::CudaEntry entry{"k", &loops};
  const codegen::CudaSource source = codegen::cuda_source({&entry, 1});
  EXPECT_EQ(source.statements.size(), count_in(source.text, "\n"));
}

INSTANTIATE_TEST_SUITE_P(All, MatrixTiles, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Of sm_89 an iteration has 64 steps, and four are written out; one that is left is a chain alone.
TEST(MatrixTiles, OfByteFloatsAreChainsOf128Steps) {
  for (const char* const type : {"float8_e4m3fn", "float8_e5m2"}) {
    const std::string source = source_of(gpu_loops(
        kernel_of(product("k, i", "4096, 4096", "k, j", "4096, 4096", "4096, 4096", "4096", type)),
        {}, "sm_89"));
    for (const auto& [chain, links] :
         {std::pair("0", 2U), std::pair("1", 2U), std::pair("2", 1U)}) {
      EXPECT_EQ(count_in(source, fmt::format("kiln_chain<64> kiln_chain_{};", chain)), 1U);
      EXPECT_EQ(count_in(source, fmt::format("kiln_chain_{}.sums(C_local)", chain)), links);
      EXPECT_EQ(count_in(source, fmt::format("kiln_chain_{}.add_to(C_local)", chain)), 1U)
          << source;
    }
    EXPECT_EQ(count_in(source, "kiln_chain<64> "), 3U) << source;
  }
}

/// Of steps of an iteration that are no whole chain each instruction is one.
TEST(MatrixTiles, OfByteFloatsHaveNoChainOfMoreSteps) {
  const language::TextKernel text =
      kernel_of(product("i, k", "64, 512", "j, k", "64, 512", "64, 64", "512", "float8_e4m3fn"));
  const Target target{TargetKind::Cuda, "sm_90"};
  language::Schedule schedule = choose_schedule(text.kernel, {}, target, {});
  for (language::Step& step : schedule.steps) {
    if (step.kind == language::StepKind::Split && step.factors == std::vector<int64_t>{128})
      step.factors = {256};
  }
  LoweringObserver silent;
  const ir::Kernel loops = lower(text.kernel, schedule, target, {}, Layout::Compact, silent);
  const std::string source = source_of(loops);
  ASSERT_EQ(count_in(source, "kiln_multiply_float8<kiln"), 1U) << source;
  // Inside of the loop over the steps of an iteration.
  const size_t loop = source.find("< 8; ++");
  ASSERT_NE(loop, std::string::npos) << source;
  EXPECT_GT(source.find("kiln_chain<32> kiln_chain_0;"), loop) << source;
  EXPECT_EQ(gpu_difference(text, loops, {}), "");
}

/// Then a warp has as many of them as of other types. Of sm_90, which multiplies them as halves,
/// there is nothing to gain.
TEST(MatrixTiles, OfByteFloatsAreAddedUpByTensorCoresWhereItIsFast) {
  const std::string text =
      product("k, i", "4096, 4096", "k, j", "4096, 4096", "4096, 4096", "4096", "float8_e4m3fn");
  const CompileOptions fast{.fast = true};
  for (const char* const arch : {"sm_89", "sm_120"}) {
    const ir::Kernel loops = gpu_loops(kernel_of(text), fast, arch);
    const codegen::CudaEntry entry{"k", &loops};
    const std::string source = codegen::cuda_source({&entry, 1}, {.short_sums = true}).text;
    EXPECT_EQ(count_in(source, "kiln_chain"), 0U) << source;
    EXPECT_EQ(count_in(source, "float C_local[128];"), 1U) << source;
    EXPECT_EQ(sketches_of(text, arch, fast)[0], "matrix instructions, 256 x 128 a block");
  }
  EXPECT_EQ(ir::print(gpu_loops(kernel_of(text), fast)), ir::print(gpu_loops(kernel_of(text))));
}

/// NVRTC's time goes by the calls that it reads.
TEST(MatrixTiles, AreOneCallForEachProductOfATile) {
  const auto calls = [](std::string_view type, std::string_view function) {
    const std::string square = "4096, 4096";
    return count_in(source_of(gpu_loops(
                        kernel_of(product("k, i", square, "k, j", square, square, "4096", type)))),
                    function);
  };
  // Three iterations that are written out, and those that are left.
  EXPECT_EQ(calls("int8", "kiln_multiply_bytes<signed char"), 4U);
  EXPECT_EQ(calls("float16", "kiln_multiply<kiln_float16"), 4U);
}

std::string square(int n) {
  return product("i, k", fmt::format("{0}, {0}", n), "k, j", fmt::format("{0}, {0}", n),
                 fmt::format("{0}, {0}", n), fmt::format("{}", n));
}

TEST(MatrixTiles, AreAsLargeAsThereAreMultiprocessors) {
  EXPECT_EQ(sketches_of(square(4096), "sm_90")[0], "matrix instructions, 256 x 128 a block");
  EXPECT_EQ(sketches_of(square(4096), "sm_86")[0], "matrix instructions, 256 x 128 a block");
  EXPECT_EQ(sketches_of(square(1024), "sm_90")[0], "matrix instructions, 64 x 64 a block");
  EXPECT_EQ(sketches_of(square(512), "sm_90")[0], "matrix instructions, 64 x 64 a block");
}

/// Tensor cores of sm_89 take twice the time for a product, so that it counts where they wait: 32
/// tiles of 256 x 128 leave 26 of 58 multiprocessors to nobody.
TEST(MatrixTiles, AreSmallerWhereTensorCoresWouldHaveNothingToDo) {
  EXPECT_EQ(sketches_of(square(1024), "sm_89")[0], "matrix instructions, 128 x 64 a block");
  EXPECT_EQ(sketches_of(square(4096), "sm_89")[0], "matrix instructions, 256 x 128 a block");
}

/// Images of which no axis is as long as a tile.
TEST(MatrixTiles, AreOfAllAxesOfASide) {
  const std::string text = convolution("r, s, c, f", "3, 3, 16, 72", 16);
  EXPECT_EQ(sketches_of(text, "sm_80")[0], "matrix instructions of all axes, 64 x 64 a block");
  EXPECT_EQ(sketches_of(text, "sm_75")[0], "a tile of all axes a block, 4 x 4 a thread");
  EXPECT_EQ(sketches_of(text, "sm_80", {.strict = true})[0],
            "a tile of all axes a block, 4 x 4 a thread");
}

TEST(MatrixTiles, AreLongWhereASideIsShort) {
  EXPECT_EQ(sketches_of(product("i, k", "64, 1024", "k, j", "1024, 65536", "64, 65536", "1024"),
                        "sm_80")[0],
            "matrix instructions, 64 x 256 a block");
  EXPECT_EQ(sketches_of(product("i, k", "65536, 1024", "k, j", "1024, 64", "65536, 64", "1024"),
                        "sm_80")[0],
            "matrix instructions, 256 x 64 a block");
}

/// Of a tile that is not more than half full each product would have a condition.
TEST(MatrixTiles, AreNoneOfASideThatFillsHalfOfThem) {
  const auto first_of = [](int columns) {
    return sketches_of(product("i, k", "20, 64", "k, j", fmt::format("64, {}", columns),
                               fmt::format("20, {}", columns), "64"),
                       "sm_80")[0];
  };
  EXPECT_EQ(first_of(65), "matrix instructions, 32 x 128 a block");
  EXPECT_EQ(first_of(64), "a tile a block, 2 x 4 a thread");
}

/// Filters of images with channels first are copied before, so that the sum goes over the channels
/// of one place of the window after the other.
TEST(MatrixTiles, HaveFiltersThatArePacked) {
  const language::TextKernel text = kernel_of(
      "kernel k(X: float16[1, 8, 34, 34], F: float16[64, 8, 3, 3]) -> (Y: float32[1, 64, 32, 32]) {"
      " Y[n, f, y, x] = sum[c < 8, r < 3, s < 3](float32(X[n, c, y + r, x + s]) *"
      " float32(F[f, c, r, s])) }");
  // Of so few multiprocessors tensor cores gain more than the copy takes.
  const ir::Kernel loops = gpu_loops(text, {}, "sm_90+sms8");
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 2u) << ir::print(loops);
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_NE(source.find("kiln_load_matrices<true>(kiln_row"), std::string::npos) << source;
  EXPECT_NE(source.find("*(const uint4*)&F_global["), std::string::npos) << source;
}

/// Sums with too few parts to be ahead of.
TEST(MatrixTiles, AreFetchedWhenNeededWhereCopiesInTheBackgroundDoNotServe) {
  const auto first_of = [](int m, int n, int l) {
    return sketches_of(
        product("i, k", fmt::format("{}, {}", m, l), "k, j", fmt::format("{}, {}", l, n),
                fmt::format("{}, {}", m, n), std::to_string(l)),
        "sm_90")[0];
  };
  EXPECT_EQ(first_of(4096, 4096, 256), "matrix instructions, 256 x 128 a block");
  EXPECT_EQ(first_of(4096, 4096, 192), "matrix instructions, 128 x 128 a block");
}

/// Each copy has a pointer, and hardware is told how far it is behind it.
TEST(MatrixTiles, AreCopiedFromPlacesThatMove) {
  const std::string source =
      source_of(gpu_loops_by(kernel_of(square(1024)), "matrix instructions, 256 x 128 a block"));
  EXPECT_EQ(count_in(source, "= kiln_moving(&A["), 8U) << source;
  EXPECT_EQ(count_in(source, "= kiln_moving(&B["), 4U) << source;
  // Along its rows A is read by the three iterations from one pointer; rows of B are far apart.
  EXPECT_EQ(count_in(source, " += 384;"), 8U) << source;
  EXPECT_EQ(count_in(source, " += 131072;"), 3U * 4U) << source;
  EXPECT_EQ(count_in(source, ", 256>("), 8U) << source;
}

/// What is left of a sum is filled up with zeros, and is matrix instructions as all else.
TEST(MatrixTiles, EndWithWholeInstructions) {
  const language::TextKernel text =
      kernel_of(product("i, k", "67, 75", "k, j", "75, 73", "67, 73", "75"));
  const ir::Kernel loops = gpu_loops_by(text, "matrix instructions, 64 x 64 a block");
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  const std::string source = source_of(loops);
  EXPECT_EQ(count_in(source, "const int kiln_lane ="), 2U) << source;
}

/// A dimension of which a sum is in parts is read in as few pieces as a whole one.
TEST(MatrixTiles, OfPartsOfADimensionAreCopiedAtOnceToo) {
  for (const auto& [columns, read] :
       {std::pair{"4096, 256", "p * 512 + k, j"}, std::pair{"256, 4096", "j, p * 512 + k"}}) {
    const std::string source = source_of(gpu_loops_by(
        kernel_of(fmt::format(
            "kernel k(A: float16[256, 4096], B: float16[{}]) -> (C: float32[8, 256, 256]) {{\n"
            "  C[p, i, j] = sum[k < 512](float32(A[i, p * 512 + k]) * float32(B[{}])) }}",
            columns, read)),
        "matrix instructions, 256 x 128 a block"));
    EXPECT_GT(count_in(source, "kiln_copy<16, "), 0U) << source;
    EXPECT_EQ(count_in(source, "kiln_copy<2, "), 0U) << source;
  }
}

TEST(MatrixTilesLeave, WhatHasNoTensorCoresOrKeepsItsOrder) {
  EXPECT_EQ(sketches_of(square(512), "sm_75")[0], "a tile a block, 4 x 4 a thread");
  EXPECT_EQ(sketches_of(square(512), "sm_90", {.strict = true})[0],
            "a tile a block, 4 x 4 a thread");
  const std::string tensor_floats =
      tensor_float("i, k", "512, 512", "k, j", "512, 512", "512, 512", "512");
  EXPECT_TRUE(sketches_of(tensor_floats, "sm_80")[0].starts_with("matrix instructions"));
  EXPECT_EQ(sketches_of(tensor_floats, "sm_75")[0], "a tile a block, 4 x 4 a thread");
  EXPECT_EQ(sketches_of(tensor_floats, "sm_80", {.strict = true})[0],
            "a tile a block, 4 x 4 a thread");
  const std::string wide =
      "kernel k(A: float32[64, 64], B: float32[64, 64]) -> (C: float32[64, 64]) {"
      " C[i, j] = sum[k < 64](A[i, k] * B[k, j]) }";
  EXPECT_EQ(sketches_of(wide, "sm_90")[0], "a tile a block, 4 x 4 a thread");
}

TEST(MatrixTiles, OfFloat8AreOnlyWhereTensorCoresReadThem) {
  const std::string floats =
      product("i, k", "512, 512", "j, k", "512, 512", "512, 512", "512", "float8_e4m3fn");
  EXPECT_EQ(sketches_of(floats, "sm_86")[0], "a tile a block, 4 x 4 a thread");
  EXPECT_EQ(sketches_of(floats, "sm_90", {.strict = true})[0], "a tile a block, 4 x 4 a thread");
  for (const char* const arch : {"sm_89", "sm_90a", "sm_120"})
    EXPECT_TRUE(sketches_of(floats, arch)[0].starts_with("matrix instructions")) << arch;
}

/// Sums of integers are the same in any order, but not where products are rounded before.
TEST(MatrixTiles, OfBytesServeStrictKernelsToo) {
  const std::string bytes =
      product("i, k", "512, 512", "k, j", "512, 512", "512, 512", "512", "int8");
  EXPECT_EQ(sketches_of(bytes, "sm_80", {.strict = true})[0],
            "matrix instructions, 64 x 64 a block");
  EXPECT_EQ(sketches_of(bytes, "sm_75")[0], "a tile a block, 4 x 4 a thread");
  const std::string rounded =
      "kernel k(A: int8[64, 64], B: int8[64, 64]) -> (C: int32[64, 64]) {"
      " C[i, j] = sum[k < 64](int32(A[i, k] * B[k, j])) }";
  EXPECT_EQ(sketches_of(rounded, "sm_90")[0], "a tile a block, 4 x 4 a thread");
}

class MatrixCode : public NeedsNvrtc<> {};

TEST_F(MatrixCode, IsCompiledForEachArchitectureWithoutSpills) {
  const language::TextKernel text = kernel_of(square(4096));
  // 64 steps at once, or 32 where shared memory has no room for more, in three iterations and a
  // loop of those that are left.
  struct Code {
    const char* arch;
    size_t steps;
  };
  for (const auto& [arch, steps] : {Code{"sm_80", 4 * 64},
                                    {"sm_86", 4 * 32},
                                    {"sm_90", 4 * 64},
                                    {"sm_100", 4 * 64},
                                    {"sm_120", 4 * 32}}) {
    const Target target{TargetKind::Cuda, arch};
    LoweringObserver silent;
    const ir::Kernel loops = lower(text.kernel, choose_schedule(text.kernel, {}, target, {}),
                                   target, {}, Layout::Compact, silent);
    const Artifact artifact = codegen::make_cuda_artifact(loops, nullptr, {arch});
    // 64 x 64 of a warp and 16 steps: 4 x 8 products, whose fragments are loaded four at once.
    const size_t groups = count_in(artifact.ptx, "mma.sync.aligned.m16n8k16") / 32;
    EXPECT_EQ(count_in(artifact.ptx, "mma.sync.aligned.m16n8k16"), groups * 32) << arch;
    EXPECT_EQ(count_in(artifact.ptx, "ldmatrix.sync.aligned.m8n8.x4"), groups * 8) << arch;
    EXPECT_EQ(groups, steps / 16) << arch;
    const auto kernels = codegen::kernels_of_cubin(artifact.code);
    ASSERT_EQ(kernels.size(), 1U);
    EXPECT_EQ(kernels[0].stack_bytes, 0) << arch;
  }
}

TEST_F(MatrixCode, OfBytesIsCompiledForEachArchitectureWithoutSpills) {
  const std::string size = "4096, 4096";
  for (const char* const a : {"i, k", "k, i"}) {
    for (const char* const b : {"j, k", "k, j"}) {
      const language::TextKernel text =
          kernel_of(product(a, size, b, size, size, "4096", a[0] == 'i' ? "int8" : "uint8"));
      for (const char* const arch : {"sm_80", "sm_86", "sm_90", "sm_120"}) {
        const Target target{TargetKind::Cuda, arch};
        LoweringObserver silent;
        const ir::Kernel loops = lower(text.kernel, choose_schedule(text.kernel, {}, target, {}),
                                       target, {}, Layout::Compact, silent);
        const Artifact artifact =
            codegen::make_cuda_artifact(loops, nullptr, {.arch = arch, .strict = true});
        const std::string kind = a[0] == 'i' ? "s32.s8.s8.s32" : "s32.u8.u8.s32";
        const size_t products = count_in(artifact.ptx, "mma.sync.aligned.m16n8k32.row.col." + kind);
        EXPECT_GT(products, 0U) << arch;
        EXPECT_EQ(count_in(artifact.ptx, "mma.sync"), products) << arch;
        // 4 x 8 products of a group, whose fragments are loaded four at once.
        EXPECT_EQ(count_in(artifact.ptx, "ldmatrix.sync.aligned.m8n8.x4"), products / 4) << arch;
        EXPECT_EQ(count_in(artifact.ptx, "satfinite"), 0U) << "sums wrap around";
        const auto kernels = codegen::kernels_of_cubin(artifact.code);
        ASSERT_EQ(kernels.size(), 1U);
        EXPECT_EQ(kernels[0].stack_bytes, 0) << arch;
      }
    }
  }
}

/// sm_89 and sm_120 multiply them as they are, 32 steps at once, and add each product to the whole
/// in float32; sm_90 and sm_100 multiply them as float16.
TEST_F(MatrixCode, OfFloat8IsCompiledWithWhatTheArchitectureHas) {
  const std::string size = "4096, 4096";
  const language::TextKernel text = kernel_of(
      fmt::format("kernel k(A: float8_e5m2[{0}], B: float8_e4m3fn[{0}]) -> (C: float32[{0}]) {{"
                  " C[i, j] = sum[k < 4096](float32(A[i, k]) * float32(B[k, j])) }}",
                  size));
  for (const char* const arch : {"sm_89", "sm_90", "sm_100", "sm_120"}) {
    const Target target{TargetKind::Cuda, arch};
    LoweringObserver silent;
    const ir::Kernel loops = lower(text.kernel, choose_schedule(text.kernel, {}, target, {}),
                                   target, {}, Layout::Compact, silent);
    const Artifact artifact = codegen::make_cuda_artifact(loops, nullptr, {arch});
    const bool are_halves = arch == std::string("sm_90") || arch == std::string("sm_100");
    const size_t all = count_in(artifact.ptx, "mma.sync");
    EXPECT_GT(all, 0U) << arch;
    EXPECT_EQ(count_in(artifact.ptx, are_halves ? "m16n8k16.row.col.f32.f16.f16.f32"
                                                : "m16n8k32.row.col.f32.e5m2.e4m3.f32"),
              all)
        << arch;
    const auto kernels = codegen::kernels_of_cubin(artifact.code);
    ASSERT_EQ(kernels.size(), 1U);
    EXPECT_EQ(kernels[0].stack_bytes, 0) << arch;
  }
}

}  // namespace
}  // namespace kiln::testing::matrix_tiles
