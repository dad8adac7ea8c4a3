#include <cstring>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/interpret.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/verify.h"
#include "tests/passes/pass_test.h"
#include "tests/support/parse_ir.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

constexpr const char* kParameters = "A: float32[m, n], B: float32[m, n]";

ir::Kernel partitioned(std::string_view body) {
  return run_pass(pass_named("partition_loops").run, parse_kernel(kParameters, body));
}

void expect_partitioned(std::string_view before, std::string_view after) {
  expect_same(partitioned(before), parse_kernel(kParameters, after));
}

ir::HostTensor numbers(int64_t m, int64_t n) {
  ir::HostTensor tensor{DType::Float32, {m, n}, {}};
  for (int64_t i = 0; i < m * n; ++i) {
    const auto value = static_cast<float>(i % 17 + 1);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + sizeof value);
  }
  return tensor;
}

/// Partitioned loops compute the same as those they come from, for these m and n.
void expect_same_numbers(std::string_view body, std::initializer_list<std::pair<int, int>> shapes) {
  const ir::Kernel before = parse_kernel(kParameters, body);
  const ir::Kernel after = partitioned(body);
  const bool a_is_input = !before.is_output[0];
  for (const auto& [m, n] : shapes) {
    const int64_t sizes[] = {m, n};
    std::vector<ir::HostTensor> expected = {numbers(m, n), numbers(m, n)};
    std::vector<ir::HostTensor> actual = expected;
    ir::interpret(before, sizes, expected);
    ir::interpret(after, sizes, actual);
    EXPECT_TRUE(a_is_input);
    EXPECT_EQ(actual[1].bytes, expected[1].bytes) << "m = " << m << ", n = " << n << "\n"
                                                  << ir::print(after);
  }
}

class CountGuards : public ir::Visitor {
 public:
  int likely = 0;
  int stores = 0;

 private:
  using Visitor::visit;
  void visit(const ir::If& node) override {
    likely += node.likely ? 1 : 0;
    Visitor::visit(node);
  }
  void visit(const ir::Store&) override { ++stores; }
};

TEST(PartitionLoops, FullTilesLoseTheGuard) {
  expect_partitioned(R"(
    for io in 0..floordiv(n + 31, 32) {
      for ii in 0..32 vectorize {
        if likely(io*32 + ii < n) { B[0, io*32 + ii] = A[0, io*32 + ii] }
      }
    })",
                     R"(
    for io in 0..floordiv(n, 32) {
      for ii in 0..32 vectorize { B[0, io*32 + ii] = A[0, io*32 + ii] }
    }
    if floordiv(n, 32) < floordiv(n + 31, 32) {
      for ii in 0..32 vectorize {
        if likely(floordiv(n, 32)*32 + ii < n) {
          B[0, floordiv(n, 32)*32 + ii] = A[0, floordiv(n, 32)*32 + ii]
        }
      }
    })");
}

TEST(PartitionLoops, TheLastTileOfAPlainLoopIsShorterInstead) {
  expect_partitioned(R"(
    for io in 0..floordiv(n + 31, 32) {
      for ii in 0..32 { if likely(io*32 + ii < n) { B[0, io*32 + ii] = A[0, io*32 + ii] } }
    })",
                     R"(
    for io in 0..floordiv(n, 32) {
      for ii in 0..32 { B[0, io*32 + ii] = A[0, io*32 + ii] }
    }
    if floordiv(n, 32) < floordiv(n + 31, 32) {
      for ii in 0..n - floordiv(n, 32)*32 {
        B[0, floordiv(n, 32)*32 + ii] = A[0, floordiv(n, 32)*32 + ii]
      }
    })");
}

/// What stands beside the guarded loop is as much code again, and the same in all iterations.
TEST(PartitionLoops, AParallelLoopAsksWhereTheGuardsAreAlone) {
  const std::string_view body = R"(
    for i in 0..4 parallel {
      allocate T: float32[8] scope(local)
      for j in 0..8 { T[j] = 0.0 }
      for j in 0..8 { if likely(i*8 + j < n) { T[j] = A[0, i*8 + j] } }
      for j in 0..8 { if likely(i*8 + j < n) { B[0, i*8 + j] = T[j] } }
    })";
  CountGuards walk;
  walk(partitioned(body).body);
  EXPECT_EQ(walk.stores, 5);  // one of the zeros, two of each of the others
  expect_same_numbers(body, {{1, 32}, {1, 30}, {1, 9}, {1, 8}, {1, 1}});
}

/// The last block has less inside: the loop over its tiles ends earlier, and what is left of them
/// stands in that one iteration.
TEST(PartitionLoops, AParallelLoopOverTilesThatAreWrittenOutIsCutInside) {
  // Of 18, the last block has no full tile, and its second one is outside.
  for (const int count : {22, 18}) {
    const int full = count / 4;
    const std::string before = fmt::format(R"(
    for b in 0..3 parallel {{ for t in 0..2 {{ for r in 0..4 unroll {{
      if likely(b*8 + t*4 + r < {}) {{ B[0, b*8 + t*4 + r] = A[0, b*8 + t*4 + r] }} }} }} }})",
                                           count);
    expect_partitioned(before, fmt::format(R"(
    for b in 0..3 parallel {{
      for t in 0..min({} - b*2, 2) {{ for r in 0..4 unroll {{
        B[0, b*8 + t*4 + r] = A[0, b*8 + t*4 + r] }} }}
      if 2 <= b {{ for r in 0..2 unroll {{ B[0, r + {}] = A[0, r + {}] }} }}
    }})",
                                           full, full * 4, full * 4));
    expect_same_numbers(before, {{1, count}, {2, 24}});
  }
}

/// Guards of loops inside, here of a vector whose rows begin at 1, are no reason for a copy.
TEST(PartitionLoops, AParallelLoopLeavesThePartsWithGuardsOfTheirOwnAlone) {
  const std::string_view body = R"(
    for i in 0..4 parallel {
      allocate T: float32[8] scope(local)
      for j in 0..8 { if likely(i*8 + j < n) { T[j] = A[0, i*8 + j] } }
      for j in 0..8 vectorize { if likely(1 <= j && j < m) { B[j, i] = 3.0 } }
      for j in 0..8 { if likely(i*8 + j < n) { B[0, i*8 + j] = T[j] } }
    })";
  CountGuards walk;
  walk(partitioned(body).body);
  EXPECT_EQ(walk.stores, 5);
  expect_same_numbers(body, {{8, 32}, {9, 30}, {8, 9}, {10, 8}});
}

TEST(PartitionLoops, AParallelLoopAsksForPaddingAtBothEndsWhereItIsAlone) {
  const std::string_view body = R"(
    for i in 0..m parallel {
      allocate T: float32[4] scope(local)
      for j in 0..4 { T[j] = if_then_else(1 <= i && i < m - 1, A[i, j] + A[i - 1, j], 2.0) }
      for j in 0..4 { B[i, j] = T[j] }
    })";
  CountGuards walk;
  walk(partitioned(body).body);
  EXPECT_EQ(walk.stores, 3);
  expect_same_numbers(body, {{1, 4}, {2, 4}, {3, 4}, {7, 4}});
}

TEST(PartitionLoops, ConstantExtents) {
  expect_partitioned(R"(
    for io in 0..16 { for ii in 0..32 vectorize {
      if likely(io*32 + ii < 500) { B[0, io*32 + ii] = 1.0 }
    } })",
                     R"(
    for io in 0..15 { for ii in 0..32 vectorize { B[0, io*32 + ii] = 1.0 } }
    for ii in 0..20 vectorize { B[0, ii + 480] = 1.0 })");
}

TEST(PartitionLoops, AParallelLoopStaysOneRegion) {
  expect_partitioned(R"(
    for io in 0..floordiv(n + 31, 32) parallel { for ii in 0..32 vectorize {
      if likely(io*32 + ii < n) { B[0, io*32 + ii] = 1.0 }
    } })",
                     R"(
    for io in 0..floordiv(n + 31, 32) parallel {
      if io < floordiv(n, 32) {
        for ii in 0..32 vectorize { B[0, io*32 + ii] = 1.0 }
      } else {
        for ii in 0..32 vectorize { if likely(io*32 + ii < n) { B[0, io*32 + ii] = 1.0 } }
      }
    })");
}

TEST(PartitionLoops, OneIterationThatIsLeftOfAParallelLoopIsKnown) {
  expect_partitioned(R"(
    for io in 0..3 parallel { for ii in 0..32 vectorize {
      if likely(io*32 + ii < 70) { B[0, io*32 + ii] = 1.0 }
    } })",
                     R"(
    for io in 0..3 parallel {
      if io < 2 {
        for ii in 0..32 vectorize { B[0, io*32 + ii] = 1.0 }
      } else {
        for ii in 0..6 vectorize { B[0, ii + 64] = 1.0 }
      }
    })");
}

TEST(PartitionLoops, TilesOfTheLastBlockThatLieOutsideAreLeftOut) {
  expect_partitioned(R"(
    for jb in 0..2 { for jo in 0..4 {
      for ji in 0..8 vectorize {
        if likely(jb*32 + jo*8 + ji < 45) { B[0, jb*32 + jo*8 + ji] = 0.0 }
      }
      for k in 0..n { for ji in 0..8 vectorize {
        if likely(jb*32 + jo*8 + ji < 45) { B[1, jb*32 + jo*8 + ji] = A[k, jo] }
      } }
    } })",
                     R"(
    for jo in 0..4 {
      for ji in 0..8 vectorize { B[0, jo*8 + ji] = 0.0 }
      for k in 0..n { for ji in 0..8 vectorize { B[1, jo*8 + ji] = A[k, jo] } }
    }
    for ji in 0..8 vectorize { B[0, ji + 32] = 0.0 }
    for k in 0..n { for ji in 0..8 vectorize { B[1, ji + 32] = A[k, 0] } }
    for ji in 0..5 vectorize { B[0, ji + 40] = 0.0 }
    for k in 0..n { for ji in 0..5 vectorize { B[1, ji + 40] = A[k, 1] } })");
}

/// What is fetched there alone is no work.
TEST(PartitionLoops, PrefetchesKeepNoTileThatLiesOutside) {
  expect_partitioned(R"(
    for jb in 0..2 { for jo in 0..4 { for k in 0..n {
      prefetch A[k, jo]
      for ji in 0..8 vectorize {
        if likely(jb*32 + jo*8 + ji < 45) { B[1, jb*32 + jo*8 + ji] = A[k, jo] }
      }
    } } })",
                     R"(
    for jo in 0..4 { for k in 0..n {
      prefetch A[k, jo]
      for ji in 0..8 vectorize { B[1, jo*8 + ji] = A[k, jo] }
    } }
    for k in 0..n {
      prefetch A[k, 0]
      for ji in 0..8 vectorize { B[1, ji + 32] = A[k, 0] }
    }
    for k in 0..n {
      prefetch A[k, 1]
      for ji in 0..5 vectorize { B[1, ji + 40] = A[k, 1] }
    })");
}

/// A block that ends within one tile has that one left, and not all that it might have.
TEST(PartitionLoops, OneTileIsLeftOfABlock) {
  const std::string_view body = R"(
    for b in 0..floordiv(n + 255, 256) parallel {
      for t in 0..16 { for l in 0..16 vectorize {
        if likely(b*256 + t*16 + l < n) { B[0, b*256 + t*16 + l] = A[0, b*256 + t*16 + l] }
      } }
    })";
  expect_partitioned(body, R"(
    for b in 0..floordiv(n + 255, 256) parallel {
      if b < floordiv(n, 256) {
        for t in 0..16 { for l in 0..16 vectorize {
          B[0, b*256 + t*16 + l] = A[0, b*256 + t*16 + l]
        } }
      } else {
        for t in 0..floordiv(n, 16) - b*16 { for l in 0..16 vectorize {
          B[0, b*256 + t*16 + l] = A[0, b*256 + t*16 + l]
        } }
        for l in 0..16 vectorize {
          if likely(floordiv(n, 16)*16 + l < n) {
            B[0, floordiv(n, 16)*16 + l] = A[0, floordiv(n, 16)*16 + l]
          }
        }
      }
    })");
  expect_same_numbers(body, {{1, 1}, {1, 16}, {1, 250}, {1, 255}, {1, 256}, {1, 257}, {1, 528}});
}

TEST(PartitionLoops, AnIterationWithWorkOutsideOfTheGuardsStays) {
  expect_partitioned(R"(
    for i in 0..8 { if likely(i < 5) { B[0, i] = 1.0 } B[1, i] = 2.0 })",
                     R"(
    for i in 0..5 { B[0, i] = 1.0  B[1, i] = 2.0 }
    for i in 0..3 { B[1, i + 5] = 2.0 })");
}

/// The rest of a GPU's loop runs once: copies of what may not run at all would only be long.
TEST(PartitionLoops, WhatIsLeftOfAGpusLoopIsNotUnrolled) {
  const auto rest_of = [](const PassSetting& setting) {
    const std::string text = ir::print(run_pass(pass_named("partition_loops").run,
                                                R"(fn f(A: float32[n], C: float32[4]) {
      for b in 0..4 bind(blockIdx.x) {
        allocate c: float32[4] scope(local)
        for k in 0..floordiv(n + 7, 8) {
          for i in 0..8 unroll { if likely(k*8 + i < n) { C[b] = C[b] + A[k*8 + i] } }
          for j in 0..4 unroll { if likely(k*8 + j < n) { c[j] = c[j] + A[k*8 + j] } } } } })",
                                                setting));
    return text.substr(text.find("if floordiv(n, 8)"));
  };
  const std::string rest = rest_of(kCuda);
  EXPECT_NE(rest.find("for i_1 in 0..8 {"), std::string::npos) << rest;
  // Its own elements lie in registers, which have no index.
  EXPECT_NE(rest.find("for j_1 in 0..4 unroll {"), std::string::npos) << rest;
  EXPECT_NE(rest_of({}).find("for i_1 in 0..8 unroll {"), std::string::npos);
}

TEST(PartitionLoops, LeavesThreadsAlone) {
  const char* const text =
      "for blockIdx.x in 0..floordiv(n + 255, 256) bind { for threadIdx.x in 0..256 bind { "
      "if likely(blockIdx.x*256 + threadIdx.x < n) { B[0, blockIdx.x*256 + threadIdx.x] = 1.0 } } "
      "}";
  expect_partitioned(text, text);
}

/// All threads take an iteration together whose stores arrive later: it is full where it is for
/// all.
TEST(PartitionLoops, CutsLoopsWithABackgroundForAllThreads) {
  constexpr std::string_view kLoops = R"(
    allocate s: float32[2, 64] scope(shared)
    for t in 0..64 bind(threadIdx.x) {{ {} }})";
  constexpr std::string_view kIteration = R"(for k in 0..18 {{
      await 0
      {} {{ if likely(k*64 + t < 1099) {{ s[floormod(k, 2), t] = A[0, k*64 + t] }} }}
      B[0, k*64 + t] = s[floormod(k, 2), t] }})";
  expect_partitioned(fmt::format(kLoops, fmt::format(kIteration, "background")),
                     fmt::format(kLoops, R"(
    for k in 0..17 {
      await 0
      background { s[floormod(k, 2), t] = A[0, k*64 + t] }
      B[0, k*64 + t] = s[floormod(k, 2), t] }
    await 0
    background { if likely(t < 11) { s[1, t] = A[0, t + 1088] } }
    B[0, t + 1088] = s[1, t])"));
  // Where each thread is for itself its loop ends where it does.
  const std::string apart = fmt::format(kLoops, fmt::format(kIteration, ""));
  expect_partitioned(apart, apart);
}

TEST(PartitionLoops, LeavesOtherConditionsAlone) {
  const char* const text =
      "for i in 0..n { if i < m { B[0, i] = 1.0 } if likely(A[0, i] < 1.0) { B[0, i] = 2.0 } }";
  expect_partitioned(text, text);
}

TEST(PartitionLoops, AnExactGuardOfAllEndsTheLoop) {
  expect_partitioned("for i in 0..n { if likely(i < m) { B[0, i] = 1.0 } }",
                     "for i in 0..min(m, n) { B[0, i] = 1.0 }");
}

TEST(PartitionLoops, PaddingIsCutAtBothEnds) {
  expect_partitioned(
      "for i in 0..34 { B[0, i] = if_then_else(1 <= i && i < 33, A[0, i - 1], 0.0) }",
      R"(
    B[0, 0] = 0.0
    for i in 0..32 { B[0, i + 1] = A[0, i] }
    B[0, 33] = 0.0)");
}

TEST(PartitionLoops, ANeighbourThatMayBeMissing) {
  expect_partitioned("for i in 0..n { B[0, i] = if_then_else(1 <= i, A[0, i - 1], 0.0) }",
                     R"(
    if 0 < n {
      B[0, 0] = 0.0
      for i in 0..n - 1 { B[0, i + 1] = A[0, i] }
    })");
}

TEST(PartitionLoops, TwoHalvesHaveLoopsOfTheirOwn) {
  expect_partitioned("for i in 0..32 { B[0, i] = if_then_else(i < 10, A[0, i], A[1, i - 10]) }", R"(
    for i in 0..10 { B[0, i] = A[0, i] }
    for i in 0..22 { B[0, i + 10] = A[1, i] })");
}

TEST(PartitionLoops, AStartThatMovesWithAnOuterLoopStays) {
  const char* const text =
      "for i in 0..m { for j in 0..n { B[i, j] = if_then_else(i <= j, A[i, j], 0.0) } }";
  expect_partitioned(text, text);
}

TEST(PartitionLoops, PaddingKeepsTheNumbers) {
  const char* const text = R"(
    for i in 0..m { for jo in 0..floordiv(n + 3, 4) { for ji in 0..4 {
      if likely(jo*4 + ji < n) {
        B[i, jo*4 + ji] =
          if_then_else(i >= 1 && i < m - 1 && jo*4 + ji >= 2 && jo*4 + ji < n - 2,
                       A[i - 1, jo*4 + ji - 2] + A[i + 1, jo*4 + ji + 2], 1.0) } } } })";
  expect_same_numbers(text, {{0, 0}, {1, 1}, {2, 3}, {3, 2}, {3, 5}, {4, 8}, {5, 17}});
}

constexpr const char* kTiledCopy = R"(
    for io in 0..floordiv(m + 3, 4) parallel { for jo in 0..floordiv(n + 7, 8) {
      for ii in 0..4 { for ji in 0..8 vectorize {
        if likely(io*4 + ii < m) { if likely(jo*8 + ji < n) {
          B[io*4 + ii, jo*8 + ji] = A[io*4 + ii, jo*8 + ji]*2.0
        } }
      } }
    } })";

constexpr const char* kTiledSum = R"(
    for io in 0..floordiv(m + 3, 4) { for jo in 0..floordiv(n + 3, 4) {
      for ii in 0..4 { for ji in 0..4 {
        if likely(io*4 + ii < m && jo*4 + ji < n) { B[io*4 + ii, jo*4 + ji] = 0.0 }
      } }
      for ko in 0..floordiv(n + 2, 3) { for ii in 0..4 { for ki in 0..3 { for ji in 0..4 vectorize {
        if likely(io*4 + ii < m && jo*4 + ji < n && ko*3 + ki < n) {
          B[io*4 + ii, jo*4 + ji] = B[io*4 + ii, jo*4 + ji] + A[io*4 + ii, ko*3 + ki]
        }
      } } } }
    } })";

TEST(PartitionLoops, NestedTiles) {
  const ir::Kernel kernel = partitioned(kTiledCopy);
  CountGuards count;
  count(kernel.body);
  EXPECT_EQ(count.stores, 4) << ir::print(kernel);
}

/// The unrolled code stands there once, since the loop beside it may end sooner.
TEST(PartitionLoops, LeavesEndsOfLoopsBesideUnrolledCodeToThem) {
  expect_partitioned(
      "for o in 0..3 { for j in 0..4 unroll { B[o, j] = A[o, j] } "
      "for c in 0..16 { if likely(o*16 + c < 46) { for j in 0..4 vectorize { B[o*16 + c, j] = 1.0 "
      "} } } }",
      "for o in 0..3 { for j in 0..4 unroll { B[o, j] = A[o, j] } "
      "for c in 0..min(46 - o*16, 16) { for j in 0..4 vectorize { B[o*16 + c, j] = 1.0 } } }");
}

/// A group of four products is one instruction, and what is left of the last one another loop.
TEST(PartitionLoops, CutsGroupsThatAreUnrolled) {
  expect_partitioned(
      "for k in 0..3 { for i in 0..2 unroll { for q in 0..4 { if likely(k*4 + q < 9) { "
      "B[i, 0] = B[i, 0] + A[i, k*4 + q] } } } }",
      "for k in 0..2 { for i in 0..2 unroll { for q in 0..4 { B[i, 0] = B[i, 0] + A[i, k*4 + q] } "
      "} "
      "} for i in 0..2 unroll { B[i, 0] = B[i, 0] + A[i, 8] }");
}

TEST(PartitionLoops, CopiesAreBounded) {
  const ir::Kernel kernel = partitioned(kTiledSum);
  CountGuards count;
  count(kernel.body);
  EXPECT_LE(count.stores, 12) << ir::print(kernel);  // 4 of the first store, 8 of the second
}

TEST(PartitionLoops, ComputesTheSame) {
  const std::initializer_list<std::pair<int, int>> shapes = {
      {0, 0}, {1, 1}, {3, 7}, {4, 8}, {5, 9}, {8, 16}, {9, 31}, {13, 33}, {1, 40}, {12, 1}};
  expect_same_numbers(kTiledCopy, shapes);
  expect_same_numbers(kTiledSum, shapes);
  expect_same_numbers(R"(
    for i in 0..m { for jo in 0..floordiv(n + 4, 5) {
      allocate s: float32[5] scope(local)
      for ji in 0..5 { if likely(jo*5 + ji < n) { s[ji] = A[i, jo*5 + ji] } }
      for ji in 0..5 { if likely(jo*5 + ji < n) { B[i, jo*5 + ji] = s[ji] + 1.0 } }
    } })",
                      shapes);
  expect_same_numbers(R"(
    for i in 0..m { for jo in 0..5 { for ji in 0..floordiv(n + 4, 5) {
      if likely(jo*floordiv(n + 4, 5) + ji < n) {
        B[i, jo*floordiv(n + 4, 5) + ji] = A[i, jo*floordiv(n + 4, 5) + ji]
      }
    } } })",
                      shapes);
  expect_same_numbers(R"(
    for i in 0..m { for jo in 0..floordiv(n + 5, 6) { for jm in 0..2 { for ji in 0..3 {
      if likely(jo*6 + jm*3 + ji < n) { if likely(jm*3 + ji < 5) {
        B[i, jo*6 + jm*3 + ji] = A[i, jo*6 + jm*3 + ji]
      } }
    } } } })",
                      shapes);
}

/// Writes nests of tiled loops with the guards that splits need, some of them in pieces.
class RandomNest {
 public:
  explicit RandomNest(Random& random) : random_(random) {}

  std::string text() {
    add_dimension("i", "m");
    if (random_.chance(0.7)) add_dimension("j", "n");
    std::string store = "B[" + index_.at("i") + ", " +
                        (index_.count("j") > 0 ? index_.at("j") : std::string("0")) + "]";
    if (index_.count("j") == 0) guards_.push_back("0 < n");
    std::string read = store;
    read[0] = 'A';
    std::string body = store + " = " + read + "*2.0 + float32(" + loops_.back().substr(0, 2) + ")";
    random_.shuffle(guards_);
    while (!guards_.empty()) {
      std::string condition = guards_.back();
      guards_.pop_back();
      if (!guards_.empty() && random_.chance(0.3)) {
        condition += " && " + guards_.back();
        guards_.pop_back();
      }
      body = fmt::format("if likely({}) {{ {} }}", condition, body);
    }
    const bool reversed = random_.chance(0.2);
    for (size_t k = loops_.size(); k-- > 0;) {
      const std::string& loop = loops_[reversed ? loops_.size() - 1 - k : k];
      static const std::vector<std::string> kKinds = {"", "", "", " parallel", " vectorize"};
      body = fmt::format("for {} in 0..{}{} {{ {} }}", loop.substr(0, 2), loop.substr(3),
                         random_.pick(kKinds), body);
    }
    return body;
  }

 private:
  /// Loops over 0..size in one, two or three pieces; a constant size is guarded by the real one.
  void add_dimension(const std::string& name, const std::string& size) {
    const int pieces = random_.between(1, 3);
    std::string extent = random_.chance(0.3) ? std::to_string(random_.between(1, 20)) : size;
    if (extent != size) guards_.push_back("INDEX < " + size);
    std::string index;
    int64_t scale = 1;
    for (int k = pieces; k > 1; --k) {
      const std::string factor = std::to_string(random_.between(1, 6));
      const std::string var = name + std::to_string(k);
      loops_.push_back(fmt::format("{} {}", var, factor));
      index = fmt::format("{}{}{}{}", var, scale == 1 ? "" : fmt::format("*{}", scale),
                          index.empty() ? "" : " + ", index);
      scale *= std::stoi(factor);
    }
    const std::string whole = std::to_string(scale);
    loops_.push_back(name + "1 floordiv(" + extent + " + " + whole + " - 1, " + whole + ")");
    index = name + "1*" + whole + (index.empty() ? "" : " + ") + index;
    if (scale > 1) guards_.push_back("INDEX < " + extent);
    for (std::string& guard : guards_) {
      if (guard.starts_with("INDEX")) guard.replace(0, 5, index);
    }
    if (random_.chance(0.2)) guards_.push_back(name + "1 <= " + std::to_string(random_.below(4)));
    if (random_.chance(0.1)) guards_.push_back("2 <= " + index);
    index_[name] = index;
  }

  Random& random_;
  std::vector<std::string> loops_;  // "i1 EXTENT", innermost first within a dimension
  std::vector<std::string> guards_;
  std::map<std::string, std::string> index_;
};

TEST(PartitionLoopsFuzz, ComputesTheSame) {
  const uint64_t first = fuzz_seed();
  const int rounds = fuzz_rounds(250);
  int changed = 0;
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string body = RandomNest(random).text();
    SCOPED_TRACE("to repeat: KILN_FUZZ_ROUNDS=1 KILN_FUZZ_SEED=" + std::to_string(seed) + "\n" +
                 body);
    const ir::Kernel kernel = parse_kernel(kParameters, body);
    changed +=
        ir::equal_trees(partitioned(body).body, run_pass(pass_named("simplify").run, kernel).body)
            ? 0
            : 1;
    const int m = random.between(0, 14);
    const int n = random.between(0, 14);
    expect_same_numbers(body, {{m, n}, {n, m}, {random.between(10, 30), 12}});
  }
  if (rounds < 100) return;
  EXPECT_GT(changed, rounds / 2);
}

}  // namespace
}  // namespace kiln::testing
