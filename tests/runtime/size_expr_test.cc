#include "runtime/core/size_expr.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kiln {
namespace {

using Op = SizeExpr::Op;
using testing::expect_error;

SizeExpr of(Op op, int64_t a, int64_t b) {
  return SizeExpr::binary(op, SizeExpr::constant(a), SizeExpr::constant(b));
}
int64_t value(Op op, int64_t a, int64_t b) { return of(op, a, b).evaluate({}); }

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(SizeExpr, ReadsScalarsByPosition) {
  const std::vector<int64_t> scalars = {3, 5};
  const SizeExpr sum =
      SizeExpr::binary(Op::Sub, SizeExpr::scalar(1),
                       SizeExpr::binary(Op::Mul, SizeExpr::scalar(0), SizeExpr::constant(7)));
  EXPECT_EQ(sum.evaluate(scalars), 5 - 3 * 7);
}

TEST(SizeExpr, DividesRoundingDown) {
  EXPECT_EQ(value(Op::FloorDiv, 7, 2), 3);
  EXPECT_EQ(value(Op::FloorDiv, -7, 2), -4);
  EXPECT_EQ(value(Op::FloorDiv, 7, -2), -4);
  EXPECT_EQ(value(Op::FloorDiv, -7, -2), 3);
  EXPECT_EQ(value(Op::FloorMod, 7, 2), 1);
  EXPECT_EQ(value(Op::FloorMod, -7, 2), 1);
  EXPECT_EQ(value(Op::FloorMod, 7, -2), -1);
  EXPECT_EQ(value(Op::FloorMod, kMin, -1), 0);
}

TEST(SizeExpr, ComparesAndCombines) {
  EXPECT_EQ(value(Op::Min, -1, 2), -1);
  EXPECT_EQ(value(Op::Max, -1, 2), 2);
  EXPECT_EQ(value(Op::Equal, 4, 4), 1);
  EXPECT_EQ(value(Op::Less, 4, 4), 0);
  EXPECT_EQ(value(Op::And, 1, 0), 0);
  EXPECT_EQ(value(Op::Or, 1, 0), 1);
  EXPECT_EQ(SizeExpr::negation(SizeExpr::constant(0)).evaluate({}), 1);
  EXPECT_EQ(SizeExpr::negation(SizeExpr::constant(9)).evaluate({}), 0);
}

TEST(SizeExpr, LeavesOutAConditionThatAlwaysHolds) {
  const SizeExpr always = SizeExpr::constant(1);
  const SizeExpr is_less =
      SizeExpr::binary(SizeExpr::Op::Less, SizeExpr::scalar(0), SizeExpr::scalar(1));
  EXPECT_EQ(SizeExpr::both(always, is_less), is_less);
  EXPECT_EQ(SizeExpr::both(is_less, always), is_less);
  EXPECT_EQ(SizeExpr::both(is_less, is_less),
            SizeExpr::binary(SizeExpr::Op::And, is_less, is_less));
}

TEST(SizeExpr, RefusesToOverflow) {
  expect_error([] { value(Op::Add, kMax, 1); }, ErrorKind::ResourceExhausted,
               "a size computed from 9223372036854775807 and 1 is past the range of int64");
  expect_error([] { value(Op::Mul, kMax, 2); }, ErrorKind::ResourceExhausted,
               "a size computed from 9223372036854775807 and 2 is past the range of int64");
  expect_error([] { value(Op::FloorDiv, kMin, -1); }, ErrorKind::ResourceExhausted,
               "a size computed from -9223372036854775808 and -1 is past the range of int64");
}

TEST(SizeExpr, RefusesToDivideByZero) {
  expect_error([] { value(Op::FloorDiv, 6, 0); }, ErrorKind::InvalidArgument,
               "a size divides 6 by zero");
  expect_error([] { value(Op::FloorMod, 6, 0); }, ErrorKind::InvalidArgument,
               "a size divides 6 by zero");
}

TEST(SizeExpr, KnowsWhatIsMalformed) {
  EXPECT_TRUE(of(Op::Add, 1, 2).is_well_formed(0));
  EXPECT_TRUE(SizeExpr::scalar(1).is_well_formed(2));
  EXPECT_FALSE(SizeExpr::scalar(2).is_well_formed(2));
  EXPECT_FALSE(SizeExpr::scalar(-1).is_well_formed(2));
  EXPECT_FALSE(SizeExpr{}.is_well_formed(0));
  EXPECT_FALSE((SizeExpr{{{Op::Constant, 1}, {Op::Add}}}).is_well_formed(0));
  EXPECT_FALSE((SizeExpr{{{Op::Constant, 1}, {Op::Constant, 1}}}).is_well_formed(0));
  EXPECT_FALSE((SizeExpr{{{Op::Not}}}).is_well_formed(0));
}

TEST(SizeExpr, DescribesItselfAsAPersonWrites) {
  const std::vector<std::string> names = {"m", "n"};
  const SizeExpr sum = SizeExpr::binary(Op::Add, SizeExpr::scalar(0), SizeExpr::scalar(1));
  EXPECT_EQ(SizeExpr::binary(Op::Mul, sum, SizeExpr::constant(4)).describe(names), "(m + n)*4");
  EXPECT_EQ(SizeExpr::binary(Op::FloorDiv, sum, SizeExpr::constant(32)).describe(names),
            "floordiv(m + n, 32)");
  EXPECT_EQ(SizeExpr::binary(Op::Sub, SizeExpr::scalar(0), sum).describe(names), "m - (m + n)");
}

}  // namespace
}  // namespace kiln
