#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compiler/codegen/cuda_names.h"
#include "compiler/ir/expr.h"

namespace kiln::codegen {

/// "float", "long long"; a float of 8 or 16 bits is a type of cuda_prelude.h.
std::string_view cuda_type(DType type);

/// What stands in a variable already.
struct KnownValue {
  ir::Expr expr;
  ir::VarRef var;
};

/// The expression in CUDA C, with no more parentheses than it needs. Of one lane. With
/// `is_narrow` integers of 64 bits have 32: what they are fits (narrow_index.h).
std::string cuda_expr(const ir::Expr& expr, CudaNames& names, bool is_narrow = false,
                      std::span<const KnownValue> known = {});

}  // namespace kiln::codegen
