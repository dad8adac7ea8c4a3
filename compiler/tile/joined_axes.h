#pragma once

#include "compiler/language/kernel.h"

namespace kiln::tile {

/// The same kernel with one axis in the place of two that go on into each other in each tensor that
/// has them; what is in memory stays as it is:
///
///   Y[n, m, y, x] = sum[c](F[m, c] * X[n, c, y, x])  ->  Y[n, m, yx] = sum[c](F[m, c] * X[n, c,
///   yx]) C[b, i, j] = sum[k](A[b, i, k] * B[k, j])        ->  C[bi, j] = sum[k](A[bi, k] * B[k,
///   j])
///
/// Only of known extents, and where nothing is computed of a place on them.
language::Kernel with_joined_axes(language::Kernel kernel);

}  // namespace kiln::tile
