#pragma once

#include "compiler/language/kernel.h"

namespace kiln::tile {

/// The same kernel without axes that are summed over one place, and inputs without the dimensions
/// of one element in which nothing else moves; what is in memory stays as it is:
///
///   sum[c < 64, r < 1, s < 1](X[n, c, y + r, x + s] * F[m, c, r, s]), F: float16[m, 64, 1, 1]
///     ->  sum[c < 64](X[n, c, y, x] * F[m, c]), F: float16[m, 64]
language::Kernel without_ones(language::Kernel kernel);

}  // namespace kiln::tile
