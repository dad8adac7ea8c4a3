#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

/// CPUs this process may use: its affinity mask, and the CPU quota of its cgroup rounded up.
int available_cpus();

/// Cores of these: hardware threads of one core share its arithmetic and its caches, so that a
/// kernel has one thread of each.
int available_cores();

/// The affinity mask, in order.
std::vector<int> usable_cpus();

/// Bytes of memory this process may use: the host's, as far as the limit of its cgroup goes.
int64_t available_memory();

/// The CPU that the calling thread runs on.
int current_cpu();

/// Moves the calling thread to another CPU when it is on this one and may use others.
void leave_cpu(int cpu);

}  // namespace kiln
