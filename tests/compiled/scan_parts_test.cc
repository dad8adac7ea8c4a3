// Scans whose steps run in parts at once on the cores of a CPU.
#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/scan_part_cases.h"

namespace kiln::testing {
namespace {

class ScanPartsOnCores : public ::testing::TestWithParam<ScanPartCase> {};

TEST_P(ScanPartsOnCores, AreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(GetParam().text);
  Random random(3);
  const std::vector<HostTensor> inputs = random_inputs(text.kernel, GetParam().sizes, random);
  const auto expected =
      language::evaluate(text.kernel.definition, text.kernel.names, GetParam().sizes, inputs);
  const language::Schedule& steps = text.schedules.at(1).second;
  const auto actual = run_on_cpu(text.kernel, steps, GetParam().sizes, inputs);
  EXPECT_EQ(difference(actual, expected, std::vector<double>(expected.size(), 1e-6)), "");
}

INSTANTIATE_TEST_SUITE_P(All, ScanPartsOnCores, ::testing::ValuesIn(kScanPartCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::testing
