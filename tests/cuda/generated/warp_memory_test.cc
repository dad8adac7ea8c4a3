// Memory of a warp in the CUDA C that is made of it: no shared memory, no barriers, a shuffle for
// what another thread holds. Right on the host, thread by thread.
#include <fmt/format.h>
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
    const std::string source = warp_source(fmt::format(R"(
kernel k(A: {0}[m]) -> (B: {0}[m]) {{
  B[i] = A[floordiv(i, 32)*32 + 31 - floormod(i, 32)]
  schedule cuda {{
    cache_read(A, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    bind(A.warp.ax0, threadIdx.x)
  }}
}})",
                                                       type),
                                           {128});
    EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 1u) << source;
  }
}

TEST(WarpMemoryOnHost, HalfWarpsLieSideBySide) {
  const std::string source = warp_source(R"(
kernel k(A: float32[16, 16]) -> (B: float32[16, 16]) {
  B[j, i] = A[j, floormod(i + 1, 16)]
  schedule cuda {
    cache_read(A, warp, B)
    split(B.j, parts=2)
    bind(B.i, threadIdx.x)
    bind(B.j.inner, threadIdx.y)
    bind(B.j.outer, blockIdx.x)
    compute_at(A.warp, B.j.inner)
    bind(A.warp.ax1, threadIdx.x)
  }
})",
                                         {});
  EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 1u) << source;
}

TEST(WarpMemoryOnHost, TwoBuffersOfOneWarp) {
  const std::string source = warp_source(R"(
kernel k(A: float32[m], X: float32[m]) -> (B: float32[m]) {
  B[i] = A[floordiv(i, 32)*32 + floormod(i + 1, 32)] + X[floordiv(i, 32)*32 + floormod(i + 2, 32)]
  schedule cuda {
    cache_read(A, warp, B)
    cache_read(X, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    bind(A.warp.ax0, threadIdx.x)
    compute_at(X.warp, B.i.outer)
    bind(X.warp.ax0, threadIdx.x)
  }
})",
                                         {128});
  EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 2u) << source;
}

TEST(WarpMemoryOnHost, WhatAThreadHoldsItselfNeedsNoShuffle) {
  for (const int64_t m : {31, 32, 33, 63, 64, 65}) {
    const std::string source = warp_source(R"(
kernel k(A: float32[m]) -> (B: float32[m]) {
  B[i] = A[i] + 1.0
  schedule cuda {
    cache_read(A, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    bind(A.warp.ax0, threadIdx.x)
  }
})",
                                           {m});
    EXPECT_EQ(count_in(source, "kiln_shuffle"), 0u) << source;
  }
}

/// A window of three slides over what a warp holds: 34 elements, the last two with the first lanes.
TEST(WarpMemoryOnHost, AWindowSlidesOverTheRegistersOfAWarp) {
  for (const int64_t n : {1, 32, 70}) {
    const std::string source = warp_source(R"(
kernel k(A: float32[n + 2]) -> (B: float32[n]) {
  B[i] = A[i] + A[i + 1] + A[i + 2]
  schedule cuda {
    cache_read(A, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    split(A.warp.ax0, factor=32)
    bind(A.warp.ax0.inner, threadIdx.x)
  }
})",
                                           {n});
    // Of each of the two neighbours either of two elements.
    EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 4u) << source;
  }
}

/// Inside of its threads a warp fills its memory together: each fetches two of 64 elements.
TEST(WarpMemoryOnHost, AVectorIsPassedOnFromLaneToLane) {
  for (const int factor : {16, 32, 64}) {
    const std::string source = warp_source(fmt::format(R"(
kernel k(A: float32[n, 128], V: float32[128]) -> (B: float32[n]) {{
  B[i] = sum[k < 128](A[i, k] * V[k])
  schedule cuda {{
    cache_read(V, warp, B)
    split(B.i, factor=16)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    split(B.k, factor={})
    compute_at(V.warp, B.k.outer)
    split(V.warp.ax0, factor=16)
    bind(V.warp.ax0.inner, threadIdx.x)
  }}
}})",
                                                       factor),
                                           {50});
    EXPECT_EQ(count_in(source, " = kiln_shuffle_lane("), 1u) << source;
  }
}

/// Neighbours that a lane stores stay with it, as a vector.
TEST(WarpMemoryOnHost, ALaneHoldsFourNeighbours) {
  const std::string source = warp_source(R"(
kernel k(A: float32[n, 128]) -> (B: float32[n, 128]) {
  B[i, j] = A[i, 127 - j]
  schedule cuda {
    cache_read(A, warp, B)
    bind(B.i, blockIdx.x)
    split(B.j, factor=4)
    bind(B.j.outer, threadIdx.x)
    compute_at(A.warp, B.i)
    split(A.warp.ax1, factor=4)
    bind(A.warp.ax1.outer, threadIdx.x)
    vectorize(A.warp.ax1.inner)
  }
})",
                                         {5});
  EXPECT_NE(source.find("kiln_shuffle_lane("), std::string::npos) << source;
}

/// A tile of a warp with a drawn number of threads, of neighbours that each holds and of rounds,
/// each element of it read once, in a drawn order.
std::string drawn_kernel(Random& random) {
  const int lanes = 1 << random.between(1, 5);
  const int side = 1 << random.between(0, 2);
  const int rounds = random.between(1, 3);
  const int tile = lanes * side * rounds;
  const int shift = random.between(0, tile - 1);
  const std::string place =
      random.pick(std::vector<std::string>{fmt::format("{} - floormod(i, {})", tile - 1, tile),
                                           fmt::format("floormod(i + {}, {})", shift, tile)});
  const bool adds_own = random.chance(0.5);
  const std::string others = adds_own ? " + A[i]" : "";
  return fmt::format(R"(kernel k(A: int32[{0}]) -> (B: int32[{0}]) {{
  B[i] = A[floordiv(i, {1})*{1} + {2}]{3}
  schedule cuda {{
    cache_read(A, warp, B)
    split(B.i, factor={1})
    split(B.i.inner, factor={4})
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    split(A.warp.ax0, factor={5})
    split(A.warp.ax0.outer, factor={4})
    bind(A.warp.ax0.outer.inner, threadIdx.x)
  }}
}})",
                     tile * 2, tile, place, others, lanes, side);
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
    const std::string drawn = drawn_kernel(random);
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
