#pragma once

#include <array>
#include <cstdint>

#include "compiler/analysis/tile_settings.h"

namespace kiln::codegen {

/// What LDTILECFG reads: the palette, and of each tile the bytes of a row and how many rows.
std::array<uint8_t, 64> tile_configuration(const analysis::TileSettings& settings);

}  // namespace kiln::codegen
