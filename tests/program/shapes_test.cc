#include "compiler/program/shapes.h"

#include <gtest/gtest.h>

#include "tests/program/build_program.h"
#include "tests/support/expect_error.h"

namespace kiln::program {
namespace {

using namespace kiln::testing;

ValueType float32(std::vector<int64_t> shape) { return {DType::Float32, std::move(shape)}; }

class ProgramShapes : public ::testing::Test {
 protected:
  ProgramShapes() : net_("net") {
    x_ = net_.input("x");
    w_ = net_.parameter("w");
    h_ = net_.node("h", kDense, {"x", "w"});
    y_ = net_.node("y", kRelu, {"h"});
    net_.program.outputs = {y_};
  }
  Shapes infer(const GivenTypes& given) {
    return infer_shapes(net_.program, graph_of(net_.program), given);
  }

  ProgramBuilder net_;
  ValueId x_, w_, h_, y_;
};

TEST_F(ProgramShapes, FollowTheGraph) {
  const Shapes shapes = infer({{x_, float32({3, 4})}, {w_, float32({4, 5})}});
  EXPECT_EQ(shapes.values[h_], float32({3, 5}));
  EXPECT_EQ(shapes.values[y_], float32({3, 5}));
}

TEST_F(ProgramShapes, BecomeConstantsOfTheKernels) {
  const Shapes shapes = infer({{x_, float32({3, 4})}, {w_, float32({4, 5})}});
  EXPECT_TRUE(shapes.kernels[0].definition.variables.empty());
}

TEST_F(ProgramShapes, TellAClashDeepInTheGraphInItsNames) {
  const ValueId v = net_.parameter("v");
  net_.program.outputs = {net_.node("z", kDense, {"y", "v"})};
  const Error error = expect_error(
      [&] {
        infer({{x_, float32({3, 4})}, {w_, float32({4, 5})}, {v, float32({6, 7})}});
      },
      ErrorKind::InvalidArgument,
      "argument v of z: dimension 0 is 6, but must be 5 (k, from dimension 1 of y)");
  EXPECT_EQ(error.notes(), (std::vector<std::string>{"in program net"}));
  EXPECT_EQ(error.location().line, 3);
}

TEST_F(ProgramShapes, TellWhatIsMissing) {
  expect_error(
      [&] {
        infer({{w_, float32({4, 5})}});
      },
      ErrorKind::InvalidArgument, "net needs input x, which h reads, but got none");
  expect_error(
      [&] {
        infer({{x_, float32({4, 5})}});
      },
      ErrorKind::InvalidArgument, "net needs parameter w, which h reads, but got none");
}

TEST_F(ProgramShapes, RefuseAnUpdateOfAnotherShape) {
  net_.update("w", "y");
  expect_error(
      [&] {
        infer({{x_, float32({3, 4})}, {w_, float32({4, 5})}});
      },
      ErrorKind::InvalidArgument,
      "parameter w is float32[4, 5], but becomes y, which is float32[3, 5]");
}

TEST_F(ProgramShapes, TellAParameterThatIsUpdatedButNotGiven) {
  net_.parameter("v");
  net_.update("v", "y");
  expect_error(
      [&] {
        infer({{x_, float32({3, 4})}, {w_, float32({4, 5})}});
      },
      ErrorKind::InvalidArgument, "net updates parameter v, but got none");
}

TEST_F(ProgramShapes, RefuseSizesThatTheyCannotFollow) {
  const ValueId e = net_.node(
      "e", "kernel e(X: float32[m, n]) -> (Y: float32[truncdiv(m, 2)]) { Y[i] = X[i, 0] }", {"x"});
  net_.program.outputs = {e};
  expect_error(
      [&] {
        infer({{x_, float32({4, 4})}});
      },
      ErrorKind::Unsupported,
      "a shape with truncdiv cannot be followed through a program; give that kernel "
      "constant sizes");
}

TEST_F(ProgramShapes, RefuseAReportOfSeveralNumbers) {
  net_.program.reports = {y_};
  expect_error(
      [&] {
        infer({{x_, float32({3, 4})}, {w_, float32({4, 5})}});
      },
      ErrorKind::InvalidArgument, "report y of net has shape (3, 5), but must be one number");
}

}  // namespace
}  // namespace kiln::program
