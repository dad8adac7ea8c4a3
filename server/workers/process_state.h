#pragma once

#include <cstdint>

namespace kiln::server {

/// The bytes that a worker process holds in memory; 0 when it is this process, or has ended.
int64_t resident_bytes(int pid);

/// Whether a thread would run if it were given a processor, or its memory from the disk.
bool waits_to_run(int pid, int thread);

}  // namespace kiln::server
