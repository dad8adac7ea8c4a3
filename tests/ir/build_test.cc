#include "compiler/ir/build.h"

#include <limits>

#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "runtime/core/error.h"

namespace kiln::testing {
namespace {

using ir::Expr;
using ir::index;

TEST(Build, FoldsConstantsAndPlainIdentities) {
  const Expr n = ir::Var::make("n");
  const std::pair<Expr, const char*> rows[] = {
      {n + 0, "n"},
      {index(0) + n, "n"},
      {n + 2 - 2, "n"},
      {n - 1 + 3, "n + 2"},
      {n + 1 - 3, "n - 2"},
      {n - n, "0"},
      {n * 1, "n"},
      {n * 0, "0"},
      {index(3) * index(4), "12"},
      {ir::floordiv(n, index(1)), "n"},
      {ir::floordiv(index(-7), index(2)), "-4"},
      {ir::floormod(index(-7), index(2)), "1"},
      {ir::ceildiv(n, index(32)), "floordiv(n + 31, 32)"},
      {ir::ceildiv(index(33), index(32)), "2"},
      {ir::min(n, n), "n"},
      {ir::max(index(2), index(5)), "5"},
      {ir::less(index(2), index(5)), "true"},
      {ir::logical_and(ir::less(n, index(5)), ir::boolean(true)), "n < 5"},
      {ir::logical_or(ir::boolean(true), ir::less(n, index(5))), "true"},
      {ir::logical_not(ir::logical_not(ir::less(n, index(5)))), "n < 5"},
  };
  for (const auto& [expr, text] : rows)
    EXPECT_EQ(ir::print(expr), text);
}

TEST(Build, LeavesWhatWouldOverflow) {
  const Expr most = index(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ir::print(most + 1), "9223372036854775807 + 1");
  EXPECT_EQ(ir::print(most * 2), "9223372036854775807*2");
}

TEST(Build, DoesNotFoldFloats) {
  const Expr one = ir::constant({DType::Float32, 1}, 1);
  EXPECT_EQ(ir::print(one * one), "1.0*1.0");
}

TEST(Build, IdentitiesOfCombiners) {
  using ir::Combiner;
  const auto text = [](Combiner combiner, DType type) {
    return ir::print(ir::identity_of(combiner, type));
  };
  EXPECT_EQ(text(Combiner::Sum, DType::Float32), "0.0");
  EXPECT_EQ(text(Combiner::Prod, DType::Int64), "1");
  EXPECT_EQ(text(Combiner::Max, DType::Float32), "-inf");
  EXPECT_EQ(text(Combiner::Min, DType::Float32), "inf");
  EXPECT_EQ(text(Combiner::Max, DType::Int8), "-128:int8");
  EXPECT_EQ(text(Combiner::Min, DType::Int64), "9223372036854775807");
  EXPECT_EQ(text(Combiner::Min, DType::UInt64), "18446744073709551615:uint64");
  EXPECT_EQ(text(Combiner::All, DType::Bool), "true");
  EXPECT_EQ(text(Combiner::Max, DType::Float8E4M3FN), "-448.0:float8_e4m3fn");
}

}  // namespace
}  // namespace kiln::testing
