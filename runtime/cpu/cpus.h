#pragma once

namespace kiln {

/// CPUs this process may use: its affinity mask, and the CPU quota of its cgroup rounded up.
int available_cpus();

/// The CPU that the calling thread runs on.
int current_cpu();

/// Moves the calling thread to another CPU when it is on this one and may use others.
void leave_cpu(int cpu);

}  // namespace kiln
