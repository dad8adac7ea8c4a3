#include "server/engine/shape_text.h"

#include <array>

#include <gtest/gtest.h>

namespace kiln::server {
namespace {

using Op = SizeExpr::Op;

const std::array<std::string, 2> kSizes = {"m", "n"};
const SizeExpr kM = SizeExpr::scalar(0);
const SizeExpr kN = SizeExpr::scalar(1);

std::string text(const SizeExpr& expr) { return text_of(expr, kSizes); }

TEST(ShapeText, WritesShapesAsUsersDo) {
  EXPECT_EQ(text(SizeExpr::constant(32)), "32");
  EXPECT_EQ(text(kN), "n");
  EXPECT_EQ(text(SizeExpr::binary(Op::Add, kM, SizeExpr::constant(1))), "m + 1");
  EXPECT_EQ(text(SizeExpr::binary(Op::FloorDiv, kN, SizeExpr::constant(2))), "floordiv(n, 2)");
}

TEST(ShapeText, PutsParenthesesWhereTheyMatter) {
  const SizeExpr sum = SizeExpr::binary(Op::Add, kM, kN);
  EXPECT_EQ(text(SizeExpr::binary(Op::Mul, sum, kN)), "(m + n)*n");
  EXPECT_EQ(text(SizeExpr::binary(Op::Sub, kM, sum)), "m - (m + n)");
  EXPECT_EQ(text(SizeExpr::binary(Op::Sub, sum, kM)), "m + n - m");
}

}  // namespace
}  // namespace kiln::server
