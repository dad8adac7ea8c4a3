// Puts both variants of a kernel into one object: compact arguments first, under their condition;
// the strided variant has none and takes whatever is left.
#include "compiler/codegen/cpu_artifact.h"

#include "compiler/codegen/aligned_code.h"
#include "compiler/codegen/artifact_parts.h"
#include "runtime/core/cpu_name.h"

namespace kiln::codegen {
namespace {

Variant variant_of(const ir::Kernel& kernel, const std::string& entry) {
  Variant variant;
  variant.launches = {Launch{entry, {}, {}}};
  variant.workspace_bytes = bytes_of(kernel.workspace_bytes, kernel);
  variant.workspace_bytes_per_thread = bytes_of(kernel.workspace_bytes_per_thread, kernel);
  return variant;
}

}  // namespace

Artifact make_cpu_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                           const CpuOptions& options) {
  Artifact artifact;
  artifact.target = TargetKind::Llvm;
  artifact.arch = options.arch;
  artifact.features = code_features(options.arch);
  artifact.size_count = static_cast<int32_t>(compact.sizes.size());
  artifact.parameters = parameters_of(compact);
  artifact.checks = compact.checks;

  std::vector<EntryKernel> entries = {{"kiln_compact", &compact}};
  artifact.variants.push_back(variant_of(compact, entries[0].entry));
  artifact.variants[0].condition = is_compact(artifact.parameters, artifact.size_count);
  if (strided != nullptr) {
    entries.push_back({"kiln_strided", strided});
    artifact.variants.push_back(variant_of(*strided, entries[1].entry));
  }
  artifact.code = emit_cpu_code(entries, options, CpuOutput::Object);
  return artifact;
}

std::string aligned_cpu(const ir::Kernel& kernel, const CpuOptions& options) {
  const ir::PrintedKernel loops = ir::print_with_lines(kernel);
  const CpuListing listing = cpu_listing({"kiln_compact", &kernel}, loops, options);
  return aligned_json(
      loops.text,
      {{"llvm", aligned_llvm(listing.llvm)}, {"asm", aligned_assembly(listing.assembly)}}, "");
}

}  // namespace kiln::codegen
