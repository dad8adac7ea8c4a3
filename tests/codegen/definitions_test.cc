#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"

/// Whole definitions without a step, on their way to CUDA.
namespace kiln {
namespace {

namespace fs = std::filesystem;

/// What a step of their scan needs of other blocks: a launch is all steps.
const std::map<std::string, std::string> kRefused = {
    {"mirrored_scan", "GRID_DEPENDENCE"},
    {"last_mirrored", "GRID_DEPENDENCE"},
    {"lstm", "GRID_DEPENDENCE"},
    {"two_state_scan", "GRID_DEPENDENCE"},
};

/// The reason why a definition is refused; empty where it is not.
std::string refusal(const language::Kernel& kernel) {
  const Target target{TargetKind::Cuda, "sm_90"};
  const CompileOptions options;
  LoweringObserver observer;
  try {
    const language::Schedule schedule = choose_schedule(kernel, {}, target, options);
    lower(kernel, schedule, target, options, Layout::Compact, observer);
    return "";
  } catch (const Error& error) {
    return error.reason() + (kRefused.contains(kernel.names.kernel) ? "" : error.message());
  }
}

class Definitions : public ::testing::TestWithParam<fs::path> {};

TEST_P(Definitions, AreLoweredForCudaOrRightlyRefused) {
  std::ifstream stream(GetParam());
  std::ostringstream text;
  text << stream.rdbuf();
  for (const language::TextKernel& kernel : language::parse_text(text.str(), "test.kiln")) {
    const std::string& name = kernel.kernel.names.kernel;
    const auto refused = kRefused.find(name);
    EXPECT_EQ(refusal(kernel.kernel), refused == kRefused.end() ? "" : refused->second) << name;
  }
}

std::vector<fs::path> files() {
  std::vector<fs::path> result;
  for (const char* folder : {KILN_TEST_KERNELS, KILN_OPERATORS}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".kiln") result.push_back(entry.path());
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, Definitions, ::testing::ValuesIn(files()), [](const auto& info) {
  return info.param.parent_path().stem().string() + "_" + info.param.stem().string();
});

}  // namespace
}  // namespace kiln
