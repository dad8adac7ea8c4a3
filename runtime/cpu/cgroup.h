#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

namespace kiln {

/// What the control groups of a process allow it, the least of its own group and of those above.
struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();  // CPU seconds a second
  int64_t memory_bytes = std::numeric_limits<int64_t>::max();
};

/// Reads the limits of the process whose groups `self` lists (see cgroups(7)), below the mount
/// point `root`; version 2 and version 1. What cannot be read limits nothing.
CgroupLimits read_cgroup_limits(const std::filesystem::path& root = "/sys/fs/cgroup",
                                const std::filesystem::path& self = "/proc/self/cgroup");

}  // namespace kiln
