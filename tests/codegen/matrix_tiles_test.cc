// Contractions of 16-bit floats go to tensor cores, without a step.
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

namespace kiln::testing {
namespace {

/// A product of float16 with these reads of its factors.
std::string product(std::string_view a, std::string_view a_shape, std::string_view b,
                    std::string_view b_shape, std::string_view c_shape, std::string_view steps,
                    std::string_view type = "float16") {
  return fmt::format(
      "kernel k(A: {0}[{1}], B: {0}[{2}]) -> (C: float32[{3}]) {{"
      " C[i, j] = sum[k < {4}](float32(A[{5}]) * float32(B[{6}])) }}",
      type, a_shape, b_shape, c_shape, steps, a, b);
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
  EXPECT_NE(source.find("kiln_multiply<"), std::string::npos) << source;
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

std::vector<std::string> sketches_of(const std::string& text, std::string_view arch,
                                     const CompileOptions& options = {}) {
  const language::TextKernel kernel = kernel_of(text);
  const SketchSpace space(kernel.kernel, {}, {TargetKind::Cuda, std::string(arch)}, options);
  std::vector<std::string> names;
  for (const autoschedule::Sketch& sketch : space.stages().at(0).sketches)
    names.push_back(sketch.name);
  return names;
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

/// Rows that do not begin at 16 bytes each, or sums with too few parts to be ahead of.
TEST(MatrixTiles, AreFetchedWhenNeededWhereCopiesInTheBackgroundDoNotServe) {
  const auto first_of = [](int m, int n, int l) {
    return sketches_of(
        product("i, k", fmt::format("{}, {}", m, l), "k, j", fmt::format("{}, {}", l, n),
                fmt::format("{}, {}", m, n), std::to_string(l)),
        "sm_90")[0];
  };
  EXPECT_EQ(first_of(4096, 4096, 256), "matrix instructions, 256 x 128 a block");
  EXPECT_EQ(first_of(4096, 4096, 192), "matrix instructions, 128 x 128 a block");
  EXPECT_EQ(first_of(4096, 4095, 4096), "matrix instructions, 128 x 128 a block");
  EXPECT_EQ(first_of(4096, 4096, 4095), "matrix instructions, 128 x 128 a block");
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

TEST(MatrixTilesLeave, WhatHasNoTensorCoresOrKeepsItsOrder) {
  EXPECT_EQ(sketches_of(square(512), "sm_75")[0], "a tile a block, 4 x 4 a thread");
  EXPECT_EQ(sketches_of(square(512), "sm_90", {.strict = true})[0],
            "a tile a block, 4 x 4 a thread");
  const std::string wide =
      "kernel k(A: float32[64, 64], B: float32[64, 64]) -> (C: float32[64, 64]) {"
      " C[i, j] = sum[k < 64](A[i, k] * B[k, j]) }";
  EXPECT_EQ(sketches_of(wide, "sm_90")[0], "a tile a block, 4 x 4 a thread");
}

/// Skips the test, saying why, where NVRTC is not installed.
class MatrixCode : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      codegen::describe_nvrtc();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unavailable) throw;
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_F(MatrixCode, IsCompiledForEachArchitectureWithoutSpills) {
  const language::TextKernel text = kernel_of(square(4096));
  // 64 steps at once, or 32 where shared memory has no room for more, in three iterations and a
  // loop of those that are left; or in one loop.
  struct Code {
    const char* arch;
    size_t steps;
  };
  for (const auto& [arch, steps] : {Code{"sm_80", 4 * 64},
                                    {"sm_86", 4 * 32},
                                    {"sm_90", 4 * 64},
                                    {"sm_100", 64},
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

}  // namespace
}  // namespace kiln::testing
