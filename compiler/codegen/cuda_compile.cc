// Joins what a CUDA artifact is made of: the source of its variants is one translation unit, so
// NVRTC runs once. Of sizes that the call brings there is one for those whose indices have 32 bits;
// the others, which are rare, take the one for any strides. And the report says of each kernel what
// the cubin holds, since occupancy follows from registers and shared memory.
#include "compiler/codegen/cuda_compile.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "compiler/codegen/aligned_code.h"
#include "compiler/codegen/artifact_parts.h"
#include "compiler/codegen/cubin.h"
#include "compiler/codegen/cuda_source.h"
#include "compiler/codegen/kernel_json.h"
#include "compiler/codegen/narrow_index.h"
#include "compiler/codegen/size_expr.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/print.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

/// Code for the calls that satisfy a condition on their scalars.
struct Chosen {
  CudaEntry entry;
  SizeExpr condition;
};

std::vector<Chosen> variants_of(const ir::Kernel& compact, const ir::Kernel* strided) {
  const SizeExpr is_dense =
      is_compact(parameters_of(compact), static_cast<int64_t>(compact.sizes.size()));
  std::vector<Chosen> chosen;
  const std::optional<SizeExpr> is_narrow = where_indices_are_narrow(compact);
  if (is_narrow) {
    chosen.push_back({{"kiln_narrow", &compact, true},
                      SizeExpr::binary(SizeExpr::Op::And, is_dense, *is_narrow)});
  }
  if (!is_narrow || strided == nullptr) chosen.push_back({{"kiln_compact", &compact}, is_dense});
  if (strided != nullptr) chosen.push_back({{"kiln_strided", strided}, SizeExpr::constant(1)});
  return chosen;
}

std::vector<CudaEntry> entries_of(const std::vector<Chosen>& chosen) {
  std::vector<CudaEntry> entries;
  for (const Chosen& each : chosen)
    entries.push_back(each.entry);
  return entries;
}

/// What the threads of a block of known size leave of a multiprocessor to others.
void add_occupancy_of_launch(nlohmann::json& row, const CubinKernel& kernel, const Launch& launch,
                             std::string_view arch) {
  const std::optional<int64_t> dynamic = constant_of(launch.shared_bytes);
  int64_t threads = 1;
  for (const SizeExpr& extent : launch.block) {
    const std::optional<int64_t> constant = constant_of(extent);
    if (!constant || !dynamic) return;
    threads *= *constant;
  }
  add_occupancy(row, kernel, threads, *dynamic, arch);
}

nlohmann::json kernels_json(std::string_view cubin, const std::vector<Launch>& launches,
                            std::string_view arch) {
  nlohmann::json result = nlohmann::json::array();
  const std::vector<CubinKernel> kernels = kernels_of_cubin(cubin);
  for (const Launch& launch : launches) {
    const auto found = std::ranges::find(kernels, launch.entry, &CubinKernel::name);
    if (found == kernels.end()) continue;
    nlohmann::json row = kernel_json(*found, arch);
    add_occupancy_of_launch(row, *found, launch, arch);
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace

Artifact make_cuda_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                            const CudaOptions& options) {
  const std::vector<Chosen> chosen = variants_of(compact, strided);
  const CudaSource source = cuda_source(entries_of(chosen), options);
  Artifact artifact;
  artifact.target = TargetKind::Cuda;
  artifact.arch = options.arch.empty() ? ir::kDefaultGpuArch : options.arch;
  CudaBinary binary = compile_cuda_source(source.text, {artifact.arch, options.strict});

  artifact.size_count = static_cast<int32_t>(compact.sizes.size());
  artifact.parameters = parameters_of(compact);
  artifact.checks = compact.checks;
  for (size_t i = 0; i < chosen.size(); ++i) {
    Variant variant;
    variant.condition = chosen[i].condition;
    variant.launches = source.launches[i];
    variant.loops = source.loops[i];
    variant.workspace_bytes =
        bytes_of(chosen[i].entry.kernel->workspace_bytes, *chosen[i].entry.kernel);
    artifact.variants.push_back(std::move(variant));
  }
  const nlohmann::json report = {
      {"kernels", kernels_json(binary.cubin, source.launches[0], artifact.arch)},
      {"launches", source.launches[0].size()}};
  artifact.report = report.dump();
  artifact.code = std::move(binary.cubin);
  artifact.ptx = std::move(binary.ptx);
  return artifact;
}

std::string aligned_cuda(const ir::Kernel& kernel, const CudaOptions& options) {
  const ir::PrintedKernel loops = ir::print_with_lines(kernel);
  // The first is the one that most calls run.
  const CudaEntry entry = variants_of(kernel, nullptr).front().entry;
  const CudaSource source = cuda_source({&entry, 1}, options);
  CudaOptions with_lines = options;
  if (with_lines.arch.empty()) with_lines.arch = ir::kDefaultGpuArch;
  with_lines.lines = true;
  const CudaBinary binary = compile_cuda_source(source.text, with_lines);
  AlignedLines cuda;
  size_t begin = 0;
  for (const ir::Node* statement : source.statements) {
    const size_t end = source.text.find('\n', begin);
    const auto found = loops.lines.find(statement);
    cuda.push_back(
        {found == loops.lines.end() ? 0 : found->second, source.text.substr(begin, end - begin)});
    begin = end + 1;
  }
  return aligned_json(loops.text,
                      {{"cuda", cuda}, {"ptx", through(aligned_assembly(binary.ptx), cuda)}},
                      binary.cubin);
}

std::string cuda_text(const ir::Kernel& compact, const ir::Kernel* strided,
                      const CudaOptions& options) {
  return cuda_source(entries_of(variants_of(compact, strided)), options).text;
}

}  // namespace kiln::codegen
