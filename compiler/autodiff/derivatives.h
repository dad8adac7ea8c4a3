#pragma once

#include <optional>

#include "compiler/autodiff/builder.h"

namespace kiln::autodiff {

/// What an operand of `operation` gets of the adjoint of its result: adjoint * d result / d
/// operand. Nothing where that is 0 for all values. `result` is the operation itself, or where its
/// value is known. IfThenElse is not asked for: what it does not choose must not be computed.
std::optional<ExprId> operand_adjoint(Builder& builder, const language::Operation& operation,
                                      size_t operand, ExprId result, ExprId adjoint);

}  // namespace kiln::autodiff
