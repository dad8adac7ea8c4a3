#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const tangents = pass_named("tangents_as_exponentials").run;

std::string loop(std::string_view type, std::string_view value) {
  return fmt::format("fn f(X: {0}[n], Y: {0}[n] output) {{ for i in 0..n {{ Y[i] = {1} }} }}", type,
                     value);
}

TEST(TangentsAsExponentials, BecomesOneExponential) {
  expect_becomes(tangents, loop("float32", "0.5 * X[i] * (1.0 + tanh(X[i] + X[i]))"),
                 loop("float32", "0.5 * X[i] * (2.0 / (exp(-2.0 * (X[i] + X[i])) + 1.0))"));
  expect_becomes(tangents, loop("float64", "tanh(X[i]) + 1.0"),
                 loop("float64", "2.0 / (exp(-2.0 * X[i]) + 1.0)"));
  expect_becomes(tangents, loop("float32", "1.0 - tanh(X[i])"),
                 loop("float32", "2.0 / (exp(2.0 * X[i]) + 1.0)"));
  expect_becomes(tangents, loop("float32", "1.0 + tanh(0.75 * X[i])"),
                 loop("float32", "2.0 / (exp(-1.5 * X[i]) + 1.0)"));
  expect_becomes(tangents, loop("float32", "1.0 + tanh(1.0 - tanh(X[i]))"),
                 loop("float32", "2.0 / (exp(-2.0 * (2.0 / (exp(2.0 * X[i]) + 1.0))) + 1.0)"));
}

TEST(TangentsAsExponentials, LeavesOtherSumsAlone) {
  expect_unchanged(tangents, loop("float32", "tanh(X[i]) - 1.0"));
  expect_unchanged(tangents, loop("float32", "2.0 + tanh(X[i])"));
  expect_unchanged(tangents, loop("float32", "1.0 - tanh(X[i]) * tanh(X[i])"));
  expect_unchanged(tangents, loop("float16", "1.0 + tanh(X[i])"));
  expect_unchanged(tangents, loop("float32", "1.0 + tanh(X[i])"), {.options = {.strict = true}});
}

}  // namespace
}  // namespace kiln::testing
