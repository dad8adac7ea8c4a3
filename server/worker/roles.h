#pragma once

#include "server/worker/compiler_loop.h"
#include "server/worker/device_loop.h"

namespace kiln::server {

/// The compiler of Kiln as a worker offers it.
CompilerWorker kiln_compiler();
/// The CPU of this host, with this many threads (0: as many as the process may use).
DeviceWorker cpu_worker(int threads);
DeviceWorker cuda_worker(int index);

}  // namespace kiln::server
