#include <cmath>
#include <random>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

struct Case {
  const char* file;
  const char* kernel;
  std::vector<int64_t> sizes;
  double tolerance = 1e-4;
};

std::ostream& operator<<(std::ostream& stream, const Case& test) {
  return stream << test.kernel << "(" << fmt::format("{}", fmt::join(test.sizes, ", ")) << ")";
}

std::vector<HostTensor> inputs_of(const language::Kernel& kernel,
                                  const std::vector<int64_t>& sizes) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<HostTensor> inputs;
  const language::Definition& definition = kernel.definition;
  for (const language::TensorId parameter : definition.parameters) {
    if (definition.is_output(parameter)) continue;
    std::vector<int64_t> shape;
    for (const language::ExprId extent : definition.shape_of(parameter)) {
      shape.push_back(language::evaluate_size(definition, extent, sizes));
    }
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (float& value : values) {
      value = number(random);
    }
    inputs.push_back(tensor_of(std::move(shape), values));
  }
  return inputs;
}

void expect_close(const HostTensor& actual, const HostTensor& expected, double tolerance) {
  ASSERT_EQ(actual.shape, expected.shape);
  ASSERT_EQ(actual.type, DType::Float32);
  const std::vector<float> a = values_of<float>(actual);
  const std::vector<float> b = values_of<float>(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0f, std::fabs(b[i]))) << "element " << i;
  }
}

/// In plain loops, as it is scheduled automatically, and as its own schedules say; for any number
/// of threads the same bits.
void expect_as(const language::TextKernel& text, const Case& test,
               const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& expected) {
  const language::Kernel& kernel = text.kernel;
  std::vector<std::pair<std::string, language::Schedule>> schedules = {
      {"plain", {}}, {"automatic", choose_schedule(kernel, {}, {TargetKind::Llvm, ""}, {})}};
  for (const auto& [target, schedule] : text.schedules) {
    schedules.emplace_back(target, schedule);
  }
  for (const auto& [name, schedule] : schedules) {
    SCOPED_TRACE(name);
    const auto first = run_on_cpu(kernel, schedule, test.sizes, inputs, 1);
    ASSERT_EQ(first.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      expect_close(first[i], expected[i], test.tolerance);
    }
    const auto second = run_on_cpu(kernel, schedule, test.sizes, inputs, 3);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(second[i].bytes, first[i].bytes);
    }
  }
}

class KernelFiles : public ::testing::TestWithParam<Case> {};

TEST_P(KernelFiles, GiveWhatTheirDefinitionsSay) {
  const Case& test = GetParam();
  const language::TextKernel text = test_kernel(test.file, test.kernel);
  const language::Kernel& kernel = text.kernel;
  const std::vector<HostTensor> inputs = inputs_of(kernel, test.sizes);
  expect_as(text, test, inputs,
            language::evaluate(kernel.definition, kernel.names, test.sizes, inputs));
}

/// Too large for the evaluator.
TEST(BatchedKernel, IsMultiplied) {
  const language::TextKernel text = test_kernel("matmul", "batch_matmul");
  const std::vector<HostTensor> inputs = inputs_of(text.kernel, {});
  const std::vector<float> a = values_of<float>(inputs[0]);
  const std::vector<float> b = values_of<float>(inputs[1]);
  std::vector<float> c(32 * 128 * 128);
  for (size_t n = 0; n < 32; ++n) {
    for (size_t i = 0; i < 128; ++i) {
      for (size_t k = 0; k < 64; ++k) {
        for (size_t j = 0; j < 128; ++j) {
          c[(n * 128 + i) * 128 + j] += a[(n * 128 + i) * 64 + k] * b[(n * 64 + k) * 128 + j];
        }
      }
    }
  }
  expect_as(text, {"matmul", "batch_matmul", {}}, inputs, {tensor_of({32, 128, 128}, c)});
}

INSTANTIATE_TEST_SUITE_P(
    All, KernelFiles,
    ::testing::Values(
        Case{"matmul", "matmul", {50, 70, 30}}, Case{"matmul", "matmul", {64, 64, 64}},
        Case{"matmul", "matmul", {1, 1, 1}}, Case{"matmul", "matmul", {33, 0, 17}},
        Case{"matmul", "matmul_ta", {33, 45, 37}}, Case{"matmul", "matmul_tb", {33, 45, 37}},
        Case{"matmul", "matmul_tab", {33, 45, 37}}, Case{"softmax", "softmax", {13, 100}},
        Case{"softmax", "softmax", {1, 1}}, Case{"conv2d", "conv2d", {}},
        Case{"cumsum", "cumsum", {10, 1000}}, Case{"cumsum", "cumsum", {10, 0}},
        Case{"two_stage_scan", "", {10, 129}}, Case{"two_state_scan", "", {10, 129, 7}},
        Case{"row_cumsum", "", {33, 50}}, Case{"row_cumsum", "", {3, 1}},
        Case{"rows_before", "rows_before", {9, 20}}, Case{"rows_before", "rows_before", {1, 3}},
        Case{"rows_before", "two_rows_before", {9, 20}},
        Case{"rows_before", "two_rows_before", {2, 3}}, Case{"rows_before", "rows_after", {9, 20}},
        Case{"rows_before", "rows_after", {1, 3}}, Case{"backward", "", {20, 70}},
        Case{"backward", "", {2, 5}}, Case{"lstm", "", {6, 40}}, Case{"lstm", "", {1, 8}},
        Case{"tensor", "tile", {9, 20}}, Case{"tensor", "tile", {8, 0}}),
    [](const auto& info) {
      std::string name = std::string(info.param.file) + "_" + info.param.kernel;
      for (const int64_t size : info.param.sizes) {
        name += "_" + std::to_string(size);
      }
      return name;
    });

}  // namespace
}  // namespace kiln::testing
