// Plans for CPUs of many cores: that these have work is counted, since nothing as large runs here;
// that they compute the bits of any other plan is run, on more threads than there are cores.
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/lower.h"
#include "compiler/predict/predict.h"
#include "runtime/core/cpu_name.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

/// A product of matrices of a type, into sums of another.
std::string product(std::string_view type, std::string_view sum, int rows, int steps, int columns) {
  return fmt::format(
      "kernel product(A: {0}[{2}, {3}], B: {0}[{3}, {4}]) -> (C: {1}[{2}, {4}]) {{ C[i, j] = sum[k "
      "< "
      "{3}]({1}(A[i, k]) * {1}(B[k, j])) }}",
      type, sum, rows, steps, columns);
}

/// With sizes divided by `part`, for those that run.
std::vector<std::string> kernels(int part) {
  const auto of = [&](int extent) { return std::max(extent / part, 1); };
  const auto scaled = [&](std::string_view text, auto... extents) {
    return fmt::format(fmt::runtime(text), of(extents)...);
  };
  return {
      product("float32", "float32", of(1024), of(1024), of(1024)),
      product("float32", "float32", of(256), of(256), of(256)),
      product("bfloat16", "float32", of(1024), of(1024), of(1024)),
      product("int8", "int32", of(1024), of(1024), of(1024)),
      product("float16", "float32", of(1024), of(1024), of(1024)),
      scaled("kernel batch(A: float32[16, {0}, 64], B: float32[16, 64, {0}]) -> (C: float32[16, "
             "{0}, {0}]) {{ C[b, i, j] = sum[k < 64](A[b, i, k] * B[b, k, j]) }}",
             512),
      scaled("kernel row(A: float32[1, {0}], B: float32[{0}, {0}]) -> (C: float32[1, {0}]) {{ "
             "C[i, j] = sum[k < {0}](A[i, k] * B[k, j]) }}",
             4096),
      scaled("kernel columns(X: float32[{0}, {0}]) -> (Y: float32[{0}]) {{ Y[j] = sum[k < {0}]("
             "X[k, j]) }}",
             4096),
      scaled("kernel rows(X: float32[{0}, {0}]) -> (Y: float32[{0}]) {{ Y[i] = sum[k < {0}]("
             "X[i, k]) }}",
             4096),
      scaled("kernel all(X: float32[{0}, {0}]) -> (S: float32[]) {{ S[] = sum[i < {0}, j < {0}]("
             "X[i, j]) }}",
             4096),
      scaled("kernel few_columns(X: float32[{0}, 8]) -> (Y: float32[8]) {{ Y[j] = sum[k < {0}]("
             "X[k, j]) }}",
             1 << 20),
      scaled("kernel gram(X: float32[{0}, 8]) -> (Y: float32[8, 8]) {{ Y[i, j] = sum[k < {0}]("
             "X[k, i] * X[k, j]) }}",
             1 << 20),
      scaled("kernel running(X: float32[{0}, {0}]) -> (S: float32[{0}, {0}]) {{ scan t {{ S[0, i] "
             "= X[0, i]; S[t, i] = S[t - 1, i] + X[t, i] }} }}",
             4096),
      scaled("kernel turned(X: float32[{0}, {0}]) -> (Y: float32[{0}, {0}]) {{ Y[i, j] = X[j, i] "
             "}}",
             4096),
      scaled(
          "kernel one_row(X: float32[1, {0}]) -> (Y: float32[1, {0}]) {{ Y[i, j] = exp(X[i, j]) }}",
          1 << 22),
      scaled("kernel few_rows(X: float32[3, {0}]) -> (Y: float32[3, {0}]) {{ Y[i, j] = exp(X[i, "
             "j]) }}",
             1 << 22),
      scaled("kernel images(X: float32[1, 64, 58, 58], W: float32[64, 64, 3, 3]) -> (Y: float32[1, "
             "64, 56, 56]) {{ Y[n, o, i, j] = sum[c < 64, r < 3, s < 3](X[n, c, i + r, j + s] * "
             "W[o, c, r, s]) }}")};
}

/// Cycles of the busiest core.
double busiest(const std::string& text, const std::string& arch, int threads) {
  const language::TextKernel parsed = kernel_of(text);
  const Target target{TargetKind::Llvm, arch};
  LoweringObserver observer;
  const ir::Kernel loops = lower(parsed.kernel, choose_schedule(parsed.kernel, {}, target, {}),
                                 target, {}, Layout::Compact, observer);
  const predict::Prediction prediction =
      predict::predict(loops, {}, autoschedule::machine_of(arch), {}, threads);
  return std::ranges::find(prediction.terms, std::string("core"), &predict::Term::name)->cycles;
}

TEST(ManyCores, HaveWorkEach) {
  for (const std::string cpu : {"sapphirerapids", "znver4", "x86-64-v3"}) {
    for (const std::string& text : kernels(1)) {
      const std::string arch = with_cores(cpu, 64);
      EXPECT_GE(busiest(text, arch, 1) / busiest(text, arch, 64), 40) << text << " on " << arch;
    }
  }
}

TEST(ManyCores, ComputeTheBitsOfAnyOtherPlan) {
  Random random(5);
  for (const std::string& text : kernels(8)) {
    SCOPED_TRACE(text);
    const language::TextKernel parsed = kernel_of(text);
    const std::vector<HostTensor> inputs = random_inputs(parsed.kernel, {}, random);
    const auto under = [&](int cores, int threads) {
      const Target target{TargetKind::Llvm, with_cores(host_cpu(), cores)};
      return run_on_cpu(parsed.kernel, choose_schedule(parsed.kernel, {}, target, {}), {}, inputs,
                        threads);
    };
    const std::vector<HostTensor> few = under(2, 2);
    for (const int cores : {16, 64, 128})
      EXPECT_TRUE(under(cores, 16)[0].bytes == few[0].bytes) << cores << " cores";
  }
}

TEST(ManyCores, AreNamedByPowersOfTwo) {
  EXPECT_EQ(with_cores("znver4", 4), "znver4");
  EXPECT_EQ(with_cores("znver4", 5), "znver4+cores8");
  EXPECT_EQ(with_cores("x86-64-v4+avx512vnni", 96), "x86-64-v4+avx512vnni+cores128");
  EXPECT_EQ(with_cores("znver4", 100'000), "znver4+cores1024");
  EXPECT_EQ(without_cores("x86-64-v4+avx512vnni+cores128"), "x86-64-v4+avx512vnni");
  EXPECT_EQ(cores_of("znver4+cores64"), 64);
  EXPECT_EQ(cores_of("znver4"), 4);
  EXPECT_TRUE(is_known_cpu("znver4+cores64"));
  for (const char* const name : {"znver4+cores", "znver4+cores0", "znver4+cores63", "znver4+cores2",
                                 "znver4+cores4096", "znver4+cores99999999999999999999"})
    EXPECT_FALSE(is_known_cpu(name)) << name;
  EXPECT_EQ(host_can_run(with_cores(own_cpu(), 64)), true);
}

}  // namespace
}  // namespace kiln::testing
