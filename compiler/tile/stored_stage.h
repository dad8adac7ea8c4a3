#pragma once

#include <cstdint>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// A stage that a program of its own stores before the product reads it.
struct StoredStage {
  Program program;               // whose last parameter it is
  std::vector<uint32_t> inputs;  // of the kernel: what the other parameters are
};

/// A kernel whose product reads stages that are stored first: they are its last parameters.
struct StoredFactors {
  language::Kernel rest;
  std::vector<StoredStage> stages;
};

/// The stages that are the computed factors of a product, taken out of it:
///
///   C[i, j] = sum[k](float32(R[i, k]) * float32(B[k, j])), where R[i, k] = gelu(A[i, k])
///     ->  a program that stores R; the product of R, as it was given, and B
///
/// No stages where no factor is one. Throws Unsupported TILE_FORM with the reason where the kernel
/// is no contraction, or what is in front of it is not done on tiles.
StoredFactors stored_factors(const language::Kernel& kernel);

}  // namespace kiln::tile
