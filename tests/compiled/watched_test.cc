// The code of kernels with the calls of LLVM's address and thread sanitizers in it: no access is
// outside of what a call was given, and no two iterations of a parallel loop meet.

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/codegen/cpu_artifact.h"
#include "compiler/compile.h"
#include "compiler/language/evaluate/evaluate.h"
#include "runtime/core/cpu_name.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/parse_ir.h"
#include "tests/support/run_on_cpu.h"
#include "tests/support/seeds_in_threads.h"
#include "tests/support/watched_run.h"

namespace kiln::testing {
namespace {

using codegen::Sanitizer;

constexpr Sanitizer kBoth[] = {Sanitizer::Address, Sanitizer::Thread};

Artifact compile_watched(const ir::Kernel& loops, Sanitizer sanitizer) {
  return codegen::make_cpu_artifact(loops, nullptr, {.arch = host_cpu(), .sanitizer = sanitizer});
}

/// Runs loops as they are, without anything that would prove or check them.
WatchedRun run_as_written(const char* parameters, const char* body, Sanitizer sanitizer) {
  const Artifact artifact = compile_watched(parse_kernel(parameters, body), sanitizer);
  return run_watched(artifact, {zeros(DType::Float32, {10}), {}});
}

constexpr const char* kAToB = "A: float32[n], B: float32[n] output";

TEST(Watched, SeesAStorePastTheEnd) {
  for (const Sanitizer sanitizer : kBoth) {
    EXPECT_EQ(run_as_written(kAToB, "for i in 0..n { B[i + 1] = A[i] }", sanitizer).mistake,
              "writes 4 bytes, 4 bytes past the end of argument 1, which has 40");
  }
}

TEST(Watched, SeesALoadBeforeTheStart) {
  for (const Sanitizer sanitizer : kBoth) {
    EXPECT_EQ(run_as_written(kAToB, "for i in 0..n { B[i] = A[i - 1] }", sanitizer).mistake,
              "reads 4 bytes, 4 bytes before the start of argument 0, which has 40");
  }
}

TEST(Watched, SeesAVectorPastTheEnd) {
  EXPECT_EQ(run_as_written(kAToB, "for o in 0..2 { B[ramp(o*8, 1, 8)] = A[ramp(o*8, 1, 8)] }",
                           Sanitizer::Address)
                .mistake,
            "reads 32 bytes, 24 bytes past the end of argument 0, which has 40");
}

TEST(Watched, SeesAStoreToAnInput) {
  for (const Sanitizer sanitizer : kBoth) {
    Artifact artifact =
        compile_watched(parse_kernel(kAToB, "for i in 0..n { B[i] = A[i] }"), sanitizer);
    artifact.parameters[1].is_output = false;
    const HostTensor ten = zeros(DType::Float32, {10});
    EXPECT_EQ(run_watched(artifact, {ten, ten}).mistake, "writes to argument 1");
  }
}

TEST(Watched, SeesIterationsThatWriteOnePlace) {
  for (const Sanitizer sanitizer : kBoth) {
    EXPECT_EQ(run_as_written(kAToB, "for i in 0..n parallel { B[0] = A[i] }", sanitizer).mistake,
              "iteration 1 of a parallel loop writes byte 0 of argument 1, which another writes");
  }
}

TEST(Watched, SeesAnIterationThatReadsWhatAnotherWrites) {
  for (const Sanitizer sanitizer : kBoth) {
    EXPECT_EQ(
        run_as_written(kAToB, "for i in 0..n - 1 parallel { B[i + 1] = B[i] + A[i] }", sanitizer)
            .mistake,
        "iteration 1 of a parallel loop reads byte 4 of argument 1, which another writes");
  }
}

TEST(Watched, LeavesIterationsApartAlone) {
  for (const Sanitizer sanitizer : kBoth) {
    const WatchedRun run =
        run_as_written(kAToB, "for i in 0..n parallel { B[i] = A[i] + A[0] }", sanitizer);
    EXPECT_EQ(run.mistake, "");
    EXPECT_EQ(run.parallel_iterations, 10);
    EXPECT_GE(run.accesses, 20);
  }
}

/// What all runs together have seen: a pass that puts in no calls would find nothing.
struct Seen {
  std::atomic<int64_t> runs = 0;
  std::atomic<int64_t> accesses = 0;
  std::atomic<int64_t> parallel_iterations = 0;

  void add(const WatchedRun& run) {
    ++runs;
    accesses += run.accesses;
    parallel_iterations += run.parallel_iterations;
  }
  void print() const {
    std::printf("  %lld calls, %lld accesses, %lld iterations of parallel loops\n",
                static_cast<long long>(runs), static_cast<long long>(accesses),
                static_cast<long long>(parallel_iterations));
  }
};

std::map<std::string, int64_t> named(const std::vector<int64_t>& sizes) {
  std::map<std::string, int64_t> result;
  for (size_t i = 0; i < sizes.size(); ++i)
    result["n" + std::to_string(i)] = sizes[i];
  return result;
}

std::vector<HostTensor> arguments_of(const ir::Kernel& loops,
                                     const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> tensors;
  size_t next = 0;
  for (const bool is_output : loops.is_output)
    tensors.push_back(is_output ? HostTensor{} : inputs.at(next++));
  return tensors;
}

ir::Kernel lowered(const language::Kernel& kernel, const language::Schedule& schedule) {
  LoweringObserver silent;
  return lower(kernel, schedule, {TargetKind::Llvm, host_cpu()}, {}, Layout::Compact, silent);
}

TEST(Watched, KernelFilesStayInsideAndApart) {
  Seen seen;
  for (const std::string& file : kernel_files()) {
    for (const language::TextKernel& text : language::parse_text(kernel_file(file), file)) {
      const language::Kernel& kernel = text.kernel;
      if (kernel.names.kernel == "batch_matmul") continue;  // too large
      SCOPED_TRACE(kernel.names.kernel);
      std::vector<int64_t> sizes;
      for (size_t i = 0; i < kernel.names.variables.size(); ++i)
        sizes.push_back(std::vector<int64_t>{9, 21, 13, 5}[i % 4]);
      Random random(7);
      const std::vector<HostTensor> inputs = random_inputs(kernel, sizes, random);
      std::vector<language::Schedule> schedules = {
          {}, choose_schedule(kernel, {}, {TargetKind::Llvm, host_cpu()}, {})};
      for (const auto& [target, schedule] : text.schedules)
        schedules.push_back(schedule);
      for (const language::Schedule& schedule : schedules) {
        const ir::Kernel loops = lowered(kernel, schedule);
        for (const Sanitizer sanitizer : kBoth) {
          const WatchedRun run = run_watched(compile_watched(loops, sanitizer),
                                             arguments_of(loops, inputs), named(sizes));
          EXPECT_EQ(run.mistake, "");
          seen.add(run);
        }
      }
    }
  }
  seen.print();
  EXPECT_GT(seen.accesses, 10'000);
  EXPECT_GT(seen.parallel_iterations, 100);
}

/// Random kernels under random schedules, as ScheduleFuzz draws them.
TEST(WatchedFuzz, RandomKernelsStayInsideAndApart) {
  Seen seen;
  const int rounds = fuzz_rounds(std::getenv("KILN_LONG") != nullptr ? 10'000 : 200);
  for_each_seed(fuzz_seed(700'000), static_cast<uint64_t>(rounds), [&](uint64_t seed) {
    const FuzzCase which = draw_case(seed);
    SCOPED_TRACE(describe(seed, which));
    const Target host{TargetKind::Llvm, host_cpu()};
    try {
      const ir::Kernel loops =
          lowered(which.kernel, choose_schedule(which.kernel, which.schedule, host, {}));
      WatchedRun run;
      const std::string found = which.difference_of([&] {
        run = run_watched(compile_watched(loops, kBoth[seed % 2]),
                          arguments_of(loops, which.inputs), named(which.sizes));
        if (!run.mistake.empty()) return which.expected;
        return std::move(run.outputs);
      });
      EXPECT_EQ(run.mistake, "");
      EXPECT_EQ(found, "");
      seen.add(run);
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.message();
    }
  });
  seen.print();
  if (rounds < 100 || HasFailure()) return;
  EXPECT_GT(seen.accesses, 10'000);
  EXPECT_GT(seen.parallel_iterations, 100);
}

}  // namespace
}  // namespace kiln::testing
