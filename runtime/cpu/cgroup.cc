// Containers and services are bounded by control groups, which /proc/meminfo and the affinity mask
// say nothing of. A group is bounded by all those above it, so the whole path is read:
//   0::/system.slice/kilnd.service  ->  cpu.max and memory.max of that, of system.slice and of the
//   root
// Formats: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1 of the Linux kernel.
#include "runtime/cpu/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {
namespace {

namespace fs = std::filesystem;

/// The number a file begins with after `skipped` words; nothing for "max" and for no file.
std::optional<int64_t> number_in(const fs::path& path, int skipped = 0) {
  std::ifstream file(path);
  std::string word;
  for (int i = 0; i <= skipped; ++i) {
    if (!(file >> word)) return std::nullopt;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

void bound_cpus(CgroupLimits& limits, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  limits.cpus = std::min(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void bound_memory(CgroupLimits& limits, std::optional<int64_t> bytes) {
  if (bytes && *bytes > 0) limits.memory_bytes = std::min(limits.memory_bytes, *bytes);
}

/// Calls `look` for the group and those above it, up to `mount` itself. A group that is not there,
/// as in a container that sees the host's path, counts as the root.
template <typename Look>
void for_each_group(const fs::path& mount, const std::string& group, Look&& look) {
  fs::path path = fs::path(group).relative_path();
  std::error_code ignored;
  if (!fs::is_directory(mount / path, ignored)) path.clear();
  for (; !path.empty(); path = path.parent_path())
    look(mount / path);
  look(mount);
}

bool lists(std::string_view controllers, std::string_view controller) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == controller) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& root, const fs::path& self) {
  CgroupLimits limits;
  std::ifstream file(self);
  for (std::string line; std::getline(file, line);) {
    // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      for_each_group(root, group, [&](const fs::path& path) {
        bound_cpus(limits, number_in(path / "cpu.max"), number_in(path / "cpu.max", 1));
        bound_memory(limits, number_in(path / "memory.max"));
      });
    }
    if (lists(controllers, "cpu")) {
      for_each_group(root / "cpu", group, [&](const fs::path& path) {
        bound_cpus(limits, number_in(path / "cpu.cfs_quota_us"),
                   number_in(path / "cpu.cfs_period_us"));
      });
    }
    if (lists(controllers, "memory")) {
      for_each_group(root / "memory", group, [&](const fs::path& path) {
        bound_memory(limits, number_in(path / "memory.limit_in_bytes"));
      });
    }
  }
  return limits;
}

}  // namespace kiln
