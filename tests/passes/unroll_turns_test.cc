#include <fmt/format.h>

#include "compiler/ir/interpret.h"
#include "tests/passes/pass_test.h"
#include "tests/support/tensors.h"

namespace kiln::testing {
namespace {

PassFunction* const unroll_turns = pass_named("unroll_turns").run;

/// Lines of A, turned around by way of memories in turn.
std::string pipeline(std::string_view lines, std::string_view loop) {
  return fmt::format(
      R"(fn f(A: float32[{0}, 8], C: float32[{0}, 8]) {{ for b in 0..1 bind(blockIdx.x) {{
        allocate s: float32[3, 8] scope(shared)
        for t in 0..8 bind(threadIdx.x) {{
          background {{ if 0 < {0} {{ s[0, t] = A[0, t] }} }}
          background {{ if 1 < {0} {{ s[1, t] = A[1, t] }} }}
          {1} }} }} }})",
      lines, loop);
}

std::string plain(std::string_view lines) {
  return pipeline(lines, fmt::format(R"(for k in 0..{0} {{
    await 1
    barrier
    background {{ if k + 2 < {0} {{ s[floormod(k + 2, 3), t] = A[k + 2, t] }} }}
    C[k, t] = s[floormod(k, 3), 7 - t] }})",
                                     lines));
}

/// An iteration of the loop that is written out: line k*3 + i lies in memory i.
std::string iteration(int i) {
  return fmt::format(R"(await 1
    barrier
    background {{ s[{2}, t] = A[k*3 + {1}, t] }}
    C[{3}, t] = s[{0}, 7 - t]
    )",
                     i, i + 2, (i + 2) % 3, i == 0 ? "k*3" : fmt::format("k*3 + {}", i));
}

size_t count_in(const ir::Kernel& kernel, std::string_view word) {
  const std::string text = ir::print(kernel);
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

ir::Kernel simplified(const std::string& text) {
  return run_pass(pass_named("simplify").run, text, kCuda);
}

/// With the remainders of the iterations known, which the pass leaves to simplify.
ir::Kernel written_out(const std::string& text) {
  return run_pass(pass_named("simplify").run, run_pass(unroll_turns, text, kCuda), kCuda);
}

TEST(UnrollTurns, WritesOutAnIterationForEachMemory) {
  const std::string loop = R"(for k in 0..3 { )" + iteration(0) + iteration(1) + iteration(2) +
                           R"(} for k in 0..2 {
    await 1
    barrier
    background { }
    C[k + 9, t] = s[k, 7 - t] })";
  const ir::Kernel kernel = written_out(plain("11"));
  EXPECT_TRUE(ir::equal_kernels(kernel, simplified(pipeline("11", loop)))) << ir::print(kernel);
}

/// What is left are iterations of any number, which ask whether there is more to copy.
TEST(UnrollTurns, AsksNothingInIterationsThatCopy) {
  const std::string loop = R"(for k in 0..floordiv(max(n - 2, 0), 3) { )" + iteration(0) +
                           iteration(1) + iteration(2) + R"(}
    for k in 0..n - floordiv(max(n - 2, 0), 3)*3 {
    await 1
    barrier
    background { if floordiv(max(n - 2, 0), 3)*3 + k + 2 < n {
      s[floormod(k + 2, 3), t] = A[floordiv(n + 1, 3)*3 + k - 1, t] } }
    C[floordiv(max(n - 2, 0), 3)*3 + k, t] = s[floormod(k, 3), 7 - t] })";
  const ir::Kernel kernel = written_out(plain("n"));
  EXPECT_TRUE(ir::equal_kernels(kernel, ir::parse(pipeline("n", loop)))) << ir::print(kernel);
}

TEST(UnrollTurns, LeavesALoopOfFewerIterationsAlone) {
  expect_unchanged(unroll_turns, plain("4"), kCuda);
}

struct Races : ir::InterpretWatch {
  bool wants_races() const override { return true; }
};

HostTensor lines_of(int64_t lines, bool is_input) {
  HostTensor tensor = zeros(DType::Float32, {lines, 8});
  for (size_t i = 0; is_input && i * 4 < tensor.bytes.size(); ++i) {
    const auto value = static_cast<float>(i + 1);
    std::memcpy(tensor.bytes.data() + i * 4, &value, 4);
  }
  return tensor;
}

TEST(UnrollTurns, ComputesTheSameForAnyNumberOfIterations) {
  Races watch;
  for (int64_t lines = 0; lines < 12; ++lines) {
    for (const bool is_known : {false, true}) {
      const std::string text = plain(is_known ? std::to_string(lines) : "n");
      const std::vector<int64_t> sizes(is_known ? 0 : 1, lines);
      std::vector<HostTensor> wanted = {lines_of(lines, true), lines_of(lines, false)};
      std::vector<HostTensor> found = wanted;
      ir::interpret(ir::parse(text), sizes, wanted, watch);
      const ir::Kernel kernel = run_pass(unroll_turns, text, kCuda);
      ir::interpret(kernel, sizes, found, watch);
      EXPECT_EQ(found[1].bytes, wanted[1].bytes) << lines << ir::print(kernel);
      std::vector<HostTensor> simplified = {lines_of(lines, true), lines_of(lines, false)};
      ir::interpret(written_out(text), sizes, simplified, watch);
      EXPECT_EQ(simplified[1].bytes, wanted[1].bytes) << lines << ir::print(written_out(text));
    }
  }
}

TEST(UnrollTurns, WritesOutInnermostLoopsAlone) {
  const std::string text = pipeline("n", R"(for j in 0..n { await 1
    C[j, t] = s[floormod(j, 3), t]
    for k in 0..n { await 1  C[k, t] = s[floormod(k, 3), t] } })");
  const ir::Kernel kernel = run_pass(unroll_turns, text, kCuda);
  EXPECT_EQ(count_in(kernel, "await 1"), 5U) << ir::print(kernel);
}

/// NVRTC takes its time for each copy.
TEST(UnrollTurns, LeavesLongIterationsAlone) {
  const auto text = [](int copies) {
    return pipeline("n", fmt::format(R"(for k in 0..n {{
      await 1
      for i in 0..{} unroll {{ C[k, t] = s[floormod(k, 3), t] }} }})",
                                     copies));
  };
  expect_unchanged(unroll_turns, text(1025), kCuda);
  EXPECT_EQ(count_in(run_pass(unroll_turns, text(1024), kCuda), "await 1"), 4U);
}

TEST(UnrollTurns, LeavesLoopsAloneThatAwaitNothing) {
  expect_unchanged(unroll_turns, pipeline("n", "for k in 0..n { C[k, t] = s[floormod(k, 3), t] }"),
                   kCuda);
}

/// Another place than a remainder of the iterations.
TEST(UnrollTurns, LeavesMemoriesAloneThatTakeNoTurns) {
  expect_unchanged(unroll_turns, pipeline("n", R"(for k in 0..n {
    await 1
    C[k, t] = s[floormod(k, 3), t] + s[floormod(t, 3), t] })"),
                   kCuda);
  expect_unchanged(unroll_turns, pipeline("n", "for k in 0..n { await 1  C[k, t] = s[0, t] }"),
                   kCuda);
}

}  // namespace
}  // namespace kiln::testing
