#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/language/kernel.h"

namespace kiln::tile {

/// A copy of a factor, which a program of its own makes before the product reads it: dimension d is
/// dimension order[d] of the tensor, and its rows begin at multiples of 16 bytes.
struct FactorCopy {
  uint32_t parameter = 0;  // of the kernel
  std::vector<uint32_t> order;
  int64_t row_multiple = 0;  // elements
  bool is_spared = false;    // where the call's rows begin at such multiples as they are
};

/// The copies by which copies without threads and tensor cores reach a kernel's factors on that
/// architecture; none where they lie well:
///
///   A[i, k] of 4093 numbers in a row   ->  rows of 4096
///   A[i, k] of n numbers               ->  rows by 8, unless n is a multiple of 8
///   B[k, j] of int8, on sm_90          ->  B[j, k]: its tensor cores read bytes along the sum
///   alone a window of X[n, c, y, x]          ->  X[n, y, x, c]
///
/// Throws Unsupported TILE_FORM with the reason where the kernel is no contraction.
std::vector<FactorCopy> factor_copies(const language::Kernel& kernel, std::string_view arch);

}  // namespace kiln::tile
