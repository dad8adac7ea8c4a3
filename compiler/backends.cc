// The table of code generators: LLVM for CPUs, CUDA C through NVRTC for NVIDIA GPUs.
#include "compiler/backends.h"

#include <algorithm>
#include <array>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/codegen/cpu_artifact.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/matrix_chains.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/language/tables/hints.h"
#include "compiler/passes/notes.h"
#include "compiler/tile_code.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"
#include "runtime/core/gpu_name.h"

namespace kiln {
namespace {

std::string cpu_of(const Target& target) { return target.arch.empty() ? host_cpu() : target.arch; }

codegen::CpuOptions cpu_options(const Target& target, const CompileOptions& options) {
  return {cpu_of(target), options.strict};
}

void check_cpu(const Target& target) { codegen::check_cpu_arch(cpu_of(target)); }

Artifact make_cpu_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                           const Target& target, const CompileOptions& options) {
  return codegen::make_cpu_artifact(compact, strided, cpu_options(target, options));
}

std::string cpu_source(const ir::Kernel& kernel, const Target& target,
                       const CompileOptions& options, std::string_view what) {
  const codegen::EntryKernel entry{"kiln_compact", &kernel};
  return codegen::emit_cpu_code(
      {&entry, 1}, cpu_options(target, options),
      what == "llvm" ? codegen::CpuOutput::Source : codegen::CpuOutput::Assembly);
}

std::string aligned_cpu(const ir::Kernel& kernel, const Target& target,
                        const CompileOptions& options) {
  return codegen::aligned_cpu(kernel, cpu_options(target, options));
}

/// Code is the same for all GPUs of an architecture.
codegen::CudaOptions cuda_options(const Target& target, const CompileOptions& options) {
  const std::string_view arch = without_figures(target.arch);
  return {.arch = arch,
          .strict = options.strict,
          .multiprocessors = autoschedule::gpu_machine(arch).multiprocessors,
          .short_sums = options.fast && !options.strict};
}

std::string aligned_cuda(const ir::Kernel& kernel, const Target& target,
                         const CompileOptions& options) {
  return codegen::aligned_cuda(kernel, cuda_options(target, options));
}

/// Sums of products that the CPU has no instruction for are computed by others.
void note_missing_instructions(const language::Schedule& schedule, const Target& target,
                               const CompileOptions& options, ir::Kernel& lowered) {
  const std::string cpu = cpu_of(target);
  for (const language::Step& step : schedule.steps) {
    if (step.kind != language::StepKind::Tensorize) continue;
    const auto intrinsic = language::find_intrinsic(step.tag);
    KILN_CHECK(intrinsic.has_value());
    const language::IntrinsicRow& row = language::row_of(*intrinsic);
    const bool is_inexact = options.strict && row.kind == language::TensorIntrinsic::DotBf16;
    if (!is_inexact && cpu_has(cpu, row.feature)) continue;
    passes::add_note(
        lowered, fmt::format("{} runs as several instructions: {}", row.spelling,
                             is_inexact ? "its own rounds in a way that strict forbids"
                                        : fmt::format("the CPU {} has no {}", cpu, row.feature)));
  }
}

// Which of them NVRTC can compile for it says itself.
void check_gpu(const Target& target) {
  codegen::check_cuda_arch(without_figures(target.arch));
  figures_of(target.arch);  // throws where what is said is none
}

Artifact make_cuda_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                            const Target& target, const CompileOptions& options) {
  return codegen::make_cuda_artifact(compact, strided, cuda_options(target, options));
}

std::string cuda_source(const ir::Kernel& kernel, const Target& target,
                        const CompileOptions& options, std::string_view what) {
  if (what == "cuda") return codegen::cuda_text(kernel, nullptr, cuda_options(target, options));
  return codegen::make_cuda_artifact(kernel, nullptr, cuda_options(target, options)).ptx;
}

void add_no_code(const language::Kernel&, const ir::Kernel&, const Target&, const CompileOptions&,
                 Artifact&) {}

/// Where tensor cores add up 8-bit floats in fewer bits than float32 has.
void note_short_sums(const language::Schedule&, const Target& target, const CompileOptions& options,
                     ir::Kernel& lowered) {
  const bool may_be_short =
      ir::has_short_sums(without_figures(target.arch)) && codegen::has_matrix_chains(lowered);
  if (!may_be_short) return;
  passes::add_note(
      lowered,
      cuda_options(target, options).short_sums
          ? "8-bit floats are added up by tensor cores alone, in fewer bits than float32 has"
          : "tensor cores add up at most 128 steps of 8-bit floats, and float32 these; with fast "
            "(fast=True, --fast) tensor cores all of them, in fewer bits");
}

constexpr std::array<std::string_view, 2> kCpuSources = {"llvm", "asm"};
constexpr std::array<std::string_view, 3> kCudaSources = {"cuda", "ptx", "tile"};

constexpr std::array kBackends = {
    Backend{.kind = TargetKind::Llvm,
            .sources = kCpuSources,
            .check_arch = check_cpu,
            .make_artifact = make_cpu_artifact,
            .add_code = add_no_code,
            .source = cpu_source,
            .aligned = aligned_cpu,
            .add_notes = note_missing_instructions},
    Backend{.kind = TargetKind::Cuda,
            .sources = kCudaSources,
            .check_arch = check_gpu,
            .make_artifact = make_cuda_artifact,
            .add_code = add_tile_code,
            .source = cuda_source,
            .aligned = aligned_cuda,
            .add_notes = note_short_sums},
};

}  // namespace

const Backend* find_backend(const Target& target) {
  const auto row = std::ranges::find(kBackends, target.kind, &Backend::kind);
  return row == kBackends.end() ? nullptr : &*row;
}

}  // namespace kiln
