#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/tile/find_product.h"

namespace kiln::tile {

/// How a block computes its part of a product: so many rows and columns of sums, so many steps of
/// them at once, and by how many warps (0: what the assembler thinks best); and whether its sums of
/// 8-bit floats stay in the few bits of tensor cores.
struct BlockShape {
  int64_t rows = 128;
  int64_t columns = 128;
  int64_t steps = 64;
  int warps = 0;
  bool is_fast = false;
};

/// Where 8-bit floats are added up.
enum class ByteFloatSums : uint8_t {
  InFloat32,  // by tensor cores
  InFewBits,  // by tensor cores
  InParts,    // in few bits, and the parts in float32
};

/// How a product does it for an architecture; `fast` where it may lose bits.
ByteFloatSums byte_float_sums(std::string_view arch, bool fast);

/// Shapes by how many blocks the sizes give, as far as they are known, the best first; others have
/// fewer sums in a block, and so more registers for each. Throws Unsupported TILE_FORM with the
/// reason where the kernel is no contraction.
std::vector<BlockShape> block_shapes(const language::Kernel& kernel,
                                     ByteFloatSums sums = ByteFloatSums::InParts);
/// The best.
BlockShape block_shape(const language::Kernel& kernel);

/// How many places of each of the row axes a block has, whose product is `rows`.
std::vector<int64_t> row_steps(const language::Definition& definition, const ProductFinder& finder,
                               const Product& product, int64_t rows);

/// How many places of an axis a block has, or of one that is summed over an iteration.
int64_t step_of(const Product& product, const BlockShape& shape, std::span<const int64_t> row_steps,
                language::AxisId axis);

}  // namespace kiln::tile
