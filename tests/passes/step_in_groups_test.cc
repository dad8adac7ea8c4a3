#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const step_in_groups = pass_named("step_in_groups").run;

/// Running sums, of which the first is stored in front.
std::string sums(std::string_view steps, std::string_view value,
                 std::string_view parameters = "X: float32[8, 64], S: float32[8, 64]") {
  return fmt::format(
      "fn f({}) {{ for i in 0..8 bind(threadIdx.x) {{\n"
      "  S[i, 0] = X[i, 0]\n"
      "  for t in 0..{} {{ S[i, t + 1] = {} }} }} }}",
      parameters, steps, value);
}

TEST(StepInGroups, LoadsAndStoresSeveralStepsAtOnce) {
  expect_becomes(step_in_groups, sums("40", "S[i, t] + X[i, t + 1]*float32(t)"),
                 R"(fn f(X: float32[8, 64], S: float32[8, 64]) { for i in 0..8 bind(threadIdx.x) {
    S[i, 0] = X[i, 0]
    allocate S.last: float32[1] scope(local)
    S.last[0] = S[i, 0]
    for u in 0..3 unroll {
      S.last[0] = S.last[0] + X[i, u + 1]*float32(u)
      S[i, u + 1] = S.last[0] }
    for g in 0..2 {
      allocate X.steps: float32[16] scope(local)
      for n in 0..4 unroll { for l in 0..4 vectorize {
        X.steps[n*4 + l] = X[i, g*16 + n*4 + l + 4] } }
      for v in 0..16 unroll {
        S.last[0] = S.last[0] + X.steps[v]*float32(g*16 + 3 + v)
        X.steps[v] = S.last[0] }
      for n in 0..4 unroll { for l in 0..4 vectorize {
        S[i, g*16 + n*4 + l + 4] = X.steps[n*4 + l] } } }
    for w in 0..5 unroll {
      S.last[0] = S.last[0] + X[i, 35 + w + 1]*float32(35 + w)
      S[i, w + 36] = S.last[0] } } })",
                 kCuda);
}

TEST(StepInGroups, AThreadWithoutARowDoesNothing) {
  const std::string text = R"(fn f(X: float32[8, 64], S: float32[8, 64]) {
    for i in 0..16 bind(threadIdx.x) {
      for t in 0..40 { if likely(i < 8) { S[i, t + 1] = S[i, t] + X[i, t + 1] } } } })";
  const std::string made = ir::print(run_pass(step_in_groups, text, kCuda));
  EXPECT_NE(made.find("if likely(i < 8) {\n      allocate S.last"), std::string::npos) << made;
  expect_unchanged(step_in_groups,
                   R"(fn f(X: float32[8, 64], S: float32[8, 64]) {
                     for i in 0..8 bind(threadIdx.x) {
                       for t in 0..40 { if t < i + 9 { S[i, t + 1] = S[i, t] + X[i, t + 1] } } } })",
                   kCuda);
}

TEST(StepInGroups, LeavesWhatIsNoRecurrenceAlongARow) {
  for (const char* value : {
           "X[i, t + 1] + 1.0",        // reads no step before
           "S[i, t] + S[0, t]",        // another row
           "S[i, t] + 1.0",            // nothing to load
           "S[i, t] + X[t, i]",        // goes down a column
           "S[i, t] + X[i, t]",        // of another alignment
           "S[i, t] + X[i, t*2 + 1]",  // every other element
           "if_then_else(t < 5, S[i, t] + X[i, t + 1], 0.0)",
       }) {
    SCOPED_TRACE(value);
    expect_unchanged(step_in_groups, sums("40", value), kCuda);
  }
  const std::string plain = sums("40", "S[i, t] + X[i, t + 1]");
  expect_unchanged(step_in_groups, sums("19", "S[i, t] + X[i, t + 1]"), kCuda);  // few steps
  expect_unchanged(step_in_groups, plain, {TargetKind::Cuda, Layout::Strided, {}, ""});
}

/// What is left of fewer steps than come before the first vector is done one by one.
TEST(StepInGroups, RowsMayBeOfAnyLength) {
  expect_becomes(step_in_groups,
                 sums("n - 1", "S[i, t] + X[i, t + 1]", "X: float32[8, n], S: float32[8, n]"),
                 R"(fn f(X: float32[8, n], S: float32[8, n]) { for i in 0..8 bind(threadIdx.x) {
    S[i, 0] = X[i, 0]
    if 3 <= n - 1 {
      allocate S.last: float32[1] scope(local)
      S.last[0] = S[i, 0]
      for u in 0..3 unroll {
        S.last[0] = S.last[0] + X[i, u + 1]
        S[i, u + 1] = S.last[0] }
      for g in 0..floordiv(n - 4, 16) {
        allocate X.steps: float32[16] scope(local)
        for n_1 in 0..4 unroll { for l in 0..4 vectorize {
          X.steps[n_1*4 + l] = X[i, g*16 + n_1*4 + l + 4] } }
        for v in 0..16 unroll {
          S.last[0] = S.last[0] + X.steps[v]
          X.steps[v] = S.last[0] }
        for n_1 in 0..4 unroll { for l in 0..4 vectorize {
          S[i, g*16 + n_1*4 + l + 4] = X.steps[n_1*4 + l] } } }
      for w in 0..floormod(n + 12, 16) {
        S.last[0] = S.last[0] + X[i, floordiv(n + 12, 16)*16 - 13 + w + 1]
        S[i, floordiv(n + 12, 16)*16 + w - 12] = S.last[0] }
    } else {
      for t in 0..n - 1 { S[i, t + 1] = S[i, t] + X[i, t + 1] }
    } } })",
                 kCuda);
}

TEST(StepInGroups, PartsOfARowBeginWhereAVectorDoes) {
  const std::string made = ir::print(run_pass(step_in_groups,
                                              R"(fn f(X: float32[4096], S: float32[4096]) {
    for p in 0..64 bind(threadIdx.x) {
      for t in 0..63 { S[p*64 + t + 1] = S[p*64 + t] + X[p*64 + t + 1] } } })",
                                              kCuda));
  EXPECT_NE(made.find("S[g*16 + n_1*4 + lane_1 + p*64 + 4]"), std::string::npos) << made;
  // Of 66 steps a part each other begins within a vector.
  expect_unchanged(step_in_groups,
                   R"(fn f(X: float32[4224], S: float32[4224]) {
    for p in 0..64 bind(threadIdx.x) {
      for t in 0..65 { S[p*66 + t + 1] = S[p*66 + t] + X[p*66 + t + 1] } } })",
                   kCuda);
}

TEST(StepInGroups, OneThreadRunsWhatIsBoundToNone) {
  const std::string made = ir::print(run_pass(step_in_groups,
                                              R"(fn f(X: float32[64], S: float32[64]) {
    S[0] = X[0]  for t in 0..40 { S[t + 1] = S[t] + X[t + 1] } })",
                                              kCuda));
  EXPECT_NE(made.find("allocate X.steps: float32[16]"), std::string::npos) << made;
}

/// Down columns.
std::string column_sums(std::string_view rows, std::string_view steps, std::string_view value) {
  return fmt::format(R"(fn f(X: float32[{0}, 8], Y: float32[8, {0}], S: float32[{0}, 8]) {{
    for i in 0..8 bind(threadIdx.x) {{ for t in 0..{1} {{ S[t + 1, i] = {2} }} }} }})",
                     rows, steps, value);
}

TEST(StepInGroups, DownColumnsElementsAreLoadedOneByOne) {
  expect_becomes(step_in_groups, column_sums("60", "59", "S[t, i] + X[t + 1, i]"),
                 R"(fn f(X: float32[60, 8], Y: float32[8, 60], S: float32[60, 8]) {
    for i in 0..8 bind(threadIdx.x) {
    allocate S.last: float32[1] scope(local)
    S.last[0] = S[0, i]
    for g in 0..1 {
      allocate X.steps: float32[32] scope(local)
      for n in 0..32 unroll { X.steps[n] = X[g*32 + n + 1, i] }
      for v in 0..32 unroll {
        S.last[0] = S.last[0] + X.steps[v]
        X.steps[v] = S.last[0] }
      for n in 0..32 unroll { S[g*32 + n + 1, i] = X.steps[n] } }
    for w in 0..27 unroll {
      S.last[0] = S.last[0] + X[32 + w + 1, i]
      S[w + 33, i] = S.last[0] } } })",
                 kCuda);
}

/// So that there are enough bytes under way: what is left of 64 steps has a group of its own.
TEST(StepInGroups, FewThreadsLoadMoreElementsAtOnce) {
  const auto columns = [](int64_t threads, std::string_view type) {
    return ir::print(run_pass(
        step_in_groups,
        fmt::format("fn f(X: {1}[200, {0}], S: {1}[200, {0}]) {{ for i in 0..{0} bind(blockIdx.x) "
                    "{{ for t in 0..199 {{ S[t + 1, i] = S[t, i] + X[t + 1, i] }} }} }}",
                    threads, type),
        kCuda));
  };
  const std::string few = columns(4096, "float32");
  EXPECT_NE(few.find("for g in 0..3 {\n      allocate X.steps: float32[64]"), std::string::npos)
      << few;
  EXPECT_EQ(few.find("float32[32]"), std::string::npos) << few;  // 199 = 3 * 64 + 7
  EXPECT_NE(columns(20000, "float32").find("float32[64] scope(local)"), std::string::npos);
  EXPECT_EQ(columns(30000, "float32").find("float32[64] scope(local)"), std::string::npos);
  EXPECT_EQ(columns(4096, "float64").find("float64[64] scope(local)"), std::string::npos);
  const std::string rows = ir::print(run_pass(
      step_in_groups,
      sums("127", "S[i, t] + X[i, t + 1]", "X: float32[8, 128], S: float32[8, 128]"), kCuda));
  // 127 = 3 + 64 + 3 * 16 + 12
  EXPECT_NE(rows.find("for g in 0..1 {\n      allocate X.steps: float32[64]"), std::string::npos)
      << rows;
  EXPECT_NE(rows.find("0..3 {\n      allocate X.steps_1: float32[16]"), std::string::npos) << rows;
}

/// The call says how many steps there are; of two lines, which may go along any dimension, half as
/// many elements are held.
TEST(StepInGroups, ColumnsMayBeOfAnyLength) {
  expect_becomes(step_in_groups, column_sums("n", "n - 1", "S[t, i]*Y[i, t] + X[t + 1, i]"),
                 R"(fn f(X: float32[n, 8], Y: float32[8, n], S: float32[n, 8]) {
    for i in 0..8 bind(threadIdx.x) { if 0 < n - 1 {
    allocate S.last: float32[1] scope(local)
    S.last[0] = S[0, i]
    for g in 0..floordiv(n - 1, 16) {
      allocate X.steps: float32[16] scope(local)
      allocate Y.steps: float32[16] scope(local)
      for n_1 in 0..16 unroll { Y.steps[n_1] = Y[i, g*16 + n_1] }
      for n_1 in 0..16 unroll { X.steps[n_1] = X[g*16 + n_1 + 1, i] }
      for v in 0..16 unroll {
        S.last[0] = S.last[0]*Y.steps[v] + X.steps[v]
        Y.steps[v] = S.last[0] }
      for n_1 in 0..16 unroll { S[g*16 + n_1 + 1, i] = Y.steps[n_1] } }
    for w in 0..floormod(n + 15, 16) {
      S.last[0] = S.last[0]*Y[i, floordiv(n - 1, 16)*16 + w] + X[floordiv(n - 1, 16)*16 + w + 1, i]
      S[floordiv(n + 15, 16)*16 + w - 15, i] = S.last[0] } } } })",
                 kCuda);
}

TEST(StepInGroups, StepsMayGoBack) {
  const std::string made = ir::print(run_pass(step_in_groups,
                                              R"(fn f(X: float32[n, 8], S: float32[n, 8]) {
    for i in 0..8 bind(threadIdx.x) {
      for t in 0..n - 1 { S[n - 2 - t, i] = S[n - 1 - t, i] + X[n - 2 - t, i] } } })",
                                              kCuda));
  EXPECT_NE(made.find("S.last[0] = S[n - 1, i]"), std::string::npos) << made;
  EXPECT_NE(made.find("X.steps[n_1] = X[n - g*32 - n_1 - 2, i]"), std::string::npos) << made;
  EXPECT_NE(made.find("S[n - g*32 - n_2 - 2, i] = X.steps[n_2]"), std::string::npos) << made;
}

TEST(StepInGroups, LeavesWhatIsNoRecurrenceDownAColumn) {
  for (const char* value : {"X[t + 1, i] + 1.0", "S[t, i] + S[t, 0]", "S[t, i] + 1.0",
                            "S[t, i] + X[t*2, i]", "S[t, i] + X[floordiv(t, 2), i]"}) {
    SCOPED_TRACE(value);
    expect_unchanged(step_in_groups, column_sums("101", "50", value), kCuda);
  }
  expect_unchanged(step_in_groups, column_sums("101", "31", "S[t, i] + X[t + 1, i]"), kCuda);
}

/// Half as many doubles are 16 bytes; 16-bit elements are left.
TEST(StepInGroups, IsByTheBytesOfAnElement) {
  const std::string wide = ir::print(
      run_pass(step_in_groups,
               sums("24", "S[i, t] + X[i, t + 1]", "X: float64[8, 64], S: float64[8, 64]"), kCuda));
  EXPECT_NE(wide.find("float64[8] scope(local)"), std::string::npos) << wide;
  expect_unchanged(step_in_groups,
                   sums("40", "S[i, t] + X[i, t + 1]", "X: float16[8, 64], S: float16[8, 64]"),
                   kCuda);
}

}  // namespace
}  // namespace kiln::testing
