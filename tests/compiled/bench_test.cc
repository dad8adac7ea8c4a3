#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/codegen/cpu_code.h"
#include "compiler/compile.h"
#include "compiler/lower.h"
#include "runtime/core/cpu_name.h"
#include "tests/schedule/kernels.h"
#include "tests/support/run_on_cpu.h"

// Measurements, not tests: they run with --gtest_also_run_disabled_tests alone.
namespace kiln::testing {
namespace {

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

language::Schedule automatic(const Te& te) {
  return choose_schedule(te.kernel, te.schedule, {TargetKind::Llvm, host_cpu()}, {});
}

/// What the parts of a compile take, for one layout of the arguments.
void measure_parts(const char* name, const Te& te, Layout layout) {
  LoweringObserver silent;
  ir::Kernel lowered;
  const language::Schedule schedule = automatic(te);
  const char* const arch = std::getenv("KILN_BENCH_ARCH");
  const Target target{TargetKind::Llvm, arch != nullptr ? arch : host_cpu()};
  const double lower_seconds =
      seconds_of([&] { lowered = lower(te.kernel, schedule, target, {}, layout, silent); });
  std::string code;
  const codegen::EntryKernel entry{"entry", &lowered};
  const double emit_seconds = seconds_of([&] {
    code = codegen::emit_cpu_code({&entry, 1}, {target.arch}, codegen::CpuOutput::Source);
  });
  const double code_seconds = seconds_of([&] {
    code = codegen::emit_cpu_code({&entry, 1}, {target.arch}, codegen::CpuOutput::Object);
  });
  std::printf("%-10s %s: lower %.2f ms, LLVM IR as text %.2f ms, object %.2f ms, %zu bytes\n", name,
              layout == Layout::Compact ? "compact" : "strided", lower_seconds * 1e3,
              emit_seconds * 1e3, code_seconds * 1e3, code.size());
}

void measure_compile(const char* name, const Te& te) {
  for (const Layout layout : {Layout::Compact, Layout::Strided}) {
    measure_parts(name, te, layout);
  }
  for (int round = 0; round < 3; ++round) {
    language::Schedule schedule;
    std::shared_ptr<const Artifact> artifact;
    const double choose = seconds_of([&] { schedule = automatic(te); });
    const double compile = seconds_of([&] { artifact = compile_for_host(te.kernel, schedule); });
    const double load = seconds_of([&] { cpu_device().load(artifact); });
    std::printf("%-10s choose %.2f ms, compile %.2f ms, load %.2f ms\n", name, choose * 1e3,
                compile * 1e3, load * 1e3);
  }
}

TEST(Bench, DISABLED_Compile) {
  seconds_of([] { cpu_device(); });
  measure_compile("add one", AddOne().te);
  measure_compile("cumsum", Cumsum().te);
  measure_compile("matmul", Matmul(1024, 1024, 1024).te);
  measure_compile("matmul *", Matmul().te);
}

/// The best of ten calls, in seconds, on tensors of ones.
double best_time(const Te& te, const std::vector<std::vector<int64_t>>& shapes, int threads) {
  const auto artifact = compile_for_host(te.kernel, automatic(te));
  Device& device = cpu_device(threads);
  const auto kernel = device.load(artifact);
  const KernelNames names = plain_names(*artifact);
  std::vector<ArgumentSlot> slots;
  std::vector<void*> pointers;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (const std::vector<int64_t>& shape : shapes) {
    slots.push_back({true, {DType::Float32, shape, {}}});
    buffers.push_back(device.allocate(element_count(shape) * 4));
    std::fill_n(static_cast<float*>(buffers.back()->data()), element_count(shape), 1.0f);
    pointers.push_back(buffers.back()->data());
  }
  const BoundCall bound = bind_arguments(*artifact, names, slots, {});
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    best = std::min(best, device.run(*kernel, {pointers, &bound, &names}));
  }
  return best;
}

void measure_matmul(const char* name, const Te& te, int64_t n, int threads) {
  const double best = best_time(te, {{n, n}, {n, n}, {n, n}}, threads);
  std::printf("%s %ld, %d threads: %.2f ms, %.1f GFLOP/s\n", name, n, threads, best * 1e3,
              2.0 * static_cast<double>(n * n * n) / best * 1e-9);
}

TEST(Bench, DISABLED_Streaming) {
  const Cumsum cumsum;
  const AddOne add_one;
  const std::vector<int64_t> shape = {4096, 4096};
  for (const int threads : {1, 2}) {
    for (const Te* te : {&cumsum.te, &add_one.te}) {
      const double best = best_time(*te, {shape, shape}, threads);
      std::printf("%s 4096x4096, %d threads: %.2f ms, %.1f GB/s\n",
                  te == &cumsum.te ? "cumsum" : "add one", threads, best * 1e3,
                  2 * 4096.0 * 4096 * 4 / best * 1e-9);
    }
  }
}

TEST(Bench, DISABLED_Matmul) {
  for (const int64_t n : {256, 1024}) {
    for (const int threads : {1, 2}) {
      measure_matmul("constant", Matmul(n, n, n).te, n, threads);
      measure_matmul("symbolic", Matmul().te, n, threads);
    }
  }
  const Matmul kernel(1024, 1024, 1024);
  const Target target{TargetKind::Llvm, host_cpu()};
  if (const char* what = std::getenv("KILN_SHOW_SOURCE")) {
    std::puts(source_of(kernel.te.kernel, automatic(kernel.te), target, {}, what).c_str());
  }
}

}  // namespace
}  // namespace kiln::testing
