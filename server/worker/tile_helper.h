#pragma once

#include <memory>

#include "compiler/codegen/tileiras.h"

namespace kiln::server {

/// What a compiler that is to be confined has code of tiles made by: a process that is forked here,
/// with one thread yet, and may start tileiras. It is confined in its own way, does what it is
/// asked over a socket, and ends with this process.
///
/// Where there is no tileiras there is no process, and assembling throws what find_tileiras() says.
std::shared_ptr<const codegen::TileAssembler> start_tile_helper();

}  // namespace kiln::server
