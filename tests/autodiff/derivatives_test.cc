#include <array>

#include <gtest/gtest.h>

#include "compiler/language/tables/operator.h"
#include "tests/autodiff/gradient_check.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

using language::Operator;
using language::TypeRule;

/// Where an operator has a derivative: the values of its operands, and away from corners.
struct Domain {
  double least = -0.9;
  double most = 0.9;
};

Domain domain_of(Operator op) {
  switch (op) {
    case Operator::Log:
    case Operator::Log2:
    case Operator::Log10:
    case Operator::Sqrt:
    case Operator::Rsqrt:
    case Operator::Cbrt:
    case Operator::Pow:
    case Operator::Div:
    case Operator::FloorDiv:
    case Operator::FloorMod:
    case Operator::Fmod:
    case Operator::Floor:
    case Operator::Ceil:
    case Operator::Trunc:
    case Operator::Round: return {0.55, 0.95};
    case Operator::Acosh: return {1.5, 2.5};
    default: return {};
  }
}

bool takes_floats(const language::OperatorRow& row) {
  return row.type_rule == TypeRule::Same || row.type_rule == TypeRule::SameFloat;
}

std::string call_text(const language::OperatorRow& row) {
  static constexpr std::array<std::string_view, 3> kOperands = {"A[i]", "B[i]", "C[i]"};
  std::string operands;
  for (int i = 0; i < row.arity; ++i)
    operands += (i == 0 ? "" : ", ") + std::string(kOperands[static_cast<size_t>(i)]);
  if (!row.infix.empty()) return "A[i] " + std::string(row.infix) + " B[i]";
  return std::string(row.spelling) + "(" + operands + ")";
}

std::string kernel_text(std::string_view expression) {
  return "kernel k(A: float64[n], B: float64[n], C: float64[n]) -> (Y: float64[n]) {\n  Y[i] = " +
         std::string(expression) + "\n}\n";
}

/// Each row of the operator table that takes floating numbers and gives one.
TEST(Derivatives, OfEveryOperatorAreCentralDifferences) {
  int seen = 0;
  for (const language::OperatorRow& row : language::operator_table()) {
    if (!takes_floats(row)) continue;
    const Domain domain = domain_of(row.op);
    expect_gradients({.text = kernel_text(call_text(row)),
                      .sizes = {{"n", 5}},
                      .values = {},
                      .least = domain.least,
                      .most = domain.most});
    // Of steps only those that are nowhere flat are worth a second look.
    expect_second_gradients({.text = kernel_text(call_text(row)),
                             .sizes = {{"n", 3}},
                             .values = {},
                             .least = domain.least,
                             .most = domain.most});
    ++seen;
  }
  EXPECT_GE(seen, 47);
}

TEST(Derivatives, OfChoices) {
  expect_gradients({.text = kernel_text("select(A[i] > 0, A[i] * B[i], C[i] * C[i])"),
                    .sizes = {{"n", 6}},
                    .values = {}});
  expect_gradients({.text = kernel_text("if_then_else(A[i] > 0, A[i] * B[i], C[i] * C[i])"),
                    .sizes = {{"n", 6}},
                    .values = {}});
}

TEST(Derivatives, OfCasts) {
  EXPECT_EQ(gradient_text("kernel k(X: float32[n]) -> (Y: float64[n]) {\n"
                          "  Y[i] = float64(X[i]) * 2\n}\n"),
            "kernel k(X: float32[n], Y_head: float64[n]) -> (X_grad: float32[n]) {\n"
            "  X_grad[i] = float32(Y_head[i] * 2.0)\n}\n");
}

/// relu'(0) = 0, |0|' = 0, and of equal operands the first gets all.
TEST(Derivatives, AtCorners) {
  const auto text_of = [](std::string_view expression) {
    return gradient_text("kernel k(X: float32[n]) -> (Y: float32[n]) {\n  Y[i] = " +
                         std::string(expression) + "\n}\n");
  };
  EXPECT_EQ(text_of("max(X[i], 0)"),
            "kernel k(X: float32[n], Y_head: float32[n]) -> (X_grad: float32[n]) {\n"
            "  Y: float32[n]\n"
            "  Y[i] = max(X[i], 0.0)\n"
            "  X_grad[i] = select(Y[i] > 0.0, Y_head[i], 0.0)\n}\n");
  EXPECT_EQ(
      text_of("abs(X[i])"),
      "kernel k(X: float32[n], Y_head: float32[n]) -> (X_grad: float32[n]) {\n"
      "  X_grad[i] = select(X[i] > 0.0, Y_head[i], select(X[i] < 0.0, -Y_head[i], 0.0))\n}\n");
}

/// The result is there already, so nothing is computed twice.
TEST(Derivatives, UseTheResult) {
  EXPECT_EQ(gradient_text("kernel k(X: float32[n]) -> (Y: float32[n]) { Y[i] = exp(X[i]) }"),
            "kernel k(X: float32[n], Y_head: float32[n]) -> (X_grad: float32[n]) {\n"
            "  Y: float32[n]\n"
            "  Y[i] = exp(X[i])\n"
            "  X_grad[i] = Y_head[i] * Y[i]\n}\n");
}

}  // namespace
}  // namespace kiln::testing
