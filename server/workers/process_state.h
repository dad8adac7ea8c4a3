#pragma once

#include <cstdint>

namespace kiln::server {

/// The bytes that a worker process holds in memory; 0 when it is this process, or has ended.
int64_t resident_bytes(int pid);

/// Whether a process has work: one of its threads runs, or would if it were given a processor, or
/// its memory from the disk. One that is stopped has none, and one that waits for something else.
bool has_work(int pid);

}  // namespace kiln::server
