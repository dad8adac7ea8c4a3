// Sets LLVM up once for the process and makes target machines: which features a CPU's name stands
// for, how floats may be fused, and which code generator passes are left out. Also translates a
// CPU's features into what lowering to LLVM asks of it.
#include "compiler/codegen/llvm_target.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include "compiler/ir/vector_unit.h"
#include "runtime/core/cpu_name.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

/// Of every artifact: the runtime loads objects on Linux and x86-64 alone.
constexpr const char* kTriple = "x86_64-pc-linux-gnu";

/// LLVM has no way back from these; say what happened before the process ends.
void die_of_llvm(void*, const char* reason, bool) {
  std::fprintf(stderr, "kiln: LLVM stopped the compiler: %s\n", reason);
  std::abort();
}

/// LLVM keeps these settings for the whole process. They leave out passes of the code generator
/// that cost a third of its time and give our loops nothing.
void start_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(die_of_llvm);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    const char* const settings[] = {"kiln",
                                    "-disable-lsr",
                                    "-enable-misched=false",
                                    "-disable-block-placement",
                                    "-disable-machine-licm",
                                    "-disable-machine-cse",
                                    "-disable-machine-sink",
                                    "-disable-copyprop",
                                    "-disable-branch-fold",
                                    "-disable-early-taildup",
                                    "-disable-tail-duplicate",
                                    "-disable-constant-hoisting",
                                    "-disable-partial-libcall-inlining",
                                    "-disable-early-ifcvt"};
    llvm::cl::ParseCommandLineOptions(static_cast<int>(std::size(settings)), settings, "",
                                      &llvm::errs());
  });
}

}  // namespace

void check_cpu_arch(std::string_view arch) {
  if (is_known_cpu(arch)) return;
  if (ir::is_only_planned(arch)) {
    fail(ErrorKind::Unsupported, "ARCH",
         "kernels are planned for {}, but no code is made for it, only for x86-64; kiln schedule "
         "explain --arch {} has its schedules",
         arch, arch);
  }
  if (arch.starts_with("sm_")) {
    fail(ErrorKind::Unsupported, "ARCH", "{} is no CPU, but a GPU; compile for the target cuda",
         arch);
  }
  fail(
      ErrorKind::Unsupported, "ARCH",
      "there is no CPU {}; names are those of -march, as {} (this host), znver4, skylake-avx512 or "
      "x86-64-v3",
      arch.empty() ? "without a name" : arch, host_cpu());
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

std::unique_ptr<llvm::TargetMachine> make_target_machine(const CpuOptions& options) {
  start_llvm();
  check_cpu_arch(options.arch);
  std::string error;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  KILN_CHECK(target != nullptr);
  llvm::TargetOptions settings;
  settings.AllowFPOpFusion = options.strict ? llvm::FPOpFusion::Strict : llvm::FPOpFusion::Fast;
  const std::string arch = without_cores(options.arch);
  const CpuName name = cpu_name_of(arch);
  std::string features = "-prefer-256-bit";
  for (const std::string_view feature : name.features)
    features += fmt::format(",+{}", feature);
  // Features follow from the name alone, so that one artifact serves all hosts of that name.
  // Vectors have the widths we give them, also where a CPU is said to like them short.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      kTriple, llvm::StringRef(name.cpu), features, settings, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less, /*JIT=*/true));
  KILN_CHECK(machine != nullptr);
  return machine;
}

LaneAccess lane_access_of(const llvm::TargetMachine& machine) {
  const llvm::MCSubtargetInfo& cpu = *machine.getMCSubtargetInfo();
  int bytes = cpu.checkFeatures("+avxvnni") ? 8 : 0;
  if (cpu.checkFeatures("+avx512vnni,+avx512vl")) bytes = 16;
  int words = cpu.checkFeatures("+avx2") ? 8 : 4;
  if (cpu.checkFeatures("+avx512bw")) words = 16;
  return {
      .gathers = cpu.checkFeatures("+avx512f"),
      .masks_words = cpu.checkFeatures("+avx"),
      .masks_bytes = cpu.checkFeatures("+avx512bw"),
      .masked_bytes = cpu.checkFeatures("+avx512f") ? 64 : 32,
      .dots_bytes = bytes,
      .dots_words = words,
      .dots_halves = cpu.checkFeatures("+avx512bf16,+avx512vl") ? 16 : 0,
      .arithmetic = {.fuses = cpu.checkFeatures("+fma"), .scales = cpu.checkFeatures("+avx512vl")}};
}

}  // namespace kiln::codegen
