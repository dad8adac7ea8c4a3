// Schedules for GPUs, as the CUDA C that is made of them: tutorials' own and ones drawn at random.
#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/print.h"
#include "compiler/lower.h"
#include "runtime/core/error.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"
#include "tests/support/random_schedule.h"

namespace kiln::testing {
namespace {

/// te's tutorial of scans: a thread a column, time inside.
constexpr const char* kScan = R"(kernel scan(X: float32[m, n]) -> (S: float32[m, n]) {
  scan t {
    S[0, i] = X[0, i]
    S[t, i] = S[t - 1, i] + X[t, i]
  }
  schedule cuda {
    split(S.init.i, factor=256)
    bind(S.init.i.outer, blockIdx.x)
    bind(S.init.i.inner, threadIdx.x)
    split(S.update.i, factor=256)
    bind(S.update.i.outer, blockIdx.x)
    bind(S.update.i.inner, threadIdx.x)
  }
})";

TEST(SchedulesOnHost, TheScanOfTheTutorialIsOneLaunchAndEqualToTheLastBit) {
  const language::TextKernel text = kernel_of(kScan);
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(ir::launched_statements(loops.body).size(), 1u) << ir::print(loops);
  HostGpu gpu;
  gpu.add(loops);
  gpu.compile();
  for (const int64_t n : {1024, 1000}) {
    HostTensor x = zeros(DType::Float32, {10, n});
    auto* const values = reinterpret_cast<float*>(x.bytes.data());
    for (int64_t i = 0; i < 10 * n; ++i)
      values[i] = 1.0f / static_cast<float>(i + 3);
    // numpy.cumsum adds in this order, rounding to float32 each time.
    HostTensor expected = x;
    auto* const sums = reinterpret_cast<float*>(expected.bytes.data());
    for (int64_t i = n; i < 10 * n; ++i)
      sums[i] = sums[i - n] + values[i];
    EXPECT_EQ(gpu.run(0, {10, n}, {x})[0].bytes, expected.bytes) << n;
  }
}

constexpr const char* kLargeTiles = R"(kernel k(A: float32[n, 16384]) -> (B: float32[n, 16384]) {
  B[i, j] = A[i, 16383 - j] + 1
  schedule cuda {
    cache_read(A, shared, B)
    bind(B.i, blockIdx.x)
    split(B.j, factor=64)
    bind(B.j.inner, threadIdx.x)
    compute_at(A.shared, B.i)
    split(A.shared.ax1, factor=64)
    bind(A.shared.ax1.inner, threadIdx.x)
  }
})";

TEST(SchedulesOnHost, MoreSharedMemoryThanEveryDeviceHasIsAskedFor) {
  const language::TextKernel text = kernel_of(kLargeTiles);
  const ir::Kernel loops = gpu_loops(text);
  HostGpu gpu;
  gpu.add(loops);
  gpu.compile();
  EXPECT_EQ(gpu.artifact(0).variants[0].launches[0].shared_bytes, SizeExpr::constant(65536));
  EXPECT_EQ(difference_on_host(text, loops, {2}), "");
}

TEST(SchedulesOnHost, ThreadsThatTheCallDecidesAreRefusedAtTheCall) {
  const language::TextKernel text = kernel_of(R"(kernel k(A: float32[n, m]) -> (B: float32[n, m]) {
    B[i, j] = A[i, j]
    schedule cuda { bind(B.i, threadIdx.y) bind(B.j, threadIdx.x) } })");
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(difference_on_host(text, loops, {16, 64}), "");
  EXPECT_EQ(difference_on_host(text, loops, {64, 64}),
            "a block would have 4096 threads (64 x 64 x 1); the limit of the device is 1024; bind "
            "axes that are split by a constant to threadIdx");
}

/// Tiles of 64 and of 128, whose factors are fetched in vectors, as they lie and turned.
TEST(SchedulesOnHost, TilesOfEachSizeAreRight) {
  const Target target{TargetKind::Cuda, "sm_90"};
  for (const char* const index : {"A[i, k] * B[k, j]", "A[k, i] * B[j, k]"}) {
    const language::TextKernel text =
        kernel_of(fmt::format("kernel k(A: float32[132, 132], B: float32[132, 132]) -> (C: "
                              "float32[132, 132]) {{ C[i, j] = sum[k < 132]({}) }}",
                              index));
    const SketchSpace space(text.kernel, {}, target, {});
    const auto count = static_cast<uint32_t>(space.stages().at(0).sketches.size());
    EXPECT_EQ(count, 4U);
    for (uint32_t sketch = 0; sketch < count; ++sketch) {
      autoschedule::Candidate candidate = space.preferred();
      candidate.stages[0] = {sketch, space.stages()[0].sketches[sketch].preferred()};
      LoweringObserver silent;
      const ir::Kernel loops =
          lower(text.kernel, space.schedule(candidate), target, {}, Layout::Compact, silent);
      EXPECT_NE(ir::print(loops).find("ramp("), std::string::npos);
      EXPECT_EQ(difference_on_host(text, loops, {}), "") << ir::print(loops);
    }
  }
}

/// The one barrier of a tile, and those of a row's sum.
TEST(SchedulesOnHost, EachBarrierThatIsLeftOutIsMissed) {
  const std::pair<const char*, int> kernels[] = {
      {R"(kernel k(A: float32[40, 40], B: float32[40, 40]) -> (C: float32[40, 40]) {
        C[i, j] = sum[k < 40](A[i, k] * B[k, j]) })",
       1},
      {R"(kernel k(X: float32[2, 300]) -> (S: float32[2]) { S[i] = sum[k < 300](X[i, k])
        schedule cuda { bind(S.i, blockIdx.x) split(S.k, factor=128) bind(S.k.inner, threadIdx.x) } })",
       2}};
  for (const auto& [kernel, expected] : kernels) {
    const language::TextKernel text = kernel_of(kernel);
    const ir::Kernel loops = gpu_loops(text);
    const std::string printed = ir::print(loops);
    EXPECT_EQ(difference_on_host(text, loops, {}), "") << printed;
    int barriers = 0;
    for (size_t at = printed.find("barrier\n"); at != std::string::npos;
         at = printed.find("barrier\n", at + 1)) {
      const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", std::to_string(barriers++));
      const std::string found = difference_on_host(text, loops, {});
      EXPECT_TRUE(found.find("race: thread") != std::string::npos ||
                  found.find("uninitialised: thread") != std::string::npos)
          << "barrier " << barriers - 1 << " of\n"
          << printed;
    }
    EXPECT_EQ(barriers, expected);
  }
}

/// A drawn kernel with a drawn schedule, and what became of it.
struct Drawn {
  FuzzCase which;
  std::string description;
  size_t place = 0;
};

/// Adds the case to those that are compiled; the reason why it is refused, else.
std::string lower_to(HostGpu& gpu, uint64_t seed, std::vector<Drawn>& cases) {
  const Target target{TargetKind::Cuda, "sm_90"};
  LoweringObserver silent;
  Drawn drawn{.which = draw_case(seed), .description = {}};
  FuzzCase& which = drawn.which;
  Random random(seed + 1);
  which.schedule = random_gpu_schedule(which.kernel.definition, random);
  drawn.description = describe(seed, which);
  SCOPED_TRACE(drawn.description);
  try {
    const ir::Kernel loops =
        lower(which.kernel, choose_schedule(which.kernel, which.schedule, target, {}), target, {},
              Layout::Compact, silent);
    EXPECT_EQ(which.difference_of(loops, true), "") << ir::print(loops);
    drawn.place = gpu.add(loops);
    cases.push_back(std::move(drawn));
    return "";
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::InvalidArgument ||
                error.kind() == ErrorKind::Unsupported ||
                error.kind() == ErrorKind::ResourceExhausted)
        << error.message();
    return error.reason();
  }
}

std::string difference_on(const HostGpu& gpu, const Drawn& drawn) {
  const FuzzCase& which = drawn.which;
  try {
    return which.difference_of([&] { return gpu.run(drawn.place, which.sizes, which.inputs); });
  } catch (const Error& error) {
    // Threads of which the call says how many are refused there.
    if (error.reason() == "LAUNCH_SIZE") return "";
    // Threads of the launch in which a check has fired read what it kept from being stored.
    const bool is_unwritten = error.message().find("uninitialised: ") != std::string::npos;
    if (is_unwritten && (which.stops || which.drawn.may_stop)) return "";
    return error.message();
  }
}

bool has_warp_memory(const Drawn& drawn) {
  return std::ranges::any_of(drawn.which.schedule.steps,
                             [](const language::Step& step) { return step.tag == "warp"; });
}

/// Each is right in the interpreter and on the host, without a race, or refused with a sentence.
TEST(SchedulesOnHostFuzz, DrawnAtRandomAreRightOrRefused) {
  const uint64_t first = fuzz_seed(800'000);
  const int rounds = fuzz_rounds(200);
  constexpr int kAtOnce = 50;
  std::map<std::string, int> refusals;
  int compiled = 0;
  int by_warps = 0;
  for (int done = 0; done < rounds && !HasFailure(); done += kAtOnce) {
    HostGpu gpu;
    std::vector<Drawn> cases;
    for (int i = done; i < std::min(rounds, done + kAtOnce); ++i) {
      const std::string refusal = lower_to(gpu, first + static_cast<uint64_t>(i), cases);
      if (!refusal.empty()) ++refusals[refusal];
    }
    gpu.compile();
    for (const Drawn& drawn : cases) {
      ++compiled;
      by_warps += has_warp_memory(drawn) ? 1 : 0;
      EXPECT_EQ(difference_on(gpu, drawn), "") << drawn.description;
    }
  }
  std::printf("  %d random schedules: %d compiled, %d with memory of a warp\n", rounds, compiled,
              by_warps);
  for (const auto& [refusal, count] : refusals)
    std::printf("  %4d refused: %s\n", count, refusal.c_str());
  EXPECT_GE(compiled, rounds / 5);
  EXPECT_GE(by_warps, rounds / 100);
}

}  // namespace
}  // namespace kiln::testing
