#include "compiler/codegen/cpu_artifact.h"

#include "compiler/codegen/size_expr.h"

namespace kiln::codegen {
namespace {

std::vector<ir::VarRef> scalars_of(const ir::Kernel& kernel) {
  std::vector<ir::VarRef> scalars = kernel.sizes;
  scalars.insert(scalars.end(), kernel.strides.begin(), kernel.strides.end());
  return scalars;
}

/// All parameters are row-major without gaps.
SizeExpr is_compact(const std::vector<Parameter>& parameters, int64_t size_count) {
  SizeExpr condition = SizeExpr::constant(1);
  int64_t next_stride = size_count;
  for (const Parameter& parameter : parameters) {
    const size_t rank = parameter.shape.size();
    SizeExpr stride = SizeExpr::constant(1);
    for (size_t d = rank; d-- > 0;) {
      const SizeExpr given = SizeExpr::scalar(next_stride + static_cast<int64_t>(d));
      condition = SizeExpr::binary(SizeExpr::Op::And, condition,
                                   SizeExpr::binary(SizeExpr::Op::Equal, given, stride));
      stride = SizeExpr::binary(SizeExpr::Op::Mul, stride, parameter.shape[d]);
    }
    next_stride += static_cast<int64_t>(rank);
  }
  return condition;
}

Variant variant_of(const ir::Kernel& kernel, const std::string& entry) {
  const std::vector<ir::VarRef> scalars = scalars_of(kernel);
  const auto bytes = [&](const ir::Expr& expr) {
    return expr ? to_size_expr(expr, scalars) : SizeExpr::constant(0);
  };
  Variant variant;
  variant.launches = {Launch{entry, {}, {}}};
  variant.workspace_bytes = bytes(kernel.workspace_bytes);
  variant.workspace_bytes_per_thread = bytes(kernel.workspace_bytes_per_thread);
  return variant;
}

}  // namespace

Artifact make_cpu_artifact(const ir::Kernel& compact, const ir::Kernel* strided,
                           const CpuOptions& options) {
  Artifact artifact;
  artifact.target = TargetKind::Llvm;
  artifact.arch = options.arch;
  artifact.size_count = static_cast<int32_t>(compact.sizes.size());
  for (size_t i = 0; i < compact.parameters.size(); ++i) {
    Parameter parameter{compact.parameters[i]->type, {}, compact.is_output[i]};
    for (const ir::Expr& extent : compact.parameters[i]->shape) {
      parameter.shape.push_back(to_size_expr(extent, compact.sizes));
    }
    artifact.parameters.push_back(std::move(parameter));
  }
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

}  // namespace kiln::codegen
