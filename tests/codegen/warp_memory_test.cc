// Memory of a warp as NVRTC compiles it: shuffles between registers, without shared memory, without
// a barrier, without memory of a thread. What the threads compute is tested on the host
// (tests/cuda/generated).
#include <gtest/gtest.h>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/cuda_compile.h"
#include "runtime/core/error.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/needs_nvrtc.h"
#include "tests/support/warp_kernels.h"

namespace kiln::codegen {
namespace {

class WarpMemoryByNvrtc : public testing::NeedsNvrtc<> {};

void expect_registers_alone(const ir::Kernel& loops, std::string_view arch, size_t shuffles) {
  const std::string source = testing::source_of(loops);
  const Artifact artifact = make_cuda_artifact(loops, nullptr, {arch});
  const size_t variants = artifact.variants.size();
  EXPECT_GE(testing::count_in(artifact.ptx, "shfl.sync.idx"), shuffles * variants)
      << arch << source << artifact.ptx;
  EXPECT_EQ(testing::count_in(artifact.ptx, ".shared"), 0U) << arch << source;
  EXPECT_EQ(testing::count_in(artifact.ptx, "bar."), 0U) << arch << source;
  for (const CubinKernel& kernel : kernels_of_cubin(artifact.code))
    EXPECT_EQ(kernel.stack_bytes, 0) << arch << source;
}

TEST_F(WarpMemoryByNvrtc, LiesInRegistersOnEveryArchitecture) {
  struct Row {
    std::string kernel;
    size_t shuffles;  // at least; of 64 bits each is two
  };
  const Row rows[] = {
      {testing::warp_turned_round("float32"), 1}, {testing::warp_turned_round("float64"), 2},
      {testing::warp_turned_round("float16"), 1}, {testing::warp_turned_round("int8"), 1},
      {testing::warp_turned_round("int64"), 2},   {testing::half_warps(), 1},
      {testing::two_buffers_of_a_warp(), 2},      {testing::own_elements_of_a_warp(), 0},
      {testing::window_over_a_warp(), 4},         {testing::vector_of_a_warp(16), 1},
      {testing::vector_of_a_warp(64), 1},         {testing::neighbours_of_a_lane(), 1}};
  for (const char* const arch : {"sm_75", "sm_90", "sm_120"}) {
    for (const Row& row : rows)
      expect_registers_alone(testing::gpu_loops(testing::kernel_of(row.kernel)), arch,
                             row.shuffles);
  }
}

TEST_F(WarpMemoryByNvrtc, OfDrawnTilesLiesInRegisters) {
  int compiled = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    testing::Random random(seed);
    const std::string kernel = testing::drawn_tile_of_a_warp(random);
    SCOPED_TRACE(kernel);
    ir::Kernel loops;
    try {
      loops = testing::gpu_loops(testing::kernel_of(kernel));
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "MEMORY_SCOPE") << error.message();
      continue;
    }
    ++compiled;
    const size_t shuffles = testing::count_in(testing::source_of(loops), " = kiln_shuffle_lane(");
    expect_registers_alone(loops, "sm_90", shuffles);
  }
  EXPECT_GE(compiled, 15);
}

}  // namespace
}  // namespace kiln::codegen
