#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "runtime/core/cpu_name.h"
#include "tests/fuzz/fuzz_case.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// A kernel that is small to send and may be large to compile.
struct Hostile {
  const char* name;
  std::function<std::string()> text;
};

/// `line` for 0 .. count - 1, with {0} the number and {1} the one before it.
std::string repeat(int count, const std::function<std::string(int)>& line) {
  std::string result;
  for (int i = 0; i < count; ++i)
    result += line(i);
  return result;
}

/// A chain of stages T0, T1, ... of which each is `body` of the one before it, called P.
std::string chain(int count, const std::string& body, const std::string& step = "") {
  const auto name = [&](int i) { return i < 0 ? std::string("X") : fmt::format("T{}", i); };
  std::string lines;
  std::string steps;
  for (int i = 0; i < count; ++i) {
    std::string line = body;
    for (size_t at = line.find("P["); at != std::string::npos; at = line.find("P[", at + 1))
      line.replace(at, 1, name(i - 1));
    if (i + 1 < count) {
      lines += fmt::format("  {}: float32[n]\n", name(i));
      if (!step.empty()) steps += fmt::format("    {}({})\n", step, name(i));
    }
    lines += fmt::format("  {}[i] = {}\n", name(i), line);
  }
  return fmt::format(
      "kernel k(X: float32[n]) -> ({}: float32[n]) {{\n{}  schedule cpu {{\n{}  }}\n}}",
      name(count - 1), lines, steps);
}

/// One statement over a tensor of one dimension with steps.
std::string one_stage(const std::string& body, const std::string& steps,
                      const std::string& extent = "n") {
  return fmt::format(
      "kernel k(X: float32[{0}]) -> (Y: float32[{0}]) {{\n  Y[i] = {1}\n  schedule cpu {{\n{2}  "
      "}}\n}}",
      extent, body, steps);
}

/// `rows` times 64 sums, each with a loop of its own.
std::string unrolled_sums(int rows) {
  return fmt::format(
      "kernel k(X: float32[{0}, 64, 18]) -> (Y: float32[{0}, 64]) {{\n"
      "  Y[i, j] = sum[k < 18](X[i, j, k])\n"
      "  schedule cpu {{\n    unroll(Y.i)\n    unroll(Y.j)\n  }}\n}}",
      rows);
}

std::string of_dimensions(int count, const std::string& extent) {
  std::string shape = extent;
  std::string axes = "i0";
  for (int d = 1; d < count; ++d) {
    shape += ", " + extent;
    axes += fmt::format(", i{}", d);
  }
  return fmt::format(
      "kernel k(X: float32[{0}]) -> (Y: float32[{0}]) {{\n  Y[{1}] = X[{1}] + 1\n  schedule cpu {{ "
      "}}\n}}",
      shape, axes);
}

std::string long_reduction(int axes) {
  std::string ranges;
  std::string sum = "0";
  for (int a = 0; a < axes; ++a) {
    ranges += fmt::format("{}r{} < 3", a == 0 ? "" : ", ", a);
    sum += fmt::format(" + r{}", a);
  }
  return fmt::format(
      "kernel k(X: float32[n]) -> (Y: float32[n]) {{\n  Y[i] = sum[{}](X[i] * float32({}))\n  "
      "schedule cpu {{ }}\n}}",
      ranges, sum);
}

std::string many_states(int count) {
  std::string results;
  std::string lines;
  for (int s = 0; s < count; ++s) {
    results += fmt::format("{}S{}: float32[m, n]", s == 0 ? "" : ", ", s);
    lines +=
        fmt::format("    S{0}[0, i] = X[0, i]\n    S{0}[t, i] = S{0}[t - 1, i] + S{1}[t - 1, i]\n",
                    s, (s + 1) % count);
  }
  return fmt::format(
      "kernel k(X: float32[m, n]) -> ({}) {{\n  scan t {{\n{}  }}\n  schedule cpu {{ }}\n}}",
      results, lines);
}

std::string repeated_splits(int count) {
  std::string steps;
  std::string axis = "Y.i";
  for (int i = 0; i < count; ++i) {
    steps += fmt::format("    split({}, factor=3)\n", axis);
    axis += ".outer";
  }
  return one_stage("X[i] + 1", steps);
}

std::string nested_paddings(int count) {
  std::string body = "X[i]";
  for (int i = 1; i <= count; ++i)
    body = fmt::format("if_then_else(i >= {} && i < n - {}, {}, {}.0)", i, i, body, i);
  return one_stage(body, "    split(Y.i, factor=8)\n    vectorize(Y.i.inner)\n");
}

std::string wide_stencil(int count) {
  return one_stage(repeat(count,
                          [](int i) {
                            return fmt::format("{}if_then_else(i >= {}, X[i - {}], 0.0)",
                                               i == 0 ? "" : " + ", i, i);
                          }),
                   "");
}

const Hostile kHostile[] = {
    {"AChainOfStages", [] { return chain(150, "P[i] * 2 + 1"); }},
    {"AChainOfStencils",
     [] { return chain(150, "if_then_else(i > 0, P[i - 1], 0.0) + P[i] * 0.5"); }},
    {"AChainInlinedTwice", [] { return chain(60, "P[i] + P[n - 1 - i]", "compute_inline"); }},
    {"AChainAtRoot", [] { return chain(200, "P[i] + 1", "compute_root"); }},
    {"ALongSum",
     [] { return one_stage(repeat(2000, [](int i) { return i == 0 ? "X[i]" : " + X[i]"; }), ""); }},
    {"ADeepExpression",
     [] {
       return one_stage(repeat(1000, [](int) { return "(1 + "; }) + "X[i]" +
                            repeat(1000, [](int) { return ")"; }),
                        "");
     }},
    {"ATowerOfFunctions",
     [] {
       return one_stage(
           repeat(300, [](int) { return "exp("; }) + "X[i]" + repeat(300, [](int) { return ")"; }),
           "    split(Y.i, factor=64)\n    vectorize(Y.i.inner)\n");
     }},
    {"ThirtyDimensions", [] { return of_dimensions(30, "2"); }},
    {"ThirtySymbolicDimensions", [] { return of_dimensions(30, "n"); }},
    {"EightDimensions", [] { return of_dimensions(8, "n"); }},
    {"ALongReduction", [] { return long_reduction(12); }},
    {"ManyStates", [] { return many_states(12); }},
    {"RepeatedSplits", [] { return repeated_splits(12); }},
    {"VeryManySplits", [] { return repeated_splits(60); }},
    {"AHugeUnroll", [] { return one_stage("X[i] + 1", "    unroll(Y.i)\n", "1000000"); }},
    {"ANestOfUnrolls",
     [] {
       return one_stage("exp(X[i]) + 1",
                        "    split(Y.i, factor=64)\n    split(Y.i.outer, factor=64)\n"
                        "    unroll(Y.i.inner)\n    unroll(Y.i.outer.inner)\n");
     }},
    {"AShorterNestOfUnrolls",
     [] {
       return one_stage("X[i] + 1",
                        "    split(Y.i, factor=64)\n    split(Y.i.outer, factor=16)\n"
                        "    unroll(Y.i.inner)\n    unroll(Y.i.outer.inner)\n");
     }},
    {"AnUnrollOfSums", [] { return unrolled_sums(64); }},
    {"AShorterUnrollOfSums", [] { return unrolled_sums(24); }},
    {"ALongVector", [] { return one_stage("X[i] + 1", "    vectorize(Y.i)\n", "1000000"); }},
    {"NestedPaddings", [] { return nested_paddings(24); }},
    {"AWideStencil", [] { return wide_stencil(64); }},
};

class HostileKernels : public ::testing::TestWithParam<Hostile> {};

/// Two seconds of a quiet machine; the slowest take about half of it.
TEST_P(HostileKernels, AreCompiledOrRefusedInTime) {
  const std::string source = GetParam().text();
  const Target target{TargetKind::Llvm, host_cpu()};
  for (const bool is_automatic : {true, false}) {
    SCOPED_TRACE(is_automatic ? "automatic" : "as scheduled");
    const double start = thread_seconds();
    std::string outcome = "compiled";
    try {
      const language::TextKernel text = kernel_of(source);
      CompileOptions options;
      options.automatic = is_automatic;
      compile(text.kernel,
              choose_schedule(text.kernel, text.schedules.at(0).second, target, options), target,
              options);
    } catch (const Error& error) {
      outcome = error.message();
      EXPECT_TRUE(error.kind() == ErrorKind::InvalidArgument ||
                  error.kind() == ErrorKind::Unsupported ||
                  error.kind() == ErrorKind::ResourceExhausted)
          << name_of(error.kind()) << ": " << error.message();
      EXPECT_NE(error.reason(), "SYNTAX") << "the text is not what it should be: " << outcome;
    }
    const double seconds = thread_seconds() - start;
    std::printf("  %6.3f s  %s\n", seconds, outcome.substr(0, 160).c_str());
    EXPECT_LT(seconds, 2 * kSecondsOfACase);
  }
}

TEST(CodeLimit, IsAskedOfUnrolledAndVectorizedLoopsTogether) {
  const language::TextKernel text =
      kernel_of(one_stage("exp(X[i]) + 1", "    split(Y.i, factor=16)\n    unroll(Y.i.inner)\n"));
  CompileOptions options;
  options.limits.code = 100;
  const Target target{TargetKind::Llvm, host_cpu()};
  expect_error([&] { compile(text.kernel, text.schedules.at(0).second, target, options); },
               ErrorKind::ResourceExhausted,
               "k becomes about 1548 instructions; the limit is 100; unroll or vectorize less");
}

INSTANTIATE_TEST_SUITE_P(All, HostileKernels, ::testing::ValuesIn(kHostile),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::testing
