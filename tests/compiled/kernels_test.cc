#include "tests/schedule/kernels.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/language/evaluate/evaluate.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

HostTensor random_tensor(std::vector<int64_t> shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& value : values) {
    value = number(random);
  }
  return tensor_of(std::move(shape), values);
}

const Target kHost = {TargetKind::Llvm, ""};

/// The kernel with the steps it has, and with those chosen for stages that have none.
std::vector<HostTensor> run(const Te& te, const std::vector<int64_t>& sizes,
                            const std::vector<HostTensor>& inputs, bool automatic,
                            int threads = 2) {
  const language::Schedule schedule =
      automatic ? choose_schedule(te.kernel, te.schedule, kHost, {}) : te.schedule;
  return run_on_cpu(te.kernel, schedule, sizes, inputs, threads);
}

void expect_close(const HostTensor& actual, const HostTensor& expected, double tolerance) {
  ASSERT_EQ(actual.shape, expected.shape);
  const std::vector<float> a = values_of<float>(actual);
  const std::vector<float> b = values_of<float>(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0f, std::fabs(b[i]))) << "element " << i;
  }
}

/// Scheduled automatically and not, for several thread counts: as the definition says, and the same
/// bits for every thread count.
void expect_as_defined(const Te& te, const std::vector<int64_t>& sizes,
                       const std::vector<HostTensor>& inputs, double tolerance = 1e-5) {
  const std::vector<HostTensor> expected =
      language::evaluate(te.kernel.definition, te.kernel.names, sizes, inputs);
  for (const bool automatic : {false, true}) {
    SCOPED_TRACE(automatic ? "automatic schedule" : "plain loops");
    const std::vector<HostTensor> first = run(te, sizes, inputs, automatic, 1);
    ASSERT_EQ(first.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      expect_close(first[i], expected[i], tolerance);
    }
    for (const int threads : {2, 3, 5, 16}) {
      const std::vector<HostTensor> again = run(te, sizes, inputs, automatic, threads);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(again[i].bytes, first[i].bytes) << threads << " threads";
      }
    }
  }
}

TEST(CompiledKernel, AddsOne) {
  const AddOne kernel;
  expect_as_defined(kernel.te, {37, 61}, {random_tensor({37, 61}, 1)}, 0);
}

TEST(CompiledKernel, SumsRows) {
  const RowSum kernel;
  expect_as_defined(kernel.te, {13, 1000}, {random_tensor({13, 1000}, 1)}, 1e-4);
}

TEST(CompiledKernel, MultipliesMatrices) {
  const Matmul symbolic;
  expect_as_defined(symbolic.te, {50, 30, 70},
                    {random_tensor({50, 70}, 1), random_tensor({70, 30}, 2)});
  const Matmul constant(100, 70, 50);
  expect_as_defined(constant.te, {}, {random_tensor({100, 50}, 1), random_tensor({50, 70}, 2)});
}

TEST(CompiledKernel, ScansOfTwoStagesAndTwoStates) {
  const TwoStageScan stages;
  expect_as_defined(stages.te, {10, 129}, {random_tensor({10, 129}, 1)});
  const TwoStateScan states;
  expect_as_defined(states.te, {10, 129, 7}, {random_tensor({10, 129}, 1)});
}

TEST(CompiledKernel, StencilOfAStencil) {
  const Stencils kernel;
  expect_as_defined(kernel.te, {}, {random_tensor({103}, 1)});
}

/// One kernel for all sizes; sums are in the order of time, to the last bit.
TEST(CompiledKernel, RunningSumKeepsItsOrder) {
  Cumsum plain;
  Cumsum bound;
  for (const TeTensor& stage : {bound.init, bound.update}) {
    bound.te.split(stage, "i", 256);
    bound.te.bind(stage, "i.outer", "blockIdx.x");
    bound.te.bind(stage, "i.inner", "threadIdx.x");
  }
  const std::vector<std::pair<const char*, language::Schedule>> schedules = {
      {"plain", {}},
      {"automatic", choose_schedule(plain.te.kernel, {}, kHost, {})},
      {"bound", bound.te.schedule}};
  for (const auto& [name, schedule] : schedules) {
    const auto artifact = compile_for_host(plain.te.kernel, schedule);
    for (const int64_t n : {1024, 1000, 31, 1, 0}) {
      const HostTensor X = random_tensor({10, n}, 7);
      std::vector<float> expected = values_of<float>(X);
      for (size_t i = static_cast<size_t>(n); i < expected.size(); ++i) {
        expected[i] = expected[i - static_cast<size_t>(n)] + expected[i];
      }
      for (const int threads : {1, 2, 3, 5, 16}) {
        std::vector<HostTensor> tensors = {X, {}};
        run_artifact(artifact, tensors, {}, threads);
        EXPECT_EQ(values_of<float>(tensors[1]), expected)
            << name << " schedule, " << n << " columns, " << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace kiln::testing
