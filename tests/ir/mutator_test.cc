#include "compiler/ir/mutator.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "tests/support/parse_ir.h"

namespace kiln::testing {
namespace {

using ir::Expr;
using ir::Stmt;

const char* const kText =
    "for i in 0..n { allocate s: float32[4] scope(local) for j in 0..4 { if likely(i + j < n) "
    "{ s[j] = A[i]*2.0 } else { check i < n #0 } } A[i] = if_then_else(i < 3, s[0], 1.0) }";

TEST(Mutator, GivesTheSameNodeBackWhenNothingChanges) {
  const ir::Kernel kernel = parse_kernel("A: float32[n]", kText);
  EXPECT_EQ(ir::Mutator()(kernel.body), kernel.body);
}

TEST(Mutator, RebuildsOnlyTheWayToAChange) {
  const ir::Kernel kernel = parse_kernel(
      "A: float32[n], B: float32[n]", "for i in 0..n { A[i] = 1.0 } for j in 0..n { B[j] = 2.0 }");
  class Twos : public ir::Mutator {
    using Mutator::visit;
    Expr visit(const ir::FloatImm& imm) override {
      return imm.value == 2 ? ir::FloatImm::make(imm.type, 3) : Expr(&imm);
    }
  };
  const Stmt after = Twos()(kernel.body);
  EXPECT_EQ(ir::as<ir::Block>(after)->body[0], ir::as<ir::Block>(kernel.body)->body[0]);
  EXPECT_NE(ir::as<ir::Block>(after)->body[1], ir::as<ir::Block>(kernel.body)->body[1]);
}

TEST(Substitute, ReplacesUsesOfAVariable) {
  const ir::Kernel kernel = parse_kernel("A: float32[n]", "for i in 0..n { A[i] = float32(i*n) }");
  const ir::For* loop = ir::as<ir::For>(kernel.body);
  EXPECT_EQ(ir::print(ir::substitute(loop->body, {{loop->var, Expr(kernel.sizes[0]) - 1}})),
            "A[n - 1] = float32((n - 1)*n)\n");
}

TEST(FreshCopy, HasVariablesAndBuffersOfItsOwn) {
  ir::Kernel kernel = parse_kernel("A: float32[n]", kText);
  const Stmt copy = ir::fresh_copy(kernel.body);
  const ir::For* before = ir::as<ir::For>(kernel.body);
  const ir::For* after = ir::as<ir::For>(copy);
  EXPECT_NE(before->var, after->var);
  EXPECT_FALSE(ir::uses_var(copy, before->var));
  EXPECT_NE(ir::as<ir::Allocate>(before->body)->buffer, ir::as<ir::Allocate>(after->body)->buffer);
  EXPECT_TRUE(ir::equal_trees(kernel.body, copy));
}

TEST(ReadsMemory, FindsALoadInside) {
  const ir::Kernel kernel =
      parse_kernel("A: int64[n]", "A[0] = if_then_else(0 < n, A[n - 1] + 1, 2)  A[1] = n*2");
  const auto value = [&](size_t i) {
    return ir::as<ir::Store>(ir::as<ir::Block>(kernel.body)->body[i])->value;
  };
  EXPECT_TRUE(ir::reads_memory(value(0)));
  EXPECT_FALSE(ir::reads_memory(value(1)));
}

}  // namespace
}  // namespace kiln::testing
