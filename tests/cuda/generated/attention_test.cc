// Attentions as the threads of a GPU compute them, whose scores are never stored: in the
// interpreter, which looks for threads that do not wait for each other, and as their CUDA C on the
// host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/lower.h"
#include "compiler/tile/thread_attention.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/tile/attentions.h"

namespace kiln::testing::attention {
namespace {

constexpr tile::HeadParts kWhole = {256, 256};

ir::Kernel loops_of(const language::Kernel& kernel, const tile::ThreadBlock& block,
                    const tile::HeadParts& parts, const std::string& arch) {
  LoweringObserver silent;
  return run_passes(tile::threaded_attention(kernel, block, parts, arch), {TargetKind::Cuda, arch},
                    {}, Layout::Compact, silent);
}

/// One that is drawn.
struct Drawn {
  uint64_t seed;
  std::string text;
  language::Kernel kernel;
  std::vector<int64_t> sizes;
  std::vector<HostTensor> inputs;
  HostTensor expected;
  size_t place = 0;  // on the host's GPU
};

TEST(ThreadedAttention, OfAnySizeBatchLayoutMaskAndBlockIsTheDefinition) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(12));
  HostGpu gpu;
  std::vector<Drawn> all;
  for (uint64_t seed = first; seed < end; ++seed) {
    Random random(seed);
    Drawn& drawn = all.emplace_back();
    drawn.seed = seed;
    drawn.text = drawn_attention(random, drawn.sizes);
    drawn.kernel = kernel_of(drawn.text).kernel;
    drawn.inputs = drawn_inputs(drawn.kernel, drawn.sizes, random);
    constexpr int64_t kSides[] = {16, 32, 64, 128};
    const tile::ThreadBlock block{kSides[random.between(0, 3)], kSides[random.between(0, 2)]};
    const tile::HeadParts parts{kSides[random.between(0, 2)], kSides[random.between(0, 2)]};
    const ir::Kernel loops =
        loops_of(drawn.kernel, block, parts, random.chance(0.7) ? "sm_80" : "sm_75");
    SCOPED_TRACE(
        fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}{}", seed, drawn.text, ir::print(loops)));
    const std::vector<HostTensor> expected =
        language::evaluate(drawn.kernel.definition, drawn.kernel.names, drawn.sizes, drawn.inputs);
    expect_near(interpret_loops(loops, drawn.sizes, drawn.inputs, expected, true).at(0),
                expected.at(0), drawn.inputs.at(2));
    if (HasFailure()) return;
    drawn.expected = expected.at(0);
    drawn.place = gpu.add(loops);
  }
  gpu.compile(false);
  for (const Drawn& drawn : all) {
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", drawn.seed, drawn.text));
    expect_near(gpu.run(drawn.place, drawn.sizes, drawn.inputs).at(0), drawn.expected,
                drawn.inputs.at(2));
    if (HasFailure()) return;
  }
}

/// Beside heads that a block has whole: numbers of a result that another block has, and queries and
/// keys of which it multiplies a part at a time.
TEST(ThreadedAttention, OfWideHeadsIsTheDefinition) {
  struct Case {
    const char* type;
    const char* depth;
    const char* width;
    const char* arch;
    tile::HeadParts parts;
  };
  const Case cases[] = {{"float16", "512", "512", "sm_80", {256, 512}},
                        {"bfloat16", "300", "330", "sm_89", {256, 512}},
                        {"float32", "512", "512", "sm_80", {512, 32}},
                        {"float32", "331", "300", "sm_75", {256, 64}},
                        {"float16", "576", "512", "sm_75", {256, 64}}};
  HostGpu gpu;
  Random random(1);
  std::vector<language::Kernel> kernels;
  std::vector<std::vector<HostTensor>> inputs;
  for (const Case& each : cases) {
    Attention written;
    written.type = each.type;
    written.batches.clear();
    written.depth.second = each.depth;
    written.column.second = each.width;
    written.query = {{"i", "70"}, {"k", each.depth}};
    written.keys = {{"j", "70"}, {"k", each.depth}};
    written.values = {{"j", "70"}, {"d", each.width}};
    written.output = {{"i", "70"}, {"d", each.width}};
    written.score = "select(j <= i, T * 0.0625, -inf)";
    const language::Kernel& kernel = kernels.emplace_back(kernel_of(written.text()).kernel);
    inputs.push_back(drawn_inputs(kernel, {}, random));
    const tile::ThreadBlock block{32, 32};
    const tile::HeadParts parts =
        tile::parts_of(tile::threaded_work(kernel, each.arch), block, each.arch);
    EXPECT_EQ(parts.columns, each.parts.columns) << each.arch;
    EXPECT_EQ(parts.depth, each.parts.depth) << each.arch;
    const ir::Kernel loops = loops_of(kernel, block, parts, each.arch);
    // Of 4 x 2 sums a thread of lanes shares the steps with three others.
    const bool are_shared = ir::print(loops).find("pairs") != std::string::npos;
    EXPECT_EQ(are_shared, !tile::threaded_work(kernel, each.arch).has_matrices) << each.arch;
    gpu.add(loops);
  }
  gpu.compile(false);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const HostTensor expected =
        language::evaluate(kernels[i].definition, kernels[i].names, {}, inputs[i]).at(0);
    SCOPED_TRACE(i);
    expect_near(gpu.run(i, {}, inputs[i]).at(0), expected, inputs[i].at(2));
  }
}

/// Queries, keys and values that are one tensor have memory of their own in a block.
TEST(ThreadedAttention, OfOneTensorIsTheDefinition) {
  HostGpu gpu;
  Random random(1);
  std::vector<language::Kernel> kernels;
  std::vector<std::vector<HostTensor>> inputs;
  for (const char* type : {"float16", "float32"}) {
    const language::Kernel& kernel = kernels.emplace_back(
        kernel_of(fmt::format(R"(kernel attention(X: {0}[2, 40, 32]) -> (O: float32[2, 40, 32]) {{
          S: float32[2, 40, 40]
          S[b, i, j] = sum[k < 32](float32(X[b, i, k]) * float32(X[b, j, k])) * 0.125
          M: float32[2, 40]
          M[b, i] = max[j < 40](S[b, i, j])
          E: float32[2, 40, 40]
          E[b, i, j] = exp(S[b, i, j] - M[b, i])
          L: float32[2, 40]
          L[b, i] = sum[j < 40](E[b, i, j])
          W: {0}[2, 40, 40]
          W[b, i, j] = {0}(E[b, i, j] / L[b, i])
          O[b, i, d] = sum[j < 40](float32(W[b, i, j]) * float32(X[b, j, d])) }})",
                              type))
            .kernel);
    inputs.push_back(drawn_inputs(kernel, {}, random));
    gpu.add(loops_of(kernel, {32, 32}, kWhole, "sm_80"));
  }
  gpu.compile(false);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const HostTensor expected =
        language::evaluate(kernels[i].definition, kernels[i].names, {}, inputs[i]).at(0);
    expect_near(gpu.run(i, {}, inputs[i]).at(0), expected, inputs[i].at(0));
  }
}

/// The code of a part of the keys is there once: two products.
TEST(ThreadedAttention, MasksInTheLoopThatGoesThroughAllKeys) {
  Attention written;
  written.score = "select(j <= i, T * 0.25, -inf)";
  const ir::Kernel loops = loops_of(kernel_of(written.text()).kernel, {32, 32}, kWhole, "sm_80");
  EXPECT_EQ(count_in(source_of(loops), "kiln_multiply<kiln_float16"), 2U) << source_of(loops);
}

/// Whether the threads of a block compute this one as the definition says; what they do wrong is
/// found, too.
bool is_right_on_host(const language::Kernel& kernel, const ir::Kernel& loops) {
  HostGpu gpu;
  gpu.add(loops);
  gpu.compile(false);
  Random random(1);
  const std::vector<HostTensor> inputs = drawn_inputs(kernel, {}, random);
  const HostTensor expected = language::evaluate(kernel.definition, kernel.names, {}, inputs).at(0);
  const std::vector<double> errors = {0.01};
  try {
    return difference(gpu.run(0, {}, inputs), {expected}, errors).empty();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unavailable) << error.message();
    return false;
  }
}

/// Of keys in four parts.
TEST(ThreadedAttention, MissesEachOfItsBarriersAndAwaits) {
  const language::Kernel kernel = kernel_of(Attention{.batches = {},
                                                      .row = {"i", "40"},
                                                      .key = {"j", "128"},
                                                      .query = {{"i", "40"}, {"k", "16"}},
                                                      .keys = {{"j", "128"}, {"k", "16"}},
                                                      .values = {{"j", "128"}, {"d", "16"}},
                                                      .output = {{"i", "40"}, {"d", "16"}}}
                                                .text())
                                      .kernel;
  const ir::Kernel loops = loops_of(kernel, {32, 32}, kWhole, "sm_80");
  EXPECT_TRUE(is_right_on_host(kernel, loops));
  const std::string source = source_of(loops);
  for (const auto& [what, call, least] :
       {std::tuple("FAKE_NVRTC_WITHOUT_BARRIER", "__syncthreads();", 3U),
        std::tuple("FAKE_NVRTC_WITHOUT_AWAIT", "kiln_await<", 2U)}) {
    const size_t copies = count_in(source, call);
    EXPECT_GE(copies, least) << source;
    for (size_t i = 0; i < copies; ++i) {
      const Setting without(what, std::to_string(i));
      EXPECT_FALSE(is_right_on_host(kernel, loops)) << what << i << source;
    }
  }
}

}  // namespace
}  // namespace kiln::testing::attention
