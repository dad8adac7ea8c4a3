#pragma once

#include <span>
#include <string_view>

#include "compiler/language/kernel.h"
#include "compiler/tile/block_shape.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// A definition whose one output is a sum of products of 16-bit or 8-bit floats in float32, or of
/// 8-bit integers in int32, element by element made into something else perhaps, as a program on
/// tiles:
///
///   C[b, i, j] = float16(max(sum[k](float32(A[b, i, k]) * float32(B[b, k, j])) + bias[j], 0))
///
/// Factors and output have any order of dimensions; sizes are known or not. A factor may be a
/// window of images whose channels come last: then it is a convolution. Of the names those that can
/// be written are kept. Throws Unsupported TILE_FORM with the reason where it is another one.
Program contraction(const language::Kernel& kernel, const BlockShape& shape);

/// Architectures for whose products tiles are better than CUDA C: those whose tensor cores work
/// asynchronously, wgmma and tcgen05. On others, sm_120 among them, the CUDA C has more matrix
/// instructions in the main loop of a product.
std::span<const std::string_view> product_architectures();

/// Whether the kernel is a contraction that is done on tiles there, and reads whole tensors, no
/// windows of them.
bool is_plain_product(const language::Kernel& kernel, std::string_view arch);

}  // namespace kiln::tile
