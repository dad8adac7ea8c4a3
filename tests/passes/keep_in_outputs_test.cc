#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const keep_in_outputs = pass_named("keep_in_outputs").run;

/// Rows of a softmax without its maximum; {0} and {1} are the numbers of rows and columns, {2} what
/// stores the result.
std::string softmax(std::string_view rows, std::string_view columns, std::string_view result,
                    std::string_view more = "") {
  return fmt::format(R"(fn f(X: float32[{0}, {1}], Y: float32[{0}, {1}] output) {{
    for i in 0..{0} parallel {{
      allocate E: float32[1, {1}] {{
        for j in 0..{1} {{ E[0, j] = exp(X[i, j]) }}
        allocate S: float32[1] {{
          S[0] = 0.0
          for j in 0..{1} {{ S[0] = S[0] + E[0, j] }}
          {2}
        }} }} {3} }} }})",
                     rows, columns, result, more);
}

TEST(KeepInOutputs, OfWhatAnOutputIsMadeElementByElement) {
  expect_becomes(keep_in_outputs,
                 softmax("64", "32000", "for j in 0..32000 { Y[i, j] = E[0, j] / S[0] }"),
                 R"(fn f(X: float32[64, 32000], Y: float32[64, 32000] output) {
    for i in 0..64 parallel {
      for j in 0..32000 { Y[i, j] = exp(X[i, j]) }
      allocate S: float32[1] {
        S[0] = 0.0
        for j in 0..32000 { S[0] = S[0] + Y[i, j] }
        for j in 0..32000 { Y[i, j] = Y[i, j] / S[0] }
      } } })");
}

TEST(KeepInOutputs, LeavesWhatElementsAreReadFromElsewhere) {
  const auto unchanged = [](const std::string& result, std::string_view more = "") {
    expect_unchanged(keep_in_outputs, softmax("64", "1000", result, more));
  };
  // Another element, which may have its result already.
  unchanged("for j in 0..1000 { Y[i, j] = E[0, 999 - j] / S[0] }");
  // Read again.
  unchanged(
      "for j in 0..1000 { Y[i, j] = E[0, j] / S[0] } for j in 0..1000 { S[0] = S[0] + E[0, j] }");
  // An element of the result twice, or not at all.
  unchanged("for k in 0..2 { for j in 0..1000 { Y[i, j] = E[0, j] / S[0] } }");
  unchanged("for k in 0..20 { for j in 0..60 { Y[i, k*49 + j] = E[0, k*49 + j] / S[0] } }");
  unchanged("for j in 0..999 { Y[i, j] = E[0, j] / S[0] }");
  unchanged("for j in 0..1000 { if X[i, j] > 0.0 { Y[i, j] = E[0, j] / S[0] } }");
  // A row that another iteration has, too.
  unchanged("for j in 0..1000 { Y[floordiv(i, 2), j] = E[0, j] / S[0] }");
  // What the output holds is read, or stored by another statement.
  unchanged("for j in 0..1000 { Y[i, j] = E[0, j] / S[0] }", "Y[i, 0] = 0.0");
}

TEST(KeepInOutputs, LeavesOutputsThatGoPastTheCaches) {
  expect_unchanged(keep_in_outputs,
                   softmax("4096", "1000", "for j in 0..1000 { Y[i, j] = E[0, j] / S[0] }"));
  expect_unchanged(keep_in_outputs,
                   softmax("m", "n", "for j in 0..n { Y[i, j] = E[0, j] / S[0] }"));
}

}  // namespace
}  // namespace kiln::testing
