// Scans whose steps run in parts at once on the cores of a CPU.
#include <cstring>

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

/// No part reads what another one has not looked at.
TEST(ScanPartsOnCores, RefuseIndicesOutside) {
  const language::TextKernel text = kernel_of(
      "kernel k(X: int32[300], I: int32[300]) -> (S: int32[300]) { scan t { S[0] = X[0]  S[t] = "
      "S[t - 1] + X[I[t]] } schedule cpu { pragma(S.idx, scan_in_parts, 64) } }");
  const auto with = [&](int32_t index) {
    std::vector<HostTensor> inputs = {zeros(DType::Int32, {300}), zeros(DType::Int32, {300})};
    std::memcpy(inputs[1].bytes.data() + 250 * sizeof(int32_t), &index, sizeof index);
    return run_on_cpu(text.kernel, text.schedules.at(0).second, {}, inputs);
  };
  EXPECT_EQ(with(299).size(), 1u);
  for (const int32_t index : {-1, 300, 1 << 30}) {
    try {
      with(index);
      ADD_FAILURE() << index;
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "INDEX_OUT_OF_RANGE") << error.message();
    }
  }
}

}  // namespace
}  // namespace kiln::testing
