// The parts of an artifact that are the same for a CPU and a GPU. The condition for compact
// arguments is one expression over the call's scalars, `stride1 == 1 and stride0 == n and ..`, so
// that the runtime chooses the variant without knowing what strides are.
#include "compiler/codegen/artifact_parts.h"

#include "compiler/codegen/size_expr.h"

namespace kiln::codegen {

std::vector<ir::VarRef> scalars_of(const ir::Kernel& kernel) {
  std::vector<ir::VarRef> scalars = kernel.sizes;
  scalars.insert(scalars.end(), kernel.strides.begin(), kernel.strides.end());
  return scalars;
}

std::vector<Parameter> parameters_of(const ir::Kernel& kernel) {
  std::vector<Parameter> result;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    Parameter parameter{kernel.parameters[i]->type, {}, kernel.is_output[i]};
    for (const ir::Expr& extent : kernel.parameters[i]->shape) {
      parameter.shape.push_back(to_size_expr(extent, kernel.sizes));
    }
    result.push_back(std::move(parameter));
  }
  return result;
}

// Row-major without gaps, innermost dimension first: the stride is 1, then each is the one before
// times its extent. bind_arguments() has put compact strides where a dimension is never stepped
// along.
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

SizeExpr bytes_of(const ir::Expr& expr, const ir::Kernel& kernel) {
  return expr ? to_size_expr(expr, scalars_of(kernel)) : SizeExpr::constant(0);
}

}  // namespace kiln::codegen
