#pragma once

#include "compiler/tile/thread_products.h"

namespace kiln::tile {

/// Whether four neighbours, two along each side, share the steps of products of which each of them
/// has so many rows and columns of sums.
bool are_steps_shared(int64_t rows, int64_t columns);

bool are_steps_shared(const ThreadProduct& product);

/// The product of lanes, four of which share its steps.
ir::Stmt by_lanes_with_shared_steps(const ThreadProduct& product);

}  // namespace kiln::tile
