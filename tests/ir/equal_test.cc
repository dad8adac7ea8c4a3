#include "compiler/ir/equal.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "tests/support/parse_ir.h"

namespace kiln::testing {
namespace {

using ir::Expr;

TEST(Equal, LoopVariablesAreTheSameWhenTheyStandInTheSamePlace) {
  const ir::Kernel a = parse_kernel("A: float32[n]", "for i in 0..n { A[i] = 1.0 }");
  const ir::Kernel b = parse_kernel("B: float32[m]", "for j in 0..m { B[j] = 1.0 }");
  EXPECT_TRUE(ir::equal_kernels(a, b));
}

TEST(Equal, TellsApartWhatDiffers) {
  const char* parameters = "A: float32[m, n]";
  const ir::Kernel kernel =
      parse_kernel(parameters, "for i in 0..m { for j in 0..n { A[i, j] = 1.0 } }");
  for (const char* body : {
           "for i in 0..m { for j in 0..n { A[j, i] = 1.0 } }",
           "for i in 0..n { for j in 0..m { A[i, j] = 1.0 } }",
           "for i in 0..m { for j in 0..n { A[i, j] = 2.0 } }",
           "for i in 0..m { for j in 0..n { A[i, j + 0] = 1.0 } }",
           "for i in 0..m parallel { for j in 0..n { A[i, j] = 1.0 } }",
           "for i in 0..m { for j in 0..n { if i < j { A[i, j] = 1.0 } } }",
           "for i in 0..m { for j in 0..n { A[i, j] = 1.0  A[i, j] = 1.0 } }",
       }) {
    EXPECT_FALSE(ir::equal_kernels(kernel, parse_kernel(parameters, body))) << body;
  }
  EXPECT_FALSE(ir::equal_kernels(
      kernel,
      parse_kernel("A: float16[m, n]", "for i in 0..m { for j in 0..n { A[i, j] = 1.0 } }")));
}

TEST(Equal, FreeVariablesAreComparedByIdentity) {
  const Expr i = ir::Var::make("i");
  const Expr also_i = ir::Var::make("i");
  EXPECT_TRUE(ir::equal_trees(i + 1, i + 1));
  EXPECT_FALSE(ir::equal_trees(i + 1, also_i + 1));
}

TEST(Equal, FloatsAreComparedByTheirBits) {
  const ir::Type type{DType::Float32, 1};
  EXPECT_FALSE(ir::equal_trees(ir::constant(type, 0.0), ir::constant(type, -0.0)));
  const Expr nan = ir::constant(type, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(ir::equal_trees(nan, ir::constant(type, std::numeric_limits<double>::quiet_NaN())));
}

TEST(Hash, IsTheSameForEqualTrees) {
  const Expr i = ir::Var::make("i");
  EXPECT_EQ(ir::hash_of(ir::floordiv(i + 1, ir::index(3))),
            ir::hash_of(ir::floordiv(i + 1, ir::index(3))));
  EXPECT_NE(ir::hash_of(i + 1), ir::hash_of(i + 2));
}

}  // namespace
}  // namespace kiln::testing
