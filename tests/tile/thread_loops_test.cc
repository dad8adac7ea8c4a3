// What loops of threads do not do of programs on tiles. Those that they do are run in
// tests/cuda/generated/attention_test.cc.
#include "compiler/tile/thread_loops.h"

#include <gtest/gtest.h>

#include "compiler/tile/text.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

void expect_refused(const std::string& text, std::string_view why) {
  SCOPED_TRACE(text);
  const tile::Program program = tile::parse(text);
  const Error error =
      expect_error([&] { tile::thread_loops(program, 4, false); }, ErrorKind::Unsupported, why);
  EXPECT_EQ(error.reason(), "TILE_FORM");
}

/// Stores what is made of a tile of 32 x 32 numbers.
std::string of_tile(std::string_view body, std::string_view result) {
  return fmt::format(R"(tile k(A: float32[32, 32], B: float32[1024], C: float32[32, 32] output) {{
  blocks i: 32 by 32, j: 32 by 32, l: 1024 by 1024
  view v0 = A[32, 32]
  view v1 = C[32, 32]
  view v2 = B[1024]
  t0 = load v0[i, j]
{}  store v1[i, j] = {}
}}
)",
                     body, result);
}

TEST(ThreadLoops, AreOfRowsAndColumns) {
  EXPECT_NE(tile::thread_loops(tile::parse(of_tile("  t1 = negative t0\n", "t1")), 4, false).body,
            nullptr);
  expect_refused(
      of_tile("  t1 = load v2[l]\n  t2 = reshape [32, 32] t1\n  t3 = add t0, t2\n", "t3"),
      "threads have rows and columns of a tile, which is made of other dimensions");
  expect_refused(of_tile("  t1 = load v2[l]\n  t2 = negative t1\n  t3 = add t2, t2\n"
                         "  t4 = reshape [32, 32] t3\n  t5 = add t4, t0\n",
                         "t5"),
                 "threads keep rows and columns of floats alone");
  expect_refused(of_tile("  t1 = reduce sum 0 t0\n  t2 = broadcast [32, 32] t1\n", "t2"),
                 "threads reduce rows alone");
  expect_refused(R"(tile k(A: float32[64], C: float32[64] output) {
  blocks i: 64 by 64
  view v0 = A[64]
  view v1 = C[64]
  t0 = load v0[i]
  store v1[i] = t0
}
)",
                 "threads store rows and columns");
}

TEST(ThreadLoops, MultiplyFloatsByWhatIsLoaded) {
  expect_refused(of_tile("  t1 = negative t0\n  t2 = constant float32[32, 32] 0\n"
                         "  t3 = mma t0, t1, t2\n",
                         "t3"),
                 "threads multiply by what is loaded");
  expect_refused(R"(tile k(A: int8[32, 32], C: int32[32, 32] output) {
  blocks i: 32 by 32, j: 32 by 32
  view v0 = A[32, 32]
  view v1 = C[32, 32]
  t0 = load v0[i, j]
  t1 = constant int32[32, 32] 0
  t2 = mma t0, t0, t1
  store v1[i, j] = t2
}
)",
                 "threads add up products of floats in float32");
}

TEST(ThreadLoops, GoAlongOneAxis) {
  expect_refused(of_tile("  t1 = for k: 64 by 32, m: 64 by 32 with t2 = t0 {\n"
                         "    t3 = negative t2\n    yield t3\n  }\n",
                         "t1"),
                 "threads go along one axis at a time");
}

TEST(ThreadLoops, HaveNoWindows) {
  expect_refused(R"(tile k(X: float32[32, 32], C: float32[32, 32] output) {
  blocks i: 32 by 32, j: 32 by 32
  view v0 = C[32, 32]
  t0 = window X[i, j] over i by j
  t1 = negative t0
  store v0[i, j] = t1
}
)",
                 "threads read a tile that none of them has");
}

}  // namespace
}  // namespace kiln::testing
