#include <gtest/gtest.h>

#include "compiler/ir/parse.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

void expect_syntax_error(const std::string& text, std::string_view message) {
  const Error error = expect_error([&] { ir::parse(text); }, ErrorKind::InvalidArgument, message);
  EXPECT_EQ(error.reason(), "SYNTAX") << text;
}

/// The error of an expression at `fn f(A: float32[n], I: int64[n]) { A[0] = ...`, column 41 on.
void expect_value_error(const std::string& value, std::string_view message) {
  expect_syntax_error("fn f(A: float32[n], I: int64[n]) { A[0] = " + value + " }", message);
}

TEST(ParseErrors, OfStatements) {
  expect_syntax_error("", "line 1, column 1: expected 'fn', but the text ends");
  expect_syntax_error("fn f() {", "line 1, column 9: expected a statement, but got ''");
  expect_syntax_error("fn f() {\n  for i in 1..4 { }\n}",
                      "line 2, column 12: expected '0', but got '1'");
  expect_syntax_error("fn f() { for for in 0..4 { } }",
                      "line 1, column 14: 'for' is a word of the language, not the name of a loop "
                      "variable");
  expect_syntax_error("fn f(A: float32[n]) { for n in 0..4 { } }",
                      "line 1, column 27: 'n' is the name of something around it");
  expect_syntax_error("fn f() { for i in 0..4 bind { } }",
                      "line 1, column 14: there is no thread axis 'i'");
  expect_syntax_error("fn f(A: float[n]) { }", "line 1, column 9: there is no type 'float'");
  expect_syntax_error("fn f(A: int8[n], A: int8[n]) { }", "line 1, column 18: 'A' is named twice");
  expect_syntax_error("fn f() { } }", "line 1, column 12: expected the end, but got '}'");
  expect_syntax_error("fn f(n: int64[1]) { if n[0] { } }",
                      "line 1, column 24: expected bool, but got int64");
  expect_syntax_error("fn f() { $ }", "line 1, column 10: '$' means nothing here");
  expect_syntax_error("fn f() { allocate s: int8[2] scope(far) }",
                      "line 1, column 36: a scope is global, shared, warp or local, but got 'far'");
  expect_syntax_error("fn f() { } #1: stage 0, tensor 0, dimension 0",
                      "line 1, column 13: expected check #0");
  expect_syntax_error("fn f(A: int8[n] strides[s, t]) { }",
                      "line 1, column 6: 'A' has 1 dimensions but 2 strides");
}

TEST(ParseErrors, OfExpressions) {
  expect_value_error("B[0]", "line 1, column 43: there is no buffer 'B'");
  expect_value_error("x", "line 1, column 43: there is no variable 'x'");
  expect_value_error("sinus(1.0)", "line 1, column 43: there is no function 'sinus'");
  expect_value_error("exp(1.0, 2.0)", "line 1, column 43: exp takes 1 operands, but got 2");
  expect_value_error("A[0] + I[0]",
                     "line 1, column 48: add takes numbers of one type, but got float32 and int64");
  expect_value_error(
      "I[0]", "line 1, column 43: A holds float32, but is stored int64 of 1 lanes where 1 fit");
  expect_value_error("1.0 +", "line 1, column 49: expected an expression, but got '}'");
  expect_value_error("(1.0", "line 1, column 48: expected ')', but got '}'");
  expect_value_error("A[1.5]", "line 1, column 45: 1.5 is no constant of int64");
  expect_value_error("A[A[0]]", "line 1, column 45: an index is int64, but got float32");
  expect_value_error("broadcast(1.0, 1)",
                     "line 1, column 58: a number of lanes is at least 2, but got '1'");
  expect_value_error("broadcast(1.0, 4)",
                     "line 1, column 43: A holds float32, but is stored float32 of 4 lanes where 1 "
                     "fit");
  expect_value_error("float32(300:int8)", "line 1, column 51: 300 does not fit in int8");
  expect_value_error("float32(9223372036854775808)",
                     "line 1, column 51: 9223372036854775808 does not fit in int64");
  expect_value_error("1:int9", "line 1, column 45: there is no type 'int9'");
}

TEST(ParseErrors, DeepNestingIsRefused) {
  expect_value_error(std::string(300, '(').append("1.0"),
                     "line 1, column 243: the expression is nested too deeply");
  std::string braces = "fn f() ";
  for (int i = 0; i < 200; ++i)
    braces += '{';
  expect_syntax_error(braces, "line 1, column 109: the statements are nested too deeply");
}

}  // namespace
}  // namespace kiln::testing
