// What is predicted of a launch from its loops, beside the machine code that NVRTC makes of them:
// registers, multiply-adds, and how wide memory is accessed.
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/codegen/cubin.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/main_loop.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/lower.h"
#include "compiler/predict/launch_work.h"
#include "tests/support/kernels.h"
#include "tests/support/needs_nvrtc.h"

namespace kiln::testing::predicted_counts {
namespace {

std::string product(std::string_view type, std::string_view a = "A[i, k]",
                    std::string_view b = "B[k, j]", std::string_view cast = "float32") {
  return fmt::format(
      "kernel k(A: {0}[4096, 4096], B: {0}[4096, 4096]) -> (C: float32[4096, 4096]) {{ C[i, j] = "
      "sum[k < 4096]({3}({1}) * {3}({2})) }}",
      type, a, b, cast);
}

struct Case {
  const char* name;
  std::string text;
  double multiply_adds = 0;  // of a thread, in its main loop: in all of its iterations
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.name; }

const Case kCases[] = {
    {"float32", product("float32", "A[i, k]", "B[k, j]", ""), 64 * 4096.0},
    {"float32_turned", product("float32", "A[k, i]", "B[j, k]", ""), 64 * 4096.0},
    {"float16", product("float16")},
    {"float16_turned", product("float16", "A[k, i]", "B[j, k]")},
    {"tf32", product("float32", "A[i, k]", "B[j, k]", "tf32")},
    {"softmax",
     R"(kernel k(X: float32[4096, 1000]) -> (Y: float32[4096, 1000]) {
      M: float32[4096]
      M[i] = max[k < 1000](X[i, k])
      E: float32[4096, 1000]
      E[i, j] = exp(X[i, j] - M[i])
      T: float32[4096]
      T[i] = sum[k < 1000](E[i, k])
      Y[i, j] = E[i, j] / T[i] })"},
    {"sums_of_rows",
     "kernel k(X: float32[4096, 4096]) -> (Y: float32[4096]) { Y[i] = sum[k < 4096](X[i, k]) }"},
    {"sums_of_columns",
     "kernel k(X: float32[4096, 4096]) -> (Y: float32[4096]) { Y[j] = sum[k < 4096](X[k, j]) }"},
    {"transpose",
     "kernel k(X: float32[4096, 4096]) -> (Y: float32[4096, 4096]) { Y[i, j] = X[j, i] }"},
    {"elements",
     "kernel k(X: float32[4096, 4096], b: float32[4096]) -> (Y: float32[4096, 4096]) { Y[i, j] = "
     "max(X[i, j] + b[j], 0.0) }"},
    {"running_sums",
     "kernel k(X: float32[4096, 4096]) -> (S: float32[4096, 4096]) { scan t { S[0, i] = X[0, i] "
     "S[t, i] = S[t - 1, i] + X[t, i] } }"},
};

class PredictedCounts : public NeedsNvrtc<::testing::TestWithParam<Case>> {};

TEST_P(PredictedCounts, AreThoseOfTheCode) {
  const language::Kernel kernel = kernel_of(GetParam().text).kernel;
  const Target target{TargetKind::Cuda, "sm_90"};
  LoweringObserver silent;
  const ir::Kernel loops =
      lower(kernel, choose_schedule(kernel, {}, target, {}), target, {}, Layout::Compact, silent);
  const predict::HasMatrices has_matrices = [](DType a, DType b) {
    return (a == DType::Float32 ? ir::tensor_float_unit() : ir::matrix_unit(a, b)).has_value();
  };
  const predict::Nest nest = predict::nest_of(loops, {}, 255 * 4, has_matrices);
  const Artifact artifact = codegen::make_cuda_artifact(loops, nullptr, {"sm_90"});
  const std::vector<codegen::CubinKernel> kernels = codegen::kernels_of_cubin(artifact.code);
  ASSERT_EQ(nest.inner.size(), 1u);
  ASSERT_EQ(kernels.size(), 1u);

  const predict::LaunchWork launch = predict::launch_work(nest.inner[0], 0, 132);
  // What is held at once is up to NVRTC: within a third, and 12 beside.
  const double error = std::abs(static_cast<double>(launch.registers - kernels[0].registers));
  EXPECT_LE(error, 12 + kernels[0].registers / 3.0)
      << launch.registers << " and " << kernels[0].registers;

  const codegen::MainLoop loop = codegen::main_loop_of(kernels[0].code, "sm_90");
  if (GetParam().multiply_adds > 0) {
    EXPECT_EQ(launch.work.multiply_adds, GetParam().multiply_adds);
    EXPECT_EQ(std::fmod(launch.work.multiply_adds, static_cast<double>(loop.arithmetic)), 0);
  }
  std::set<int64_t> predicted;
  std::set<int64_t> actual;
  for (const predict::AccessRow& row : predict::accesses_of_launch(nest.inner[0], 0))
    if (!row.is_shared() && !row.is_store) predicted.insert(row.bytes);
  for (const codegen::MainLoop::Access& access : loop.accesses)
    if (access.kind == "LDG" || access.kind == "LDGSTS") actual.insert(access.bytes);
  EXPECT_EQ(predicted, actual);
}

INSTANTIATE_TEST_SUITE_P(All, PredictedCounts, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::testing::predicted_counts
