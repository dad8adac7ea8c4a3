// Attentions as the threads of a GPU compute them, whose scores are never stored: in the
// interpreter, which looks for threads that do not wait for each other, and as their CUDA C on the
// host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/lower.h"
#include "compiler/tile/thread_attention.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/tile/attentions.h"

namespace kiln::testing {
namespace {

ir::Kernel loops_of(const language::Kernel& kernel, const tile::ThreadBlock& block,
                    const std::string& arch) {
  LoweringObserver silent;
  return run_passes(tile::threaded_attention(kernel, block, arch), {TargetKind::Cuda, arch}, {},
                    Layout::Compact, silent);
}

/// One that is drawn.
struct Drawn {
  uint64_t seed;
  std::string text;
  language::Kernel kernel;
  std::vector<int64_t> sizes;
  std::vector<HostTensor> inputs;
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
    const ir::Kernel loops = loops_of(drawn.kernel, block, random.chance(0.7) ? "sm_80" : "sm_75");
    SCOPED_TRACE(
        fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}{}", seed, drawn.text, ir::print(loops)));
    const std::vector<HostTensor> expected =
        language::evaluate(drawn.kernel.definition, drawn.kernel.names, drawn.sizes, drawn.inputs);
    expect_near(interpret_loops(loops, drawn.sizes, drawn.inputs, expected, true).at(0),
                expected.at(0), drawn.inputs.at(2));
    if (HasFailure()) return;
    drawn.place = gpu.add(loops);
  }
  gpu.compile(false);
  for (const Drawn& drawn : all) {
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", drawn.seed, drawn.text));
    const std::vector<HostTensor> expected =
        language::evaluate(drawn.kernel.definition, drawn.kernel.names, drawn.sizes, drawn.inputs);
    expect_near(gpu.run(drawn.place, drawn.sizes, drawn.inputs).at(0), expected.at(0),
                drawn.inputs.at(2));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace kiln::testing
