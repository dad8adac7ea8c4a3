#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/tile/program.h"

namespace kiln::tile {

/// A program that stores `from` to `to`, whose dimension d is dimension order[d] of it. Dimensions
/// that stay side by side are one in it:
///
///   X[32, 256, 56, 56] to [n, y, x, c]  ->  X[32, 256, 3136] to [32, 3136, 256]
Program copy_program(const std::string& name, const std::vector<std::string>& sizes,
                     const Parameter& from, const Parameter& to, std::span<const uint32_t> order);

}  // namespace kiln::tile
