#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const join_loops = pass_named("join_loops").run;

TEST(JoinLoops, OfASumBehindWhatItAddsUp) {
  expect_becomes(join_loops, R"(fn f(X: float32[640], S: float32[1] output) {
    allocate E: float32[640] {
      for j in 0..10 { for v in 0..64 vectorize { E[j*64 + v] = exp(X[j*64 + v]) } }
      S[0] = 0.0
      for k in 0..10 { for w in 0..64 vectorize { S[0] = S[0] + E[k*64 + w] } }
    } })",
                 R"(fn f(X: float32[640], S: float32[1] output) {
    allocate E: float32[640] {
      S[0] = 0.0
      for j in 0..10 {
        for v in 0..64 vectorize { E[j*64 + v] = exp(X[j*64 + v]) }
        for w in 0..64 vectorize { S[0] = S[0] + E[j*64 + w] }
      }
    } })");
}

TEST(JoinLoops, WithStepsOfTheShorterOneUnrolled) {
  expect_becomes(join_loops, R"(fn f(X: float32[640], S: float32[1] output) {
    allocate E: float32[640] {
      for j in 0..20 { for v in 0..32 vectorize { E[j*32 + v] = exp(X[j*32 + v]) } }
      allocate T: float32[1] {
        T[0] = 0.0
        for k in 0..10 { for w in 0..64 vectorize { T[0] = T[0] + E[k*64 + w] } }
        S[0] = T[0]
      }
    } })",
                 R"(fn f(X: float32[640], S: float32[1] output) {
    allocate E: float32[640] {
      allocate T: float32[1] {
        T[0] = 0.0
        for k in 0..10 {
          for j in 0..2 unroll {
            for v in 0..32 vectorize { E[(k*2 + j)*32 + v] = exp(X[(k*2 + j)*32 + v]) } }
          for w in 0..64 vectorize { T[0] = T[0] + E[k*64 + w] }
        }
        S[0] = T[0]
      }
    } })");
}

TEST(JoinLoops, OfRowsWhereTheirsAreJoined) {
  expect_becomes(join_loops,
                 R"(fn f(X: float32[m, 640], S: float32[m] output, Q: float32[m] output) {
    for i in 0..m parallel {
      S[i] = 0.0
      for k in 0..10 { for v in 0..64 vectorize { S[i] = S[i] + X[i, k*64 + v] } } }
    for j in 0..m parallel {
      Q[j] = 0.0
      for l in 0..10 { for w in 0..64 vectorize {
        Q[j] = Q[j] + X[j, l*64 + w]*X[j, l*64 + w] } } } })",
                 R"(fn f(X: float32[m, 640], S: float32[m] output, Q: float32[m] output) {
    for i in 0..m parallel {
      S[i] = 0.0
      Q[i] = 0.0
      for k in 0..10 {
        for v in 0..64 vectorize { S[i] = S[i] + X[i, k*64 + v] }
        for w in 0..64 vectorize { Q[i] = Q[i] + X[i, k*64 + w]*X[i, k*64 + w] } } } })");
}

/// Two loops over elements of X and Y; `first` and `second` are what they do, `between` what stands
/// between them.
std::string two_loops(std::string_view first, std::string_view second,
                      std::string_view between = "", std::string_view extents = "0..10 0..10") {
  return fmt::format(R"(fn f(X: float32[20], Y: float32[20] output, S: float32[1] output) {{
    for i in {} {{ {} }} {} for j in {} {{ {} }} }})",
                     extents.substr(0, extents.find(' ')), first, between,
                     extents.substr(extents.find(' ') + 1), second);
}

TEST(JoinLoops, OfFullTilesWithTheRestBehindBoth) {
  expect_becomes(join_loops, R"(fn f(X: float32[100], S: float32[1] output) {
    allocate E: float32[1, 100] {
      for j in 0..15 { for v in 0..64 vectorize { E[0, j*64 + v] = exp(X[j*64 + v]) } }
      for u in 0..40 vectorize { E[0, u + 960] = exp(X[u + 960]) }
      allocate T: float32[1] {
        T[0] = 0.0
        for k in 0..15 { for w in 0..64 vectorize { T[0] = T[0] + E[0, k*64 + w] } }
        for u in 0..40 vectorize { T[0] = T[0] + E[0, u + 960] }
        S[0] = T[0]
      }
    } })",
                 R"(fn f(X: float32[100], S: float32[1] output) {
    allocate E: float32[1, 100] {
      for u in 0..40 vectorize { E[0, u + 960] = exp(X[u + 960]) }
      allocate T: float32[1] {
        T[0] = 0.0
        for j in 0..15 {
          for v in 0..64 vectorize { E[0, j*64 + v] = exp(X[j*64 + v]) }
          for w in 0..64 vectorize { T[0] = T[0] + E[0, j*64 + w] }
        }
        for u in 0..40 vectorize { T[0] = T[0] + E[0, u + 960] }
        S[0] = T[0]
      }
    } })");
}

/// Of tiles of products, each of which is read behind its sums while L1 has it; not of all rows.
TEST(JoinLoops, OfTilesThatAreReadBehindTheirSums) {
  const auto loops = [](int columns, bool is_joined) {
    const std::string_view between = is_joined ? "" : "} for o in 0..8 {";
    const std::string_view var = is_joined ? "t" : "o";
    return fmt::format(
        "fn f(A: float32[64, 32], B: float32[32, {0}], Y: float32[64, {0}] output) {{"
        " allocate C: float32[64, {0}] {{ for t in 0..8 {{"
        " for i in 0..8 unroll {{ for j in 0..{0} vectorize {{ C[t*8 + i, j] = 0.0 }} }}"
        " for k in 0..32 {{ for i in 0..8 unroll {{ for j in 0..{0} vectorize {{"
        " C[t*8 + i, j] = C[t*8 + i, j] + A[t*8 + i, k]*B[k, j] }} }} }} {1}"
        " for i in 0..8 {{ for j in 0..{0} vectorize {{"
        " Y[{2}*8 + i, j] = max(C[{2}*8 + i, j], 0.0) }} }} }} }} }}",
        columns, between, var);
  };
  expect_becomes(join_loops, loops(48, false), loops(48, true));
  expect_unchanged(join_loops, loops(2048, false));
}

TEST(JoinLoops, NotWhereAnIterationNeedsALaterOneOfTheOther) {
  const auto unchanged = [](const auto&... parts) {
    expect_unchanged(join_loops, two_loops(parts...));
  };
  unchanged("Y[i] = X[i]", "S[0] = S[0] + Y[j + 1]");
  unchanged("Y[i] = X[i]", "S[0] = S[0] + Y[9 - j]");
  unchanged("Y[i + 1] = X[i]", "S[0] = S[0] + Y[j]");
  // What the first one reads is stored sooner than it should be.
  unchanged("S[0] = S[0] + Y[i + 1]", "Y[j] = X[j]");
  // The whole sum is needed.
  unchanged("S[0] = S[0] + X[i]", "Y[j] = X[j]/S[0]");
  unchanged("S[0] = S[0] + X[i]", "Y[j] = X[j]/Y[19]", "Y[19] = S[0]");
  // Both add to one sum, which is in one order.
  unchanged("S[0] = S[0] + X[i]", "S[0] = S[0] + X[j]*X[j]");
}

TEST(JoinLoops, NotWhereNothingIsGained) {
  const auto unchanged = [](const auto&... parts) {
    expect_unchanged(join_loops, two_loops(parts...));
  };
  // No element in common, or not in the same iteration.
  unchanged("S[0] = S[0] + X[i]", "Y[j] = 1.0");
  unchanged("S[0] = S[0] + X[i]", "Y[j] = X[2*j]");
  // Other numbers of iterations.
  unchanged("S[0] = S[0] + X[i]", "Y[j] = X[j]", "", "0..10 0..15");
  // Loops inside that are not joined, one iteration after the other of which is long.
  unchanged("for k in 0..20 { S[0] = S[0] + X[k]*X[i] }", "for k in 0..15 { Y[j] = Y[j] + X[j] }");
}

TEST(JoinLoops, NotWhereSumsWouldFillTheRegisters) {
  expect_unchanged(join_loops,
                   R"(fn f(X: float32[2560], S: float32[1] output, Q: float32[1] output) {
    for k in 0..10 { for v in 0..256 vectorize { S[0] = S[0] + X[k*256 + v] } }
    for l in 0..10 { for w in 0..256 vectorize { Q[0] = max(Q[0], X[l*256 + w]) } } })");
}

}  // namespace
}  // namespace kiln::testing
