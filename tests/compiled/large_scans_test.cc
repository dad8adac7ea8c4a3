/// Scans whose outputs get non-temporal stores, and whose states are kept apart for it.

#include <cstring>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

struct Example {
  const char* name;
  int64_t rows;
  int64_t columns;
  bool is_backwards;

  std::string text() const {
    const std::string shape = fmt::format("uint32[{}, {}]", rows, columns);
    const std::string scan =
        is_backwards ? fmt::format("scan t reverse {{ S[{0} + j, i] = X[{0} + j, i]", rows - 1)
                     : "scan t { S[0, i] = X[0, i]";
    return fmt::format(
        "kernel k(X: {0}) -> (S: {0}) {{ {1}  S[t, i] = S[t {2} 1, i]*3 + X[t, i] }} }}", shape,
        scan, is_backwards ? '+' : '-');
  }
};

/// Steps in groups of four, of which all, some or none are left; blocks that the columns fill or do
/// not.
constexpr Example kExamples[] = {
    {"Down", 2049, 1024, false},
    {"ThreeLeft", 2400, 1008, false},
    {"FewSteps", 3, 1048576, false},
    {"Up", 2100, 1040, true},
};

class LargeScans : public ::testing::TestWithParam<Example> {};
INSTANTIATE_TEST_SUITE_P(Shapes, LargeScans, ::testing::ValuesIn(kExamples),
                         [](const auto& info) { return info.param.name; });

TEST_P(LargeScans, HaveEveryStep) {
  const Example& example = GetParam();
  const int64_t rows = example.rows;
  const int64_t columns = example.columns;
  const language::Kernel kernel = kernel_of(example.text()).kernel;
  HostTensor input = zeros(DType::UInt32, {rows, columns});
  const auto count = static_cast<size_t>(rows * columns);
  std::vector<uint32_t> x(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = static_cast<uint32_t>(i * 2654435761u);
  std::memcpy(input.bytes.data(), x.data(), count * 4);
  const auto schedule = choose_schedule(kernel, {}, Target{TargetKind::Llvm, ""}, {});
  const std::vector<HostTensor> outputs = run_on_cpu(kernel, schedule, {}, {input});

  const auto row_of = [&](int64_t t) { return example.is_backwards ? rows - 1 - t : t; };
  for (int64_t t = 1; t < rows; ++t) {
    for (int64_t i = 0; i < columns; ++i)
      x[static_cast<size_t>(row_of(t) * columns + i)] +=
          3 * x[static_cast<size_t>(row_of(t - 1) * columns + i)];
  }
  EXPECT_EQ(std::memcmp(outputs[0].bytes.data(), x.data(), count * 4), 0);
}

}  // namespace
}  // namespace kiln::testing
