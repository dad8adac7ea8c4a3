#pragma once

#include <memory>

#include "compiler/codegen/tileiras.h"
#include "server/worker/compiler_loop.h"
#include "server/worker/device_loop.h"

namespace kiln::server {

/// The compiler of Kiln as a worker offers it, with what assembles code made of tiles.
/// `threads` as for cpu_worker(), whose kernels it compiles.
CompilerWorker kiln_compiler(std::shared_ptr<const codegen::TileAssembler> assembler, int threads);
/// The CPU of this host, with this many threads (0: as many as the process may use).
DeviceWorker cpu_worker(int threads);
DeviceWorker cuda_worker(int index);

}  // namespace kiln::server
