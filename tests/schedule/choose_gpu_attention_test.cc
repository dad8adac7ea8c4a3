// What attentions become on GPUs where no step says how they run: blocks of threads that store no
// score, where that is predicted to take less time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/launch.h"
#include "compiler/lower.h"
#include "compiler/tile/thread_attention.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

enum class Weights { Stage, Inside };

/// Heads of so many queries and keys, in the words of a textbook. Weights are a stage, or divided
/// inside of the sum.
std::string attention(int heads, int queries, int keys, int width,
                      std::string_view type = "float32", std::string_view schedule = "",
                      Weights weights = Weights::Stage) {
  const bool is_stage = weights == Weights::Stage;
  const std::string weight = fmt::format("{}(E[b, i, j] / L[b, i])", type);
  return fmt::format(
      R"(kernel attention(Q: {type}[{h}, {q}, {w}], K: {type}[{h}, {k}, {w}],
      V: {type}[{h}, {k}, {w}]) -> (O: float32[{h}, {q}, {w}]) {{
  S: float32[{h}, {q}, {k}]
  S[b, i, j] = sum[k < {w}](float32(Q[b, i, k]) * float32(K[b, j, k])) * 0.125
  M: float32[{h}, {q}]
  M[b, i] = max[j < {k}](S[b, i, j])
  E: float32[{h}, {q}, {k}]
  E[b, i, j] = exp(S[b, i, j] - M[b, i])
  L: float32[{h}, {q}]
  L[b, i] = sum[j < {k}](E[b, i, j])
  {stage}
  O[b, i, d] = sum[j < {k}](float32({weight}) * float32(V[b, j, d]))
  {schedule}
}})",
      fmt::arg("type", type), fmt::arg("h", heads), fmt::arg("q", queries), fmt::arg("k", keys),
      fmt::arg("w", width), fmt::arg("schedule", schedule),
      fmt::arg("stage", is_stage ? fmt::format("W: {0}[{1}, {2}, {3}]\nW[b, i, j] = {4}", type,
                                               heads, queries, keys, weight)
                                 : ""),
      fmt::arg("weight", is_stage ? "W[b, i, j]" : weight));
}

/// The name of what is taken.
std::string taken(const std::string& definition, const std::string& arch,
                  const CompileOptions& options = {}) {
  const language::TextKernel text = kernel_of(definition);
  const Target target{TargetKind::Cuda, arch};
  const SketchSpace space(text.kernel, {}, target, options);
  if (space.stages().size() != 1) return "other stages";
  return space.stages()[0].sketches[0].name;
}

TEST(ChooseGpuAttention, ScoresAreNotStoredWhereThereAreMany) {
  const std::string many = attention(32, 2048, 2048, 64);
  EXPECT_EQ(taken(many, "sm_90"), "scores not stored, 128 queries and 64 keys a block");
  EXPECT_EQ(taken(many, "sm_89"), "scores not stored, 64 queries and 64 keys a block");
  EXPECT_EQ(taken(many, "sm_75"), "scores not stored, 64 queries and 32 keys a block");
  EXPECT_EQ(taken(attention(32, 2048, 2048, 128, "float16"), "sm_80"),
            "scores not stored, 128 queries and 64 keys a block");
  // Several queries that no tile of a product has.
  EXPECT_EQ(taken(attention(32, 16, 4096, 128, "bfloat16"), "sm_90"),
            "scores not stored, 64 queries and 64 keys a block");
}

TEST(ChooseGpuAttention, ScoresAreStoredWhereBlocksWouldComputeThemTooOften) {
  EXPECT_EQ(taken(attention(32, 2048, 2048, 2048), "sm_90"), "scores stored");
}

TEST(ChooseGpuAttention, RowsOfScoresAreStoredWhereFewBlocksWouldComputeThem) {
  EXPECT_EQ(taken(attention(32, 1, 4096, 64), "sm_90"), "scores stored");
  EXPECT_EQ(taken(attention(4, 32, 4096, 128), "sm_90"), "scores stored");
  EXPECT_EQ(taken(attention(1, 256, 2048, 128), "sm_90").find("scores stored"), std::string::npos);
}

TEST(ChooseGpuAttention, WeightsMayBeDividedInsideOfTheSum) {
  const language::TextKernel text =
      kernel_of(attention(64, 8, 256, 64, "float32", "", Weights::Inside));
  const Target target{TargetKind::Cuda, "sm_80"};
  const SketchSpace space(text.kernel, {}, target, {});
  const std::vector<autoschedule::Sketch>& sketches = space.stages().at(0).sketches;
  EXPECT_EQ(std::ranges::count(sketches, "scores stored", &autoschedule::Sketch::name), 1);
  LoweringObserver silent;
  for (uint32_t sketch = 0; sketch < sketches.size(); ++sketch)
    lower(text.kernel, space.schedule({{{sketch, {}}}}), target, {}, Layout::Compact, silent);
}

TEST(ChooseGpuAttention, StrictKeepsTheStagesOfTheDefinition) {
  const std::string many = attention(32, 2048, 2048, 64);
  EXPECT_EQ(taken(many, "sm_90", {.strict = true}), "other stages");
}

TEST(ChooseGpuAttention, TheOtherSketchIsTheStagesAsTheyWere) {
  const language::TextKernel text = kernel_of(attention(512, 15, 2048, 64));
  const Target target{TargetKind::Cuda, "sm_90"};
  const SketchSpace space(text.kernel, {}, target, {});
  const std::vector<autoschedule::Sketch>& sketches = space.stages().at(0).sketches;
  const auto stored =
      std::ranges::find(sketches, "scores stored", &autoschedule::Sketch::name) - sketches.begin();
  ASSERT_LT(stored, std::ssize(sketches));
  LoweringObserver silent;
  const auto launches_of = [&](const autoschedule::Candidate& candidate) {
    const ir::Kernel loops =
        lower(text.kernel, space.schedule(candidate), target, {}, Layout::Compact, silent);
    return std::pair(ir::launched_statements(loops.body).size(), loops.workspace.size());
  };
  const auto [launches, buffers] = launches_of({{{static_cast<uint32_t>(stored), {}}}});
  EXPECT_GE(launches, 3u);
  EXPECT_GE(buffers, 2u);
  EXPECT_EQ(launches_of(space.preferred()), (std::pair<size_t, size_t>(1, 0)));
}

std::string message_of(const std::string& definition, const std::string& arch, bool strict) {
  const language::TextKernel text = kernel_of(definition);
  const Target target{TargetKind::Cuda, arch};
  LoweringObserver silent;
  try {
    lower(text.kernel, text.schedules.at(0).second, target, {.strict = strict}, Layout::Compact,
          silent);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.reason(), "PRAGMA");
    EXPECT_GT(error.location().line, 0);
    return error.message();
  }
}

TEST(ChooseGpuAttention, AScheduleMayAskForABlock) {
  const auto with = [](int queries, int keys) {
    return attention(4, 100, 100, 64, "float32",
                     fmt::format("schedule cuda {{ pragma(O.b, attention_queries, {})\n"
                                 "pragma(O.b, attention_keys, {}) }}",
                                 queries, keys));
  };
  EXPECT_EQ(message_of(with(32, 32), "sm_75", false), "");
  EXPECT_EQ(message_of(with(256, 256), "sm_89", false),
            "pragma attention_queries asks for 256 queries and 256 keys a block, which take 402432 "
            "bytes of shared memory, and a block of sm_89 has 101376; ask for fewer");
  EXPECT_EQ(message_of(with(32, 32), "sm_75", true),
            "pragma attention_queries adds up weights in another order, which strict forbids; "
            "leave out one of the two");
  EXPECT_EQ(message_of(R"(kernel m(A: float32[64, 64]) -> (C: float32[64]) {
      C[i] = sum[k < 64](A[i, k])
      schedule cuda { pragma(C.i, attention_queries, 64) }
    })",
                       "sm_90", false),
            "pragma attention_queries is for attentions, and m is none that threads do: it has no "
            "sum of weights; leave it out");
}

}  // namespace
}  // namespace kiln::testing
