#pragma once

#include <cstdint>
#include <string>

#include "compiler/ir/launch.h"

namespace kiln::codegen {

/// What of a launch says how many registers its threads are worth.
struct RegisterNeeds {
  bool has_matrices = false;    // a thread holds sums of matrices
  bool has_turns = false;       // there are loops with such turns (cuda_turns.h)
  int64_t multiprocessors = 0;  // of the GPU; 0: not known
};

/// "__launch_bounds__(256, 2) "
std::string launch_bounds_of(const ir::LaunchNest& nest, const RegisterNeeds& needs);

}  // namespace kiln::codegen
