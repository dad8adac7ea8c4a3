#include "compiler/ir/flushed_power.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"

namespace kiln::testing {
namespace {

using ir::Expr;

TEST(FlushedPower, IsAChoiceThatIsFoundAgain) {
  const Expr exponent = ir::Var::make("x", {DType::Float32, 1});
  const Expr power = ir::flushed_power(exponent);
  EXPECT_EQ(ir::print(power), "select(x < -126.0, 0.0, exp2(x))");
  EXPECT_EQ(ir::find_flushed_power(*ir::as<ir::Call>(power)), exponent);
}

TEST(FlushedPower, OfOtherChoicesThereIsNone) {
  const Expr x = ir::Var::make("x", {DType::Float32, 1});
  const Expr wide = ir::Var::make("w", {DType::Float64, 1});
  const auto number = [](const Expr& like, double value) {
    return ir::constant(like->type, value);
  };
  const auto chosen = [](const Expr& condition, const Expr& otherwise, const Expr& value) {
    return ir::operation(ir::Operator::Select, {condition, otherwise, value});
  };
  const auto power = [](const Expr& of) { return ir::operation(ir::Operator::Exp2, {of}); };
  for (const Expr& expr : {
           chosen(ir::less(x, number(x, -125)), number(x, 0), power(x)),
           chosen(ir::less_equal(x, number(x, -126)), number(x, 0), power(x)),
           chosen(ir::less(x, number(x, -126)), number(x, -0.0), power(x)),
           chosen(ir::less(x, number(x, -126)), number(x, 0), power(x + x)),
           chosen(ir::less(wide, number(wide, -126)), number(wide, 0), power(wide)),
           power(x),
       }) {
    EXPECT_EQ(ir::find_flushed_power(*ir::as<ir::Call>(expr)), nullptr) << ir::print(expr);
  }
}

}  // namespace
}  // namespace kiln::testing
