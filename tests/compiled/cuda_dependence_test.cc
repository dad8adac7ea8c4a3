// Which kernels of the test files run on a GPU as they are scheduled automatically: all whose
// blocks do not need each other, without a barrier where threads do not either.
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
                         ::testing::Values(Case{"matmul", "matmul"}, Case{"matmul", "matmul_ta"},
                                           Case{"matmul", "matmul_tb"},
                                           Case{"matmul", "matmul_tab"},
                                           Case{"matmul", "batch_matmul"}, Case{"conv2d", "conv2d"},
                                           Case{"tensor", "tile"}, Case{"tensor", "bytes"},
                                           Case{"awkward", "tiles_of_tiles"}),
                         [](const auto& info) { return std::string(info.param.kernel); });

TEST(DependentKernels, AreRefusedWithTheTwoElements) {
  const Error error = expect_error(
      [] { lowered("awkward", "mirrored_scan"); }, ErrorKind::Unsupported,
      "GPU blocks of mirrored_scan depend on each other through S, and nothing orders blocks of "
      "one launch; bind axes that the dependence does not cross");
  ASSERT_FALSE(error.notes().empty());
  EXPECT_EQ(error.notes()[0],
            "S[S.idx, n - blockIdx.x*256 - threadIdx.x - 1] and S[S.idx + 1, blockIdx.x*256 + "
            "threadIdx.x] "
            "may be one element in different blocks");
}

}  // namespace
}  // namespace kiln::testing
