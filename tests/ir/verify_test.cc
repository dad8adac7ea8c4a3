#include "compiler/ir/verify.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "tests/support/expect_error.h"
#include "tests/support/parse_ir.h"

namespace kiln::testing {
namespace {

using ir::Expr;
using ir::index;
using ir::Stmt;

const ir::Type kFloat{DType::Float32, 1};

class Verify : public ::testing::Test {
 protected:
  void expect_breach(std::string_view message) {
    const Error error = expect_error([&] { ir::verify(kernel_); }, ErrorKind::Internal,
                                     "internal error: " + std::string(message));
    EXPECT_EQ(error.reason(), "VERIFY");
  }

  /// A[position] = 1.0
  Stmt store(const Expr& position) const {
    return ir::Store::make(kernel_.parameters[0], {position}, ir::constant(kFloat, 1));
  }

  ir::Kernel kernel_ =
      parse_kernel("A: float32[n], B: float32[n, n]", "for i in 0..n { A[i] = B[i, 0] }");
};

TEST_F(Verify, AcceptsAKernel) { EXPECT_NO_THROW(ir::verify(kernel_)); }

TEST_F(Verify, AnUnboundVariable) {
  kernel_.body = store(ir::Var::make("i"));
  expect_breach("variable i is used where it is not bound");
}

TEST_F(Verify, AVariableAfterItsLoop) {
  const ir::VarRef i = ir::Var::make("i");
  kernel_.body =
      ir::Block::make({ir::For::make(i, index(4), ir::LoopKind::Serial, store(i)), store(i)});
  expect_breach("variable i is used where it is not bound");
}

TEST_F(Verify, ALoopInALoopOfTheSameVariable) {
  const ir::VarRef i = ir::Var::make("i");
  const Stmt inner = ir::For::make(i, index(4), ir::LoopKind::Serial, store(i));
  kernel_.body = ir::For::make(i, index(4), ir::LoopKind::Serial, inner);
  expect_breach("variable i is bound twice");
}

TEST_F(Verify, AVariableThatIsNoIndex) {
  kernel_.sizes.push_back(ir::Var::make("x", kFloat));
  expect_breach("variable x is bound but is no int64");
}

TEST_F(Verify, ABufferWithoutADeclaration) {
  const auto buffer = ir::Buffer::make("s1", DType::Float32, {index(4)}, ir::Scope::Local);
  kernel_.body = ir::Store::make(buffer, {index(0)}, ir::constant(kFloat, 1));
  expect_breach("buffer s1 is used where it is not declared");
}

TEST_F(Verify, ABufferDeclaredTwice) {
  kernel_.body = ir::Allocate::make(kernel_.parameters[0], kernel_.body);
  expect_breach("buffer A is declared twice");
}

TEST_F(Verify, ARankThatDoesNotFit) {
  kernel_.body =
      ir::Store::make(kernel_.parameters[0], {index(0), index(0)}, ir::constant(kFloat, 1));
  expect_breach("buffer A has 1 dimensions but is accessed with 2 indices");
}

TEST_F(Verify, AStoreToAnInput) {
  kernel_.body =
      ir::Store::make(kernel_.parameters[1], {index(0), index(0)}, ir::constant(kFloat, 1));
  expect_breach("input B is stored to");
}

TEST_F(Verify, OperandsThatTheOperatorDoesNotTake) {
  const Expr sum = ir::Binary::make(ir::Operator::And, index(1), index(2));
  kernel_.body = store(sum);
  expect_breach("logical_and takes bools, but got int64 and int64 in 1 && 2");
}

TEST_F(Verify, AConstantThatDoesNotFit) {
  const Expr constant = ir::IntImm::make({DType::Int8, 1}, 200);
  kernel_.body = store(ir::Cast::make(ir::kIndexType, constant));
  expect_breach("constant 200 does not fit in int8");
}

TEST_F(Verify, AReductionOfTheDefinition) {
  const ir::VarRef k = ir::Var::make("k");
  const Expr sum = ir::Reduce::make({.combiner = ir::Combiner::Sum, .reducer = nullptr},
                                    {ir::constant(kFloat, 1)}, nullptr, {}, {k});
  kernel_.body = ir::Store::make(kernel_.parameters[0], {index(0)}, sum);
  expect_breach("sum[k](1.0) is a reduction of the definition");
}

TEST_F(Verify, AReadOfTheDefinition) {
  const Expr read = ir::TensorRead::make(kFloat, 2, 0, {index(1)});
  kernel_.body = ir::Store::make(kernel_.parameters[0], {index(0)}, read);
  expect_breach("stage2.v0[1] reads a tensor of the definition");
}

TEST_F(Verify, ABarrierOutsideThreads) {
  kernel_.body = ir::Block::make({kernel_.body, ir::Barrier::make()});
  expect_breach("a barrier stands outside the loops over threads");
}

TEST_F(Verify, ACheckThatTheKernelDoesNotHave) {
  kernel_.body = ir::Check::make(index(0), index(1), 2);
  expect_breach("check #2 is not one of the 0 of the kernel");
}

TEST_F(Verify, OutputsThatDoNotMatchTheParameters) {
  kernel_.is_output.pop_back();
  expect_breach("kernel f has 2 parameters but says of 1 whether they are outputs");
}

}  // namespace
}  // namespace kiln::testing
