// No score of an attention is stored on GPUs, whatever its heads are: of any width up to 1024, type
// and architecture, of lengths that are known and open, causal or not, in batches or alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/launch.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

constexpr std::string_view kArchs[] = {"sm_75", "sm_80",  "sm_86", "sm_89",
                                       "sm_90", "sm_100", "sm_120"};
constexpr std::string_view kTypes[] = {"float32", "float16", "bfloat16"};

/// Which of these an attention is: all of them come up with each type and architecture.
struct Form {
  bool is_causal = false;
  bool is_open = false;
  bool is_batched = false;
  bool has_stage_of_weights = false;
};
Form form_of(size_t number) {
  return {(number & 1) != 0, (number & 2) != 0, (number & 4) != 0, (number & 8) != 0};
}

std::string attention(std::string_view type, int width, int length, const Form& form) {
  const std::string score =
      fmt::format("sum[k < {w}](float32(Q[{b}i, k]) * float32(K[{b}j, k])) * 0.125",
                  fmt::arg("w", width), fmt::arg("b", form.is_batched ? "b, " : ""));
  const std::string weight =
      fmt::format("{}(E[{b}i, j] / L[{b}i])", type, fmt::arg("b", form.is_batched ? "b, " : ""));
  return fmt::format(
      R"(kernel attention(Q: {type}[{h}{q}, {w}], K: {type}[{h}{k}, {w}],
      V: {type}[{h}{k}, {w}]) -> (O: float32[{h}{q}, {w}]) {{
  S: float32[{h}{q}, {k}]
  S[{b}i, j] = {score}
  M: float32[{h}{q}]
  M[{b}i] = max[j < {k}](S[{b}i, j])
  E: float32[{h}{q}, {k}]
  E[{b}i, j] = exp(S[{b}i, j] - M[{b}i])
  L: float32[{h}{q}]
  L[{b}i] = sum[j < {k}](E[{b}i, j])
  {stage}
  O[{b}i, d] = sum[j < {k}](float32({weight}) * float32(V[{b}j, d]))
}})",
      fmt::arg("type", type), fmt::arg("w", width), fmt::arg("h", form.is_batched ? "24, " : ""),
      fmt::arg("b", form.is_batched ? "b, " : ""),
      fmt::arg("q", form.is_open ? "n" : fmt::to_string(length)),
      fmt::arg("k", form.is_open ? "m" : fmt::to_string(length)),
      fmt::arg("score", form.is_causal ? fmt::format("select(j <= i, {}, -inf)", score) : score),
      fmt::arg("stage", form.has_stage_of_weights
                            ? fmt::format("W: {0}[{1}{2}, {3}]\nW[{4}i, j] = {5}", type,
                                          form.is_batched ? "24, " : "",
                                          form.is_open ? "n" : fmt::to_string(length),
                                          form.is_open ? "m" : fmt::to_string(length),
                                          form.is_batched ? "b, " : "", weight)
                            : ""),
      fmt::arg("weight", form.has_stage_of_weights
                             ? fmt::format("W[{}i, j]", form.is_batched ? "b, " : "")
                             : weight));
}

/// What the space of its schedules has.
void expect_no_stored_scores(const std::string& text, std::string_view arch) {
  const language::TextKernel kernel = kernel_of(text);
  const Target target{TargetKind::Cuda, std::string(arch)};
  const SketchSpace space(kernel.kernel, {}, target, {});
  ASSERT_EQ(space.stages().size(), 1u) << arch << text;
  for (const autoschedule::Sketch& sketch : space.stages()[0].sketches)
    EXPECT_TRUE(sketch.name.starts_with("scores not stored")) << sketch.name << arch << text;
}

TEST(UnstoredScores, AreThoseOfHeadsOfAnyWidth) {
  size_t number = 0;
  for (int width = 1; width <= 1024; width += width < 32 ? 1 : 31) {
    for (const std::string_view type : kTypes)
      for (const std::string_view arch : kArchs)
        expect_no_stored_scores(attention(type, width, 2048, form_of(number++)), arch);
  }
}

TEST(UnstoredScores, AreThoseOfHeadsOfAnyLength) {
  size_t number = 0;
  for (const int length : {16, 17, 77, 256, 1000, 16384}) {
    for (const std::string_view type : kTypes)
      for (const std::string_view arch : kArchs)
        expect_no_stored_scores(attention(type, 64, length, form_of(number++ * 2 % 16)), arch);
  }
}

/// One launch, and no memory but that of its blocks, of which each has as much as there is.
TEST(UnstoredScores, HaveNoBuffer) {
  size_t number = 0;
  for (const int width : {64, 512, 1024}) {
    for (const std::string_view type : kTypes) {
      for (const std::string_view arch : kArchs) {
        const std::string text = attention(type, width, 1000, form_of(number++));
        const language::TextKernel kernel = kernel_of(text);
        const Target target{TargetKind::Cuda, std::string(arch)};
        const SketchSpace space(kernel.kernel, {}, target, {});
        LoweringObserver silent;
        const ir::Kernel loops = lower(kernel.kernel, space.schedule(space.preferred()), target, {},
                                       Layout::Compact, silent);
        EXPECT_TRUE(loops.workspace.empty()) << arch << text;
        EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << arch << text;
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
