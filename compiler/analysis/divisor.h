#pragma once

#include <cstdint>

#include "compiler/ir/expr.h"

namespace kiln::analysis {

/// A number that divides the expression, whatever its variables are; 0 where it is always 0.
///
///   i*16 + floormod(j*4, 64)    ->  4
///   floordiv(k*32, 8) + n       ->  1
int64_t divisor_of(const ir::Expr& expr);

}  // namespace kiln::analysis
