// Joins what a CUDA artifact is made of: the source of both variants is one translation unit, so
// NVRTC runs once, and the report says of each kernel what the cubin holds, since occupancy follows
// from registers and shared memory.
#include "compiler/codegen/cuda_compile.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "compiler/codegen/artifact_parts.h"
#include "compiler/codegen/cubin.h"
#include "compiler/codegen/cuda_source.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

/// Hopper: what a kernel is compiled for where no GPU and no arch is named.
constexpr std::string_view kDefaultArch = "sm_90";

std::vector<CudaEntry> entries_of(const ir::Kernel& compact, const ir::Kernel* strided) {
  std::vector<CudaEntry> entries = {{"kiln_compact", &compact}};
  if (strided != nullptr) entries.push_back({"kiln_strided", strided});
  return entries;
}

nlohmann::json kernels_json(std::string_view cubin, const std::vector<Launch>& launches) {
  nlohmann::json result = nlohmann::json::array();
  const std::vector<CubinKernel> kernels = kernels_of_cubin(cubin);
  for (const Launch& launch : launches) {
    const auto found = std::ranges::find(kernels, launch.entry, &CubinKernel::name);
    if (found == kernels.end()) continue;
    result.push_back({{"name", found->name},
                      {"registers", found->registers},
                      {"spill_bytes", found->stack_bytes},
                      {"shared_bytes", found->shared_bytes},
                      {"instructions", found->instructions}});
  }
  return result;
}

}  // namespace

Artifact make_cuda_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                            const CudaOptions& options) {
  const std::vector<CudaEntry> entries = entries_of(compact, strided);
  const CudaSource source = cuda_source(entries);
  Artifact artifact;
  artifact.target = TargetKind::Cuda;
  artifact.arch = options.arch.empty() ? kDefaultArch : options.arch;
  CudaBinary binary = compile_cuda_source(source.text, {artifact.arch, options.strict});

  artifact.size_count = static_cast<int32_t>(compact.sizes.size());
  artifact.parameters = parameters_of(compact);
  artifact.checks = compact.checks;
  for (size_t i = 0; i < entries.size(); ++i) {
    Variant variant;
    if (i == 0) variant.condition = is_compact(artifact.parameters, artifact.size_count);
    variant.launches = source.launches[i];
    variant.loops = source.loops[i];
    variant.workspace_bytes = bytes_of(entries[i].kernel->workspace_bytes, *entries[i].kernel);
    artifact.variants.push_back(std::move(variant));
  }
  const nlohmann::json report = {{"kernels", kernels_json(binary.cubin, source.launches[0])},
                                 {"launches", source.launches[0].size()}};
  artifact.report = report.dump();
  artifact.code = std::move(binary.cubin);
  artifact.ptx = std::move(binary.ptx);
  return artifact;
}

std::string cuda_text(const ir::Kernel& compact, const ir::Kernel* strided) {
  return cuda_source(entries_of(compact, strided)).text;
}

}  // namespace kiln::codegen
