#pragma once

#include <string_view>

#include "compiler/ir/kernel.h"
#include "compiler/tile/sequence.h"
#include "runtime/core/size_expr.h"

namespace kiln {

/// 1 for the calls that CUDA C, made of `loops`, is not predicted to do sooner than programs on
/// tiles, else 0; a number where the call brings no sizes. Of a product that is one program, what
/// both predictions leave out may be as much as half of the time; copies of factors, and factors
/// that each block computes anew, have to be predicted to pay.
///
///   C[m, n] = sum[k](A[m, k] * B[k, n]), of copies  ->  2356224 < m*n, where there are enough
///   blocks; and a factor is copied where each of its elements is used often enough:
///   (floormod(k, 8) == 0 || 331 < n) && (floormod(n, 8) == 0 || 331 < m)
SizeExpr where_tiles_pay(const tile::Sequence& sequence, const ir::Kernel& loops,
                         std::string_view arch);

}  // namespace kiln
