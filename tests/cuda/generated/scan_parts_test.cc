// Scans whose steps run in parts at once, as the threads of a GPU compute them: in the interpreter,
// and as their CUDA C on the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/scan_part_cases.h"

namespace kiln::testing {
namespace {

class ScanPartsOnHost : public ::testing::TestWithParam<ScanPartCase> {};

TEST_P(ScanPartsOnHost, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(gpu_difference(text, loops, GetParam().sizes), "") << ir::print(loops);
  EXPECT_EQ(difference_on_host(text, loops, GetParam().sizes), "") << source_of(loops);
}

INSTANTIATE_TEST_SUITE_P(All, ScanPartsOnHost, ::testing::ValuesIn(kScanPartCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Untouched, with the order of sums left open.
TEST(ScanPartsByThemselves, OfTheCompilerAreWhatTheDefinitionSays) {
  for (const auto& [shape, sizes] :
       std::vector<std::pair<std::string, std::vector<int64_t>>>{{"9000", {}}, {"n", {1500}}}) {
    const language::TextKernel text = kernel_of(fmt::format(
        "kernel k(X: float32[{0}]) -> (S: float32[{0}]) {{ scan t {{ S[0] = X[0]  S[t] = S[t - 1] "
        "+ X[t] }} }}",
        shape));
    const ir::Kernel loops = gpu_loops(text, {.fast = true});
    EXPECT_NE(ir::print(loops).find("S.before"), std::string::npos) << ir::print(loops);
    EXPECT_EQ(gpu_difference(text, loops, sizes), "");
    EXPECT_EQ(difference_on_host(text, loops, sizes), "") << source_of(loops);
  }
}

}  // namespace
}  // namespace kiln::testing
