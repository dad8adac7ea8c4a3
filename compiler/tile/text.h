#pragma once

#include <string>
#include <string_view>

#include "compiler/tile/program.h"

namespace kiln::tile {

/// The program as text, which parse() reads:
///
///   tile product[n](A: bfloat16[n, 512], B: bfloat16[512, 256], C: float32[n, 256] output) {
///     blocks i: n by 128, j: 256 by 128
///     view v0 = A[128, 64]
///     view v1 = B[64, 128] order [0, 1]
///     view v2 = C[128, 128]
///     t0 = constant float32[128, 128] 0
///     t1 = for k: 512 by 64 with t2 = t0 {
///       t3 = load v0[i, k]
///       t4 = load v1[k, j]
///       t5 = mma t3, t4, t2
///       yield t5
///     }
///     store v2[i, j] = t1
///   }
///
/// An order that is that of the tensor is not written. Rows with gaps between them are those of `A:
/// bfloat16[n, 509] rows by 8`. What a convolution sees of an image is
///
///       t3 = window A[b, y*2 + ry - 1, x*2 + rx - 1, c] over b, y, x by c
std::string print(const Program& program);

/// Throws InvalidArgument SYNTAX with the place. What is read is verified.
Program parse(std::string_view text);

}  // namespace kiln::tile
