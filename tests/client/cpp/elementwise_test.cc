#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::test {
namespace {

/// Arithmetic of whole tensors, as the kernel file that it makes.
class Elementwise : public ::testing::Test {
 protected:
  const Tensor A_ = placeholder({3, 4}, float32, "A");
  const Tensor B_ = placeholder({4}, float32, "B");
  const Tensor C_ = placeholder({3, 1}, float32, "C");

  static std::string text(const std::vector<Tensor>& arguments) {
    return Definition(arguments).text();
  }
};

TEST_F(Elementwise, StretchesAsNumpyDoes) {
  EXPECT_EQ(text({A_, B_, C_, A_ * B_ + C_}),
            "kernel main(A: float32[3, 4], B: float32[4], C: float32[3, 1]) -> (T_add: float32[3, "
            "4]) {\n"
            "  T_multiply: float32[3, 4]\n"
            "  T_multiply[i0, i1] = A[i0, i1] * B[i1]\n"
            "  T_add[i0, i1] = T_multiply[i0, i1] + C[i0, 0]\n"
            "}\n");
}

TEST_F(Elementwise, TakesNumbersOnEitherSide) {
  EXPECT_EQ(text({B_, 1 - B_ / 2}),
            "kernel main(B: float32[4]) -> (T_subtract: float32[4]) {\n"
            "  T_divide: float32[4]\n"
            "  T_divide[i0] = B[i0] / 2.0\n"
            "  T_subtract[i0] = 1.0 - T_divide[i0]\n"
            "}\n");
}

TEST_F(Elementwise, HasTheFunctionsOfTheOperatorTable) {
  const Tensor Y = select(B_ > 0.5, exp(-B_), max(0, pow(B_, 2)));
  EXPECT_EQ(text({B_, Y}),
            "kernel main(B: float32[4]) -> (T_select: float32[4]) {\n"
            "  T_greater: bool[4]\n"
            "  T_greater[i0] = B[i0] > 0.5\n"
            "  T_negative: float32[4]\n"
            "  T_negative[i0] = -B[i0]\n"
            "  T_exp: float32[4]\n"
            "  T_exp[i0] = exp(T_negative[i0])\n"
            "  T_pow: float32[4]\n"
            "  T_pow[i0] = pow(B[i0], 2.0)\n"
            "  T_max: float32[4]\n"
            "  T_max[i0] = max(0.0, T_pow[i0])\n"
            "  T_select[i0] = select(T_greater[i0], T_exp[i0], T_max[i0])\n"
            "}\n");
}

TEST_F(Elementwise, TakesWhatDefinitionsMake) {
  const Definition twice =
      parse("kernel twice(X: float32[]) -> (Y: float32[]) { Y[] = X[] * 2 }", "test.kiln").front();
  EXPECT_EQ(text({B_, B_ + twice(B_)}),
            "kernel main(B: float32[4]) -> (T_add: float32[4]) {\n"
            "  Y: float32[4]\n"
            "  Y[i0] = B[i0] * 2.0\n"
            "  T_add[i0] = B[i0] + Y[i0]\n"
            "}\n");
}

TEST_F(Elementwise, RefusesShapesThatDoNotFit) {
  const Tensor D = placeholder({3}, float32, "D");
  expect_client_error([&] { A_ + D; }, ErrorKind::InvalidArgument, "BROADCAST",
                      "add of tensors: A of shape (3, 4) and D of shape (3,) do not broadcast to "
                      "one shape");
}

TEST_F(Elementwise, ExpressionsGrowInPlace) {
  const Tensor S = compute({3},
                           [&](Expr i) {
                             Expr total = 0.0;
                             for (int j = 0; j < 2; ++j)
                               total += A_(i, j);
                             total *= 2;
                             return total;
                           },
                           {"S", {"i"}});
  EXPECT_EQ(text({A_, S}),
            "kernel main(A: float32[3, 4]) -> (S: float32[3]) {\n"
            "  S[i] = (0.0 + A[i, 0] + A[i, 1]) * 2.0\n"
            "}\n");
}

}  // namespace
}  // namespace kiln::test
