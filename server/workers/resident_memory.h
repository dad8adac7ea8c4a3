#pragma once

#include <cstdint>

namespace kiln::server {

/// The bytes that a worker process holds in memory; 0 when it is this process, or has ended.
int64_t resident_bytes(int pid);

}  // namespace kiln::server
