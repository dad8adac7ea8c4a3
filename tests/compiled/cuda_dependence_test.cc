// How kernels of the test files run on a GPU as they are scheduled automatically: those whose
// blocks do not need each other in one launch, without a barrier where threads do not either,
// others in launches that the host repeats.
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/print.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

ir::Kernel lowered(const char* file, const char* name) {
  const language::Kernel kernel = test_kernel(file, name).kernel;
  const Target target{TargetKind::Cuda, "sm_90"};
  LoweringObserver silent;
  return lower(kernel, choose_schedule(kernel, {}, target, {}), target, {}, Layout::Compact,
               silent);
}

struct Case {
  const char* file;
  const char* kernel;
};
std::ostream& operator<<(std::ostream& stream, const Case& test) { return stream << test.kernel; }

class IndependentKernels : public ::testing::TestWithParam<Case> {};

TEST_P(IndependentKernels, RunOnAGpuWithoutABarrier) {
  const std::string text = ir::print(lowered(GetParam().file, GetParam().kernel));
  EXPECT_NE(text.find("blockIdx.x"), std::string::npos) << text;
  EXPECT_EQ(text.find("barrier"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(All, IndependentKernels,
                         ::testing::Values(Case{"conv2d", "conv2d"}, Case{"tensor", "bytes"},
                                           Case{"awkward", "tiles_of_tiles"}),
                         [](const auto& info) { return std::string(info.param.kernel); });

class DependentKernels : public ::testing::TestWithParam<Case> {};

TEST_P(DependentKernels, AreLaunchesThatTheHostRepeats) {
  const ir::Kernel loops = lowered(GetParam().file, GetParam().kernel);
  EXPECT_NE(ir::print(loops).find(" host {"), std::string::npos) << ir::print(loops);
  const std::string& note = loops.notes.back();
  EXPECT_NE(note.find("is launches of its own: blocks depend on each other"), std::string::npos)
      << note;
}

INSTANTIATE_TEST_SUITE_P(All, DependentKernels,
                         ::testing::Values(Case{"awkward", "mirrored_scan"},
                                           Case{"awkward", "last_mirrored"},
                                           Case{"two_state_scan", "two_state_scan"},
                                           Case{"lstm", "lstm"}),
                         [](const auto& info) { return std::string(info.param.kernel); });

}  // namespace
}  // namespace kiln::testing
