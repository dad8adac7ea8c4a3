#pragma once

#include <unordered_set>

#include "compiler/ir/stmt.h"

namespace kiln::codegen {

using LoopSet = std::unordered_set<const ir::For*>;

/// Loops in whose iterations two memories take turns, beside sums that take half of all registers.
struct TurnLoops {
  LoopSet all;
  LoopSet written_twice;  // those of which code has two iterations written out
};
TurnLoops turn_loops(const ir::Stmt& body);

}  // namespace kiln::codegen
