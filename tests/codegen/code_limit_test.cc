#include <gtest/gtest.h>

#include "compiler/lower.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"

namespace kiln {
namespace {

using testing::expect_error;

/// exp(sin(..)) of `factor` elements written out in each thread.
ir::Kernel unrolled(int factor) {
  const language::TextKernel text = testing::kernel_of(fmt::format(
      R"(kernel k(X: float32[n]) -> (Y: float32[n]) {{
        Y[i] = exp(sin(tanh(erf(X[i]))))
        schedule cuda {{
          split(Y.i, factor={})
          bind(Y.i.outer, blockIdx.x)
          unroll(Y.i.inner)
        }}
      }})",
      factor));
  LoweringObserver observer;
  return lower(text.kernel, text.schedules.at(0).second, Target{TargetKind::Cuda, "sm_90"},
               CompileOptions{}, Layout::Compact, observer);
}

TEST(CodeLimit, IsAskedOfCodeForGpusToo) {
  EXPECT_NO_THROW(unrolled(64));
  const Error error = expect_error(
      [] { unrolled(2048); }, ErrorKind::ResourceExhausted,
      "k becomes about 329725 instructions; the limit is 80000; unroll or vectorize less");
  EXPECT_EQ(error.reason(), "CODE_LIMIT");
}

}  // namespace
}  // namespace kiln
