#pragma once

#include <cstddef>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"

namespace kiln::codegen {

/// A product of matrices, or a loop over the steps of some, whose sums a chain begins with, goes on
/// with, or hands over to the whole.
struct ChainLink {
  const ir::For* products;
  ir::BufferRef sums;
  size_t chain = 0;  // its number
  bool is_first = false;
  bool is_last = false;
};

/// Of a launch the products that an instruction may add up by itself for some steps only
/// (ir::MatrixUnit::chained_steps), in the order of the code: those that follow each other in one
/// block are a chain as long as their steps are no more than that.
///
///   for k in 0..8 { await  for g in 0..2 { product of 32 steps }
///                   await  for g in 0..2 { product of 32 steps } }
///     ->  the two loops are one chain of 128 steps
std::vector<ChainLink> matrix_chains(const ir::Stmt& body, const std::vector<const ir::For*>& axes);

/// Whether a launch of a lowered kernel has such products.
bool has_matrix_chains(const ir::Kernel& kernel);

}  // namespace kiln::codegen
