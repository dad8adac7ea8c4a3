#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"

/// Whole definitions, without a step and with those of their file for GPUs, on their way to CUDA.
namespace kiln {
namespace {

namespace fs = std::filesystem;

/// Where there is none, loops are all that is looked at.
bool has_nvrtc() {
  try {
    return !codegen::describe_nvrtc().empty();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unavailable) throw;
    return false;
  }
}

/// The oldest, one between, and the newest.
std::vector<std::string> architectures() {
  if (std::getenv("KILN_LONG") == nullptr) return {"sm_75", "sm_90", "sm_120"};
  return {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
}

/// The reason why a definition is refused; empty where it is compiled, for both layouts.
std::string refusal(const language::Kernel& kernel, const std::string& arch,
                    const language::Schedule& steps = {}) {
  const Target target{TargetKind::Cuda, arch};
  const CompileOptions options;
  LoweringObserver observer;
  try {
    const language::Schedule schedule = choose_schedule(kernel, steps, target, options);
    const auto lowered = [&](Layout layout) {
      return lower(kernel, schedule, target, options, layout, observer);
    };
    const ir::Kernel compact = lowered(Layout::Compact);
    const ir::Kernel strided = lowered(Layout::Strided);
    if (has_nvrtc()) codegen::make_cuda_artifact(compact, &strided, {target.arch});
    return "";
  } catch (const Error& error) {
    return error.reason() + ": " + error.message();
  }
}

class DefinitionFile : public ::testing::TestWithParam<fs::path> {};

TEST_P(DefinitionFile, IsCompiledForCuda) {
  std::ifstream stream(GetParam());
  std::ostringstream text;
  text << stream.rdbuf();
  for (const language::TextKernel& kernel : language::parse_text(text.str(), "test.kiln")) {
    const std::string& name = kernel.kernel.names.kernel;
    for (const std::string& arch : architectures()) {
      EXPECT_EQ(refusal(kernel.kernel, arch), "") << name << ", " << arch;
      for (const auto& [target, steps] : kernel.schedules) {
        if (target != "cuda") continue;
        EXPECT_EQ(refusal(kernel.kernel, arch, steps), "") << name << " as scheduled, " << arch;
      }
    }
  }
}

/// Operators with more leading dimensions, as clients map them over images and batches.
constexpr const char* kMapped[] = {
    R"(kernel batch_matmul(A: float32[b, m, l], B: float32[b, l, n]) -> (C: float32[b, m, n]) {
      C[a, i, j] = sum[k < l](A[a, i, k] * B[a, k, j]) })",
    R"(kernel dense(A: float32[b, c, l], W: float32[n, l]) -> (C: float32[b, c, n]) {
      C[a, i, j] = sum[k < l](A[a, i, k] * W[j, k]) })",
    R"(kernel softmax(X: float32[a, b, n]) -> (Y: float32[a, b, n]) {
      M: float32[a, b]
      M[i, j] = max[k < n](X[i, j, k])
      E: float32[a, b, n]
      E[i, j, k] = exp(X[i, j, k] - M[i, j])
      S: float32[a, b]
      S[i, j] = sum[k < n](E[i, j, k])
      Y[i, j, k] = E[i, j, k] / S[i, j] })",
    R"(kernel pool(X: float32[n, c, h, w])
        -> (Y: float32[n, c, (h - r) // sh + 1, (w - s) // sw + 1]) {
      Y[b, k, i, j] = max[p < r, q < s](X[b, k, i * sh + p, j * sw + q]) })",
    R"(kernel conv(X: float32[n, c, h, w], W: float32[m, c, r, s])
        -> (Y: float32[n, m, (h - (r - 1) * d - 1) // sh + 1, (w - (s - 1) * e - 1) // sw + 1]) {
      Y[b, o, i, j] = sum[k < c, p < r, q < s](
        X[b, k, i * sh + p * d, j * sw + q * e] * W[o, k, p, q]) })",
    R"(kernel conv_of_constants(X: float32[1, 3, 224, 224], W: float32[64, 3, 7, 7])
        -> (Y: float32[1, 64, 109, 109]) {
      Y[b, o, i, j] = sum[k < 3, p < 7, q < 7](
        X[b, k, i * 2 + p, j * 2 + q] * W[o, k, p, q]) })",
};

TEST(Definitions, WithLeadingDimensionsAreCompiledForCuda) {
  for (const char* text : kMapped) {
    const language::TextKernel kernel = testing::kernel_of(text);
    EXPECT_EQ(refusal(kernel.kernel, "sm_90"), "") << kernel.kernel.names.kernel;
  }
}

std::vector<fs::path> files() {
  std::vector<fs::path> result;
  for (const char* folder : {KILN_TEST_KERNELS, KILN_OPERATORS}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".kiln") result.push_back(entry.path());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, DefinitionFile, ::testing::ValuesIn(files()), [](const auto& info) {
  return info.param.parent_path().stem().string() + "_" + info.param.stem().string();
});

}  // namespace
}  // namespace kiln
