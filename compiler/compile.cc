#include "compiler/compile.h"

#include <optional>
#include <string_view>

#include <elf.h>
#include <link.h>

#include "compiler/codegen/cpu_artifact.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/ir/mutator.h"
#include "compiler/language/tables/hints.h"
#include "compiler/loops_artifact.h"
#include "compiler/passes/notes.h"
#include "compiler/report.h"
#include "compiler/requirements.h"
#include "runtime/core/called.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

/// To be raised when code changes in a way that the build id of the executable does not show.
constexpr int kCodeVersion = 1;

codegen::CpuOptions cpu_options(const Target& target, const CompileOptions& options) {
  return {target.arch.empty() ? host_cpu() : target.arch, options.strict};
}

/// `strided`: null without code for strides.
Artifact make_artifact(const ir::Kernel& compact, const ir::Kernel* strided, const Target& target,
                       const CompileOptions& options) {
  if (target.kind == TargetKind::Cuda) {
    return codegen::make_cuda_artifact(compact, strided, target.arch);
  }
  return codegen::make_cpu_artifact(compact, strided, cpu_options(target, options));
}

/// The kernel with its sizes as constants; they stay its sizes, which calls give as before.
language::Kernel with_sizes(language::Kernel kernel, const std::vector<int64_t>& sizes) {
  KILN_CHECK(sizes.size() == kernel.definition.variables.size());
  for (language::Expression& expression : kernel.definition.expressions) {
    const auto* use = std::get_if<language::VariableUse>(&expression.node);
    if (use != nullptr) expression.node = language::IntegerConstant{sizes[use->variable]};
  }
  return kernel;
}

/// Sums of floats whose lanes are added up in an order that follows from how a loop is divided.
class FindsReorderedSums : public ir::Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::VectorReduce& node) override {
    found = found || (node.reassociate && is_float(node.start->type.element));
    Visitor::visit(node);
  }
};

/// A variant for known sizes has the bits of the kernel itself. Where the sizes say how a loop over
/// lanes ends, its sum would have others.
void refuse_other_order(const ir::Kernel& loops) {
  FindsReorderedSums walk;
  walk(loops.body);
  if (!walk.found) return;
  fail(ErrorKind::Unsupported, "VARIANT_ORDER",
       "there are no variants of {} for known sizes: they would add up floats in another order",
       loops.name);
}

Artifact compile_kernel(const language::Kernel& kernel, const language::Schedule& schedule,
                        const Target& target, const CompileOptions& options) {
  if (target.kind == TargetKind::Interpreter) {
    return compile_loops(kernel, schedule, target, options);
  }
  if (target.kind == TargetKind::Llvm) codegen::check_cpu_arch(cpu_options(target, options).arch);
  CountAccesses count;
  LoweringObserver silent;
  const ir::Kernel compact = lower(kernel, schedule, target, options, Layout::Compact, count);
  if (!options.sizes.empty()) refuse_other_order(compact);
  std::optional<ir::Kernel> strided;
  if (options.strided) {
    strided = lower(kernel, schedule, target, options, Layout::Strided, silent);
  }
  Artifact artifact = make_artifact(compact, strided ? &*strided : nullptr, target, options);
  artifact.requirements = size_requirements(kernel.definition, compact.sizes);
  artifact.report = report_of(compact, artifact, count.accesses);
  return artifact;
}

/// Sums of products that the CPU has no instruction for are computed by others.
void note_missing_instructions(const language::Schedule& schedule,
                               const codegen::CpuOptions& options, ir::Kernel& lowered) {
  for (const language::Step& step : schedule.steps) {
    if (step.kind != language::StepKind::Tensorize) continue;
    const auto intrinsic = language::find_intrinsic(step.tag);
    KILN_CHECK(intrinsic.has_value());
    const language::IntrinsicRow& row = language::row_of(*intrinsic);
    const bool is_inexact = options.strict && row.kind == language::TensorIntrinsic::DotBf16;
    if (!is_inexact && cpu_has(options.arch, row.feature)) continue;
    passes::add_note(lowered, fmt::format("{} runs as several instructions: {}", row.spelling,
                                          is_inexact ? "its own rounds in a way that strict forbids"
                                                     : fmt::format("the CPU {} has no {}",
                                                                   options.arch, row.feature)));
  }
}

[[noreturn]] void fail_source(std::string_view what, TargetKind target) {
  fail(ErrorKind::InvalidArgument, "SOURCE", "there is no source {} of a kernel for {}; there {}",
       what, name_of(target),
       target == TargetKind::Cuda   ? "are lowered, cuda and ptx"
       : target == TargetKind::Llvm ? "are lowered, llvm and asm"
                                    : "is lowered");
}

std::string cuda_source_of(const ir::Kernel& kernel, const Target& target, std::string_view what) {
  if (what == "cuda") return codegen::cuda_text(kernel, nullptr);
  return codegen::make_cuda_artifact(kernel, nullptr, target.arch).ptx;
}

std::string cpu_source_of(const ir::Kernel& kernel, const codegen::CpuOptions& options,
                          std::string_view what) {
  const codegen::EntryKernel entry{"kiln_compact", &kernel};
  return codegen::emit_cpu_code(
      {&entry, 1}, options,
      what == "llvm" ? codegen::CpuOutput::Source : codegen::CpuOutput::Assembly);
}

/// The id that the linker gave this executable, as hex digits; empty when it gave none.
std::string linker_build_id() {
  std::string id;
  const auto look = [](dl_phdr_info* info, size_t, void* result) -> int {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type != PT_NOTE) continue;
      const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
      const char* const end = at + header.p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
        const char* const name = at + sizeof note;
        const char* const bytes = name + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, 3) == "GNU") {
          for (uint32_t b = 0; b < note.n_descsz; ++b) {
            *static_cast<std::string*>(result) +=
                fmt::format("{:02x}", static_cast<unsigned char>(bytes[b]));
          }
          return 1;
        }
        at = bytes + (note.n_descsz + 3) / 4 * 4;
      }
    }
    return 1;  // the first object is the executable; libraries are not asked
  };
  dl_iterate_phdr(look, &id);
  return id;
}

}  // namespace

Artifact compile(const language::Kernel& kernel, const language::Schedule& schedule,
                 const Target& target, const CompileOptions& options) {
  const auto compile_it = [&] {
    if (options.sizes.empty()) return compile_kernel(kernel, schedule, target, options);
    return compile_kernel(with_sizes(kernel, options.sizes), schedule, target, options);
  };
  if (kernel.names.kernel == kUnnamedKernel) return compile_it();
  return annotate("in kernel " + kernel.names.kernel, compile_it);
}

std::string source_of(const language::Kernel& kernel, const language::Schedule& schedule,
                      const Target& target, const CompileOptions& options, std::string_view what) {
  const bool is_cuda = target.kind == TargetKind::Cuda;
  if (what == "lowered") return lowered_text(kernel, schedule, target, options, "");
  const bool is_cpu = target.kind == TargetKind::Llvm;
  const bool is_known = what == "report" || (is_cuda && (what == "cuda" || what == "ptx")) ||
                        (is_cpu && (what == "llvm" || what == "asm"));
  if (!is_known) {
    fail_source(what, target.kind);
  }
  LoweringObserver silent;
  ir::Kernel lowered = is_cuda || is_cpu
                           ? lower(kernel, schedule, target, options, Layout::Compact, silent)
                           : plain_loops(kernel, schedule, target, options, silent);
  if (what == "report") {
    if (is_cpu) note_missing_instructions(schedule, cpu_options(target, options), lowered);
    return named_report_of(kernel, schedule, lowered);
  }
  return is_cuda ? cuda_source_of(lowered, target, what)
                 : cpu_source_of(lowered, cpu_options(target, options), what);
}

std::string compiler_build_id() {
  static const std::string id =
      fmt::format("{}-llvm{}-{}", linker_build_id(), codegen::llvm_version(), kCodeVersion);
  return id;
}

}  // namespace kiln
