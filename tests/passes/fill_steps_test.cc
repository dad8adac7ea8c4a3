#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const fill_steps = pass_named("fill_steps").run;
const PassSetting kTensorCores = {TargetKind::Cuda, Layout::Compact, {}, "sm_80"};

/// A tile of a product whose sum is in iterations of 32 steps: how its factors are stored, and its
/// 16 steps.
std::string tile(std::string_view rows, std::string_view columns, std::string_view steps,
                 std::string_view type = "float16") {
  return fmt::format(R"(fn f(A: {3}[64, 500], B: {3}[500, 64]) {{
      for p in 0..5 bind(blockIdx.x) {{
        allocate a: {3}[64, 32] scope(shared)
        allocate b: {3}[32, 64] scope(shared)
        for t in 0..32 bind(threadIdx.x) {{
          allocate c: float32[64, 2] scope(local)
          for k in 0..4 {{
            for i in 0..64 {{ {0} }}
            for j in 0..64 {{ {1} }}
            for g in 0..2 {{ {2} }} }} }} }} }})",
                     rows, columns, steps, type);
}

constexpr std::string_view kRows =
    "if likely(p*100 + k*32 + t < 500) { a[i, t] = A[i, p*100 + k*32 + t] }";
constexpr std::string_view kColumns =
    "if likely(p*100 + k*32 + t < 500) { b[t, j] = B[p*100 + k*32 + t, j] }";

std::string steps_of(std::string_view before, std::string_view inside) {
  return fmt::format(R"({} for s in 0..16 {{ {} for m in 0..64 {{ for n in 0..2 {{
      c[m, n] = c[m, n] + float32(a[m, g*16 + s])*float32(b[g*16 + s, n*32 + t]) }} }} {})",
                     before, inside, before.empty() && inside.empty() ? "}" : "} }");
}

TEST(FillSteps, StoresZerosBeyondTheEndOfASum) {
  expect_becomes(fill_steps,
                 tile(kRows, kColumns, steps_of("", "if likely(k*32 + g*16 + s < 100) {")),
                 tile("a[i, t] = if_then_else(p*100 + k*32 + t < 500 && k*32 + t < 100, "
                      "A[i, p*100 + k*32 + t], 0.0)",
                      "b[t, j] = if_then_else(p*100 + k*32 + t < 500 && k*32 + t < 100, "
                      "B[p*100 + k*32 + t, j], 0.0)",
                      steps_of("if likely(k*32 + g*16 < 100) {", "")),
                 kTensorCores);
}

/// Of neighbours that are stored at once all are there, or none.
TEST(FillSteps, AsksOfTheFirstOfNeighbours) {
  const auto text = [](std::string_view rows, std::string_view columns, std::string_view steps) {
    return fmt::format(R"(fn f(A: float16[64, 100], B: float16[100, 64]) {{
      for p in 0..1 bind(blockIdx.x) {{
        allocate a: float16[64, 32] scope(shared)
        allocate b: float16[32, 64] scope(shared)
        for t in 0..32 bind(threadIdx.x) {{
          allocate c: float32[64, 2] scope(local)
          for k in 0..4 {{
            for i in 0..16 {{ for v in 0..4 vectorize {{ {} }} }}
            for j in 0..64 {{ {} }}
            for g in 0..2 {{ {} }} }} }} }} }})",
                       rows, columns, steps);
  };
  constexpr std::string_view kElement = "i*4 + floordiv(t*4 + v, 32)";
  constexpr std::string_view kStep = "floormod(t*4 + v, 32)";
  expect_becomes(
      fill_steps,
      text(fmt::format("if likely(k*32 + {1} < 100) {{ a[{0}, {1}] = A[{0}, k*32 + {1}] }}",
                       kElement, kStep),
           "if likely(k*32 + t < 100) { b[t, j] = B[k*32 + t, j] }",
           steps_of("", "if likely(k*32 + g*16 + s < 100) {")),
      text(fmt::format("a[{0}, {1}] = if_then_else(k*32 + floormod(t, 8)*4 < 100, "
                       "A[{0}, k*32 + {1}], 0.0)",
                       kElement, kStep),
           "b[t, j] = if_then_else(k*32 + t < 100, B[k*32 + t, j], 0.0)",
           steps_of("if likely(k*32 + g*16 < 100) {", "")),
      kTensorCores);
}

TEST(FillStepsLeaves, WhatHasNoTensorCores) {
  const std::string text =
      tile(kRows, kColumns, steps_of("", "if likely(k*32 + g*16 + s < 100) {"));
  expect_unchanged(fill_steps, text, {TargetKind::Cuda, Layout::Compact, {}, "sm_75"});
}

/// What is not stored could be anything, and so could be what is multiplied with it.
TEST(FillStepsLeaves, TilesOfWhichAPartIsStored) {
  const std::string steps = steps_of("", "if likely(k*32 + g*16 + s < 100) {");
  expect_unchanged(fill_steps,
                   tile("if likely(p*100 + k*32 + t < 500) { if likely(i < 40) {"
                        " a[i, t] = A[i, p*100 + k*32 + t] } }",
                        kColumns, steps),
                   kTensorCores);
  expect_unchanged(fill_steps,
                   tile("if likely(p*100 + k*32 + t < 500) {"
                        " a[floordiv(i, 2), t] = A[i, p*100 + k*32 + t] }",
                        kColumns, steps),
                   kTensorCores);
}

}  // namespace
}  // namespace kiln::testing
