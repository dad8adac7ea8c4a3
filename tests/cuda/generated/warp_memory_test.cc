// Memory of a warp in the CUDA C that is made of it: no shared memory, no barriers, a shuffle for
// what another thread holds. Right on the host, thread by thread.
#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "runtime/core/error.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/warp_kernels.h"

namespace kiln::testing {
namespace {

/// The source of a kernel that keeps something in memory of a warp, right in the interpreter and on
/// the host.
std::string warp_source(const std::string& kernel, const std::vector<int64_t>& sizes) {
  const language::TextKernel text = kernel_of(kernel);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, sizes), "") << ir::print(loops);
  EXPECT_EQ(difference_on_host(text, loops, sizes), "") << source_of(loops);
  std::string source = source_of(loops);
  EXPECT_EQ(count_in(source, "__shared__") + count_in(source, "__sync"), 0u) << source;
  return source;
}

// TVM's test_tir_transform_lower_warp_memory runs these four: a warp turned round, half warps side
// by side, two buffers, and an extent that 32 does not divide.
TEST(WarpMemoryOnHost, AWarpTurnsItsElementsRound) {
  for (const char* type : {"float32", "float64", "float16", "int8", "int64"}) {
    const std::string source = warp_source(warp_turned_round(type), {128});
    EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 1u) << source;
  }
}

TEST(WarpMemoryOnHost, HalfWarpsLieSideBySide) {
  const std::string source = warp_source(half_warps(), {});
  EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 1u) << source;
}

TEST(WarpMemoryOnHost, TwoBuffersOfOneWarp) {
  const std::string source = warp_source(two_buffers_of_a_warp(), {128});
  EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 2u) << source;
}

TEST(WarpMemoryOnHost, WhatAThreadHoldsItselfNeedsNoShuffle) {
  for (const int64_t m : {31, 32, 33, 63, 64, 65}) {
    const std::string source = warp_source(own_elements_of_a_warp(), {m});
    EXPECT_EQ(count_in(source, "kiln_shuffle"), 0u) << source;
  }
}

/// A window of three slides over what a warp holds: 34 elements, the last two with the first lanes.
TEST(WarpMemoryOnHost, AWindowSlidesOverTheRegistersOfAWarp) {
  for (const int64_t n : {1, 32, 70}) {
    const std::string source = warp_source(window_over_a_warp(), {n});
    // Of each of the two neighbours either of two elements.
    EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 4u) << source;
  }
}

/// Inside of its threads a warp fills its memory together: each fetches two of 64 elements.
TEST(WarpMemoryOnHost, AVectorIsPassedOnFromLaneToLane) {
  for (const int factor : {16, 32, 64}) {
    const std::string source = warp_source(vector_of_a_warp(factor), {50});
    EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 1u) << source;
  }
}

/// Neighbours that a lane stores stay with it, as a vector.
TEST(WarpMemoryOnHost, ALaneHoldsFourNeighbours) {
  const std::string source = warp_source(neighbours_of_a_lane(), {5});
  EXPECT_NE(source.find("kiln_shuffle_lane("), std::string::npos) << source;
}

/// The loops with the shuffle at a position taking what the next lane has.
class OneLaneFurther : public ir::Mutator {
 public:
  explicit OneLaneFurther(int at) : left_(at) {}
  bool is_done() const { return left_ < 0; }

 private:
  using Mutator::visit;
  ir::Stmt visit(const ir::Shuffle& node) override {
    if (left_-- != 0) return Mutator::visit(node);
    return ir::Shuffle::make(0, node.lane + 1, node.width, node.buffer, node.indices, node.value);
  }
  int left_;
};

/// Right in the interpreter, or refused; and each shuffle that goes wrong is seen.
TEST(WarpMemoryFuzz, DrawnTilesAreRightOrRefusedAndEachShuffleCounts) {
  int right = 0;
  int shuffles = 0;
  int unseen = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const std::string drawn = drawn_tile_of_a_warp(random);
    SCOPED_TRACE(drawn);
    const language::TextKernel text = kernel_of(drawn);
    ir::Kernel loops;
    try {
      loops = gpu_loops(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "MEMORY_SCOPE") << error.message();
      continue;
    }
    ++right;
    EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
    for (int at = 0;; ++at) {
      OneLaneFurther mutate(at);
      ir::Kernel wrong = loops;
      wrong.body = mutate(loops.body);
      if (!mutate.is_done()) break;
      ++shuffles;
      unseen += gpu_difference(text, wrong, {}).empty() ? 1 : 0;
    }
  }
  EXPECT_GE(right, 30);
  EXPECT_GE(shuffles, 30);
  EXPECT_EQ(unseen, 0);
}

}  // namespace
}  // namespace kiln::testing
