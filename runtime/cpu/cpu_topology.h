#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <sched.h>

namespace kiln {

/// What the CPUs that a process may use are of: hardware threads of cores, cores of sockets, and
/// nodes, whose memory is nearer to their CPUs than that of others.
struct CpuTopology {
  int cores = 1;
  int sockets = 1;
  std::vector<std::vector<int>> nodes;  // their CPUs; only nodes that have some, in their order
};

/// Of these CPUs, by what sysfs at `root` says. A CPU that it says nothing of is a core of its own,
/// on the first socket and node.
CpuTopology read_topology(std::span<const int> cpus,
                          const std::filesystem::path& root = "/sys/devices/system");

/// Of the CPUs that this process might use when it was first called.
const CpuTopology& host_topology();

/// Pages of a tensor that belong on one node.
struct NodePages {
  int64_t first = 0;
  int64_t count = 0;
  int node = 0;
  bool operator==(const NodePages&) const = default;
};

/// Pages first .. end - 1 of a tensor that has so many, by nodes: the first node has the first
/// pages, as the first threads of a pool begin loops with the first iterations.
std::vector<NodePages> pages_by_node(int64_t first, int64_t end, int64_t pages, int nodes);

/// While it lives, the calling thread runs on these CPUs alone, as far as the system lets it: what
/// it touches first is memory of their node, also where a container may not say where memory is to
/// be (mbind).
class OnCpus {
 public:
  explicit OnCpus(std::span<const int> cpus);
  ~OnCpus();
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

/// The calling thread runs on these CPUs alone from now on, as far as the system lets it.
void stay_on(std::span<const int> cpus);

}  // namespace kiln
