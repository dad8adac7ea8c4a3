#include "compiler/codegen/occupancy.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

codegen::Occupancy of(std::string_view arch, int64_t threads, int registers, int64_t shared = 0,
                      int64_t dynamic = 0) {
  const codegen::CubinKernel kernel{.name = "k", .registers = registers, .shared_bytes = shared};
  return codegen::occupancy_of(kernel, threads, dynamic, ir::gpu_arch(arch));
}

void expect(const codegen::Occupancy& occupancy, int64_t blocks, int64_t percent,
            std::string_view bound) {
  EXPECT_EQ(occupancy.blocks, blocks);
  EXPECT_EQ(occupancy.percent, percent);
  EXPECT_EQ(occupancy.bound, bound);
}

TEST(Occupancy, IsBoundByWhatIsScarcest) {
  expect(of("sm_90", 256, 32), 8, 100, "threads");
  expect(of("sm_90", 256, 128), 2, 25, "registers");
  expect(of("sm_90", 32, 16), 32, 50, "blocks");
  expect(of("sm_90", 256, 32, 1024 + 49152), 4, 50, "shared memory");
  expect(of("sm_90", 256, 32, 1024, 100 << 10), 2, 25, "shared memory");
}

TEST(Occupancy, IsThatOfTheArchitecture) {
  expect(of("sm_75", 256, 32), 4, 100, "threads");
  expect(of("sm_86", 1024, 32), 1, 66, "threads");
  expect(of("sm_80", 256, 32, 40 << 10), 4, 50, "shared memory");  // one kilobyte each is not ours
  expect(of("sm_90a", 256, 32), 8, 100, "threads");
}

TEST(Occupancy, CountsWholeWarps) { expect(of("sm_90", 33, 32), 32, 100, "threads"); }

TEST(GpuArch, KnowsWhatABlockMayHave) {
  EXPECT_EQ(ir::gpu_arch("sm_75").shared_bytes_of_block, 64 << 10);
  EXPECT_EQ(ir::gpu_arch("sm_86").shared_bytes_of_block, 99 << 10);
  EXPECT_EQ(ir::gpu_arch("").shared_bytes_of_block, 227 << 10);
  EXPECT_EQ(ir::gpu_arch("sm_999").shared_bytes_of_block, 48 << 10);
}

}  // namespace
}  // namespace kiln::testing
