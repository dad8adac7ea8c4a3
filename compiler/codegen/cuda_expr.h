#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda_names.h"
#include "compiler/codegen/swizzled_places.h"
#include "compiler/ir/expr.h"

namespace kiln::codegen {

/// "float", "long long"; a float of 8 or 16 bits is a type of cuda_prelude.h.
std::string_view cuda_type(DType type);

/// What stands in a variable already.
struct KnownValue {
  ir::Expr expr;
  ir::VarRef var;
};

/// What is known at a place of the code.
struct CudaScope {
  CudaNames& names;
  bool is_narrow = false;  // integers of 64 bits have 32: what they are fits (narrow_index.h)
  std::span<const KnownValue> known = {};
  const std::vector<LoopAround>* loops = nullptr;  // the axes of the launch among them
};

/// The expression in CUDA C, with no more parentheses than it needs. Of one lane.
std::string cuda_expr(const ir::Expr& expr, const CudaScope& scope);

/// `X[i]`, of this element.
std::string cuda_element(const ir::BufferRef& buffer, const ir::Expr& element,
                         const CudaScope& scope);
/// The same but for a constant that can stand in an instruction: elements.
struct CudaPlace {
  std::string text;
  int64_t behind = 0;
};
CudaPlace cuda_place(const ir::BufferRef& buffer, const ir::Expr& element, const CudaScope& scope);

}  // namespace kiln::codegen
