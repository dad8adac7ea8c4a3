// Finds the tiles of float32 of which tensor cores read a part of each element. From back to front,
// since a tile is made before it is used.
#include "compiler/tile/tensor_floats.h"

namespace kiln::tile {
namespace {

// The program may be one that is not verified yet.
void mark(const std::vector<Instruction>& body, std::vector<bool>& marked) {
  const auto is_factor = [&](const Instruction& each, size_t operand) {
    if (const auto* mma = std::get_if<Mma>(&each.what)) return operand < 2 && mma->in_tf32;
    return std::holds_alternative<Reshape>(each.what) && each.results.size() == 1 &&
           marked[each.results[0]];
  };
  for (auto at = body.rbegin(); at != body.rend(); ++at) {
    const Instruction& each = *at;
    if (const auto* loop = std::get_if<For>(&each.what)) mark(loop->body, marked);
    for (size_t i = 0; i < each.operands.size(); ++i) {
      const ValueId operand = each.operands[i];
      if (operand < marked.size() && is_factor(each, i)) marked[operand] = true;
    }
  }
}

}  // namespace

std::vector<bool> tensor_floats(const Program& program) {
  std::vector<bool> marked(program.values.size(), false);
  mark(program.body, marked);
  return marked;
}

}  // namespace kiln::tile
