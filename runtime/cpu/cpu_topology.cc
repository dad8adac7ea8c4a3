// Which CPUs are threads of one core, which cores are on one socket, and whose memory is near:
//   cpu/cpu2/topology/thread_siblings_list       "2,66"
//   cpu/cpu2/topology/physical_package_id        "0"
//   node/node0/cpulist                           "0-31,64-95"
// Formats: Documentation/ABI/stable/sysfs-devices-system-cpu and sysfs-devices-node of the Linux
// kernel.
#include "runtime/cpu/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "runtime/cpu/cpus.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "0-2,8" -> {0, 1, 2, 8}; what is no list ends it.
std::set<int> numbers_of(std::string_view list) {
  std::set<int> numbers;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc{} || first < 0) break;
    int last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || last >= CPU_SETSIZE) break;
    for (int number = first; number <= last; ++number)
      numbers.insert(number);
    if (read.ptr == end || *read.ptr != ',') break;
    at = read.ptr + 1;
  }
  return numbers;
}

/// By their numbers: "node10" comes after "node2".
std::map<int, std::set<int>> cpus_of_nodes(const fs::path& folder) {
  std::map<int, std::set<int>> nodes;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, absent)) {
    const std::string name = entry.path().filename().string();
    int number = 0;
    if (!name.starts_with("node")) continue;
    const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    nodes[number] = numbers_of(line_of(entry.path() / "cpulist"));
  }
  return nodes;
}

cpu_set_t set_of(std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    CPU_SET(static_cast<size_t>(cpu), &set);
  return set;
}

}  // namespace

CpuTopology read_topology(std::span<const int> cpus, const fs::path& root) {
  std::set<std::string> cores;
  std::set<std::string> sockets;
  for (const int cpu : cpus) {
    const fs::path folder = root / "cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    const std::string siblings = line_of(folder / "thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
    sockets.insert(line_of(folder / "physical_package_id"));
  }
  CpuTopology topology{.cores = std::max(1, static_cast<int>(cores.size())),
                       .sockets = std::max(1, static_cast<int>(sockets.size()))};

  std::vector<int> left(cpus.begin(), cpus.end());
  for (const auto& node : cpus_of_nodes(root / "node")) {
    const std::set<int>& all = node.second;
    std::vector<int> own;
    std::erase_if(left, [&](int cpu) {
      if (all.contains(cpu)) own.push_back(cpu);
      return all.contains(cpu);
    });
    if (!own.empty()) topology.nodes.push_back(std::move(own));
  }
  if (topology.nodes.empty()) topology.nodes.emplace_back();
  topology.nodes.front().insert(topology.nodes.front().end(), left.begin(), left.end());
  return topology;
}

const CpuTopology& host_topology() {
  static const CpuTopology topology = read_topology(usable_cpus());
  return topology;
}

std::vector<NodePages> pages_by_node(int64_t first, int64_t end, int64_t pages, int nodes) {
  std::vector<NodePages> parts;
  for (int node = 0; node < nodes; ++node) {
    const int64_t begins = std::max(first, (pages * node + nodes - 1) / nodes);
    const int64_t ends = std::min(end, (pages * (node + 1) + nodes - 1) / nodes);
    if (begins < ends) parts.push_back({begins, ends - begins, node});
  }
  return parts;
}

OnCpus::OnCpus(std::span<const int> cpus) {
  CPU_ZERO(&before_);
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  const cpu_set_t set = set_of(cpus);
  moved_ = sched_setaffinity(0, sizeof set, &set) == 0;
}

OnCpus::~OnCpus() {
  if (moved_) sched_setaffinity(0, sizeof before_, &before_);
}

void stay_on(std::span<const int> cpus) {
  const cpu_set_t set = set_of(cpus);
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));
}

}  // namespace kiln
