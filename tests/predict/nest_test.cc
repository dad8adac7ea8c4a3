#include "compiler/predict/nest.h"

#include <gtest/gtest.h>

#include "tests/support/parse_ir.h"

namespace kiln::predict {
namespace {

using testing::parse_kernel;

constexpr int64_t kRegisters = 29 * 64;

double count_of(const Nest& nest, ir::Operator op) {
  double count = 0;
  for (const Operations& operations : nest.operations)
    count += operations.op == op ? operations.count : 0;
  return count;
}

TEST(Nest, HasExtentsAndStridesForTheSizesGiven) {
  const ir::Kernel kernel = parse_kernel("A: float32[m, n], B: float32[m, n]",
                                         R"(for i in 0..m { for j in 0..floordiv(n, 16) {
      B[ramp(i*n + j*16, 1, 16)] = A[ramp(i*n + j*16, 1, 16)] * broadcast(2.0, 16) } })");
  const Nest nest = nest_of(kernel, std::vector<int64_t>{10, 320}, kRegisters);
  ASSERT_EQ(nest.inner.size(), 1U);
  const Nest& rows = nest.inner[0];
  EXPECT_EQ(rows.extent, 10);
  ASSERT_EQ(rows.inner.size(), 1U);
  const Nest& columns = rows.inner[0];
  EXPECT_EQ(columns.extent, 20);
  EXPECT_EQ(count_of(columns, ir::Operator::Mul), 1);
  ASSERT_EQ(columns.touches.size(), 2U);
  for (const Touch& touch : columns.touches) {
    EXPECT_EQ(touch.lanes, 16);
    EXPECT_FALSE(touch.is_gather);
    EXPECT_EQ(touch.strides, (std::vector<int64_t>{320, 16}));
    EXPECT_EQ(touch.buffer_bytes, 10 * 320 * 4);
  }
}

/// Those of windows that overlap are; what joins two of them is part of the second.
TEST(Nest, AConditionOfAnElementIsComputedOnce) {
  const ir::Kernel kernel = parse_kernel("A: float32[64], C: float32[64]",
                                         R"(for i in 0..32 {
      C[i*2] = if_then_else(i >= 1 && i < 31, A[i - 1], 0.0)
      C[i*2 + 1] = if_then_else(i >= 1 && i < 30, A[i - 1], 0.0) })");
  const Nest nest = nest_of(kernel, {}, kRegisters);
  ASSERT_EQ(nest.inner.size(), 1U);
  EXPECT_EQ(count_of(nest.inner[0], ir::Operator::GreaterEqual), 1);
  EXPECT_EQ(count_of(nest.inner[0], ir::Operator::Less), 2);
  EXPECT_EQ(count_of(nest.inner[0], ir::Operator::And), 0);
}

TEST(Nest, AProductThatIsAddedIsOneOperation) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], B: float32[n], C: float32[n]",
                                         "for i in 0..n { C[i] = C[i] + A[i]*B[i] }");
  const Nest nest = nest_of(kernel, std::vector<int64_t>{10}, kRegisters);
  EXPECT_EQ(count_of(nest.inner[0], ir::Operator::Add), 0);
  EXPECT_EQ(count_of(nest.inner[0], ir::Operator::Mul), 1);
}

TEST(Nest, SumsInRegistersAreNoMemoryButAChain) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], C: float32[1]",
                                         R"(allocate s: float32[16] scope(local) {
      for i in 0..floordiv(n, 32) {
        s[ramp(0, 1, 16)] = s[ramp(0, 1, 16)] + A[ramp(i*32, 1, 16)]
        s[ramp(0, 1, 16)] = s[ramp(0, 1, 16)] + A[ramp(i*32 + 16, 1, 16)] }
      C[0] = s[0] })");
  const Nest nest = nest_of(kernel, std::vector<int64_t>{3200}, kRegisters);
  ASSERT_EQ(nest.inner.size(), 1U);
  EXPECT_EQ(nest.inner[0].touches.size(), 2U);
  EXPECT_EQ(nest.inner[0].chain.updates, 2);
  // Registers for less than that: the sums are loaded and stored.
  EXPECT_EQ(nest_of(kernel, std::vector<int64_t>{3200}, 32).inner[0].touches.size(), 6U);
}

TEST(Nest, WhatAnIterationHasLoadedItHas) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], C: float32[2, n]", R"(
    for i in 0..n { C[i] = A[i]*A[i]  C[n + i] = A[i] + 1.0 })");
  const Nest nest = nest_of(kernel, std::vector<int64_t>{100}, kRegisters);
  EXPECT_EQ(nest.inner[0].touches.size(), 3U);  // one load, two stores
}

TEST(Nest, SizesDecideBranches) {
  const ir::Kernel kernel = parse_kernel("A: float32[n]", R"(
    if n < 100 { for i in 0..n { A[i] = 1.0 } } else { for i in 0..floordiv(n, 2) { A[i] = 2.0 } })");
  EXPECT_EQ(nest_of(kernel, std::vector<int64_t>{10}, kRegisters).inner[0].extent, 10);
  EXPECT_EQ(nest_of(kernel, std::vector<int64_t>{200}, kRegisters).inner[0].extent, 100);
}

TEST(Nest, ALoopOverNothingIsNone) {
  const ir::Kernel kernel = parse_kernel("A: float32[n]", "for i in 0..n { A[i] = 1.0 }");
  EXPECT_TRUE(nest_of(kernel, std::vector<int64_t>{0}, kRegisters).inner.empty());
}

TEST(Nest, KnowsGathersByTheirLanes) {
  const ir::Kernel kernel = parse_kernel("A: float32[n], C: float32[n]", R"(
    for i in 0..floordiv(n, 128) { C[ramp(i*16, 1, 16)] = A[ramp(i*128, 8, 16)] })");
  const Nest nest = nest_of(kernel, std::vector<int64_t>{1280}, kRegisters);
  const std::vector<Touch>& touches = nest.inner[0].touches;
  ASSERT_EQ(touches.size(), 2U);
  const Touch& load = touches[0].is_store ? touches[1] : touches[0];
  EXPECT_TRUE(load.is_gather);
  EXPECT_EQ(load.lane_stride, 8);
}

}  // namespace
}  // namespace kiln::predict
