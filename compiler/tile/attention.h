#pragma once

#include <string_view>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// How a block computes an attention: so many queries, so many keys at once, by how many warps (0:
/// what the assembler thinks best), and so many numbers of a query and a key at once (0: all). It
/// has so many numbers of a result (0: all); blocks with others of them compute the scores anew.
struct AttentionShape {
  int64_t queries = 128;
  int64_t keys = 128;
  int warps = 8;
  int64_t depth = 0;
  int64_t columns = 0;
  bool operator==(const AttentionShape&) const = default;
};

/// Whether the kernel is an attention, of whatever types and sizes.
bool is_attention(const language::Kernel& kernel);

/// Shapes by the sizes that are known and the architecture, the best first, of which those that
/// spill registers are no good. Throws Unsupported TILE_FORM with the reason where it is no
/// attention that tiles do.
std::vector<AttentionShape> attention_shapes(const language::Kernel& kernel, std::string_view arch);

/// An attention as a program on tiles, whose scores are never stored. Throws as above.
Program attention(const language::Kernel& kernel, const AttentionShape& shape);

}  // namespace kiln::tile
