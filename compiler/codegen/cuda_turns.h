#pragma once

#include <string>
#include <unordered_set>

#include "compiler/ir/launch.h"

namespace kiln::codegen {

using LoopSet = std::unordered_set<const ir::For*>;

/// Loops in whose iterations two memories take turns, beside sums that take half of all registers.
struct TurnLoops {
  LoopSet all;
  LoopSet written_twice;  // those of which code has two iterations written out
};
TurnLoops turn_loops(const ir::Stmt& body);

/// "__launch_bounds__(256, 2) ". `has_matrices`: a thread holds sums of matrices; `has_turns`:
/// there are loops with such turns.
std::string launch_bounds_of(const ir::LaunchNest& nest, bool has_matrices, bool has_turns);

}  // namespace kiln::codegen
