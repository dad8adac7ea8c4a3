#pragma once

#include "compiler/language/kernel.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// How a block computes its part of a product: so many rows and columns of sums, so many steps of
/// them at once, and by how many warps (0: what the assembler thinks best).
struct BlockShape {
  int64_t rows = 128;
  int64_t columns = 128;
  int64_t steps = 64;
  int warps = 0;
};

/// A definition whose one output is a sum of products of 16-bit or 8-bit floats in float32, or of
/// 8-bit integers in int32, element by element made into something else perhaps, as a program on
/// tiles:
///
///   C[b, i, j] = float16(max(sum[k](float32(A[b, i, k]) * float32(B[b, k, j])) + bias[j], 0))
///
/// Factors and output have any order of dimensions; sizes are known or not. Of the names those that
/// can be written are kept. Throws Unsupported TILE_FORM with the reason where it is another one.
Program contraction(const language::Kernel& kernel, const BlockShape& shape);

/// A shape by how many blocks the sizes give, as far as they are known. Throws as above.
BlockShape block_shape(const language::Kernel& kernel);

}  // namespace kiln::tile
