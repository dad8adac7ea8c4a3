#pragma once

#include <span>
#include <vector>

#include "compiler/language/evaluate/host_tensor.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// What a program computes, block after block: an oracle for what becomes of it on a GPU. Elements
/// are rounded to their type after every instruction; mma adds in the order of the sum, rounding to
/// float32 after each product, which is exact.
///
/// `inputs`: one tensor for each parameter that is no output, in their order. Returns the outputs;
/// elements that no block stores are 0. Throws Internal TILE_RACE where two blocks store an
/// element: verify() refuses such programs, and this does not rely on it.
std::vector<language::HostTensor> interpret(const Program& program, std::span<const int64_t> sizes,
                                            std::span<const language::HostTensor> inputs);

}  // namespace kiln::tile
