// What of the host a process may use: the affinity mask and the quota of its control group bound
// its CPUs, the group's limit its memory. Containers set these and show the host's own figures
// beside.
#include "runtime/cpu/cpus.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "runtime/cpu/cgroup.h"
#include "runtime/cpu/cpu_topology.h"

namespace kiln {

namespace {

int within_quota(int cpus) {
  const double quota = std::ceil(read_cgroup_limits().cpus);
  return std::max(quota < cpus ? static_cast<int>(quota) : cpus, 1);
}

}  // namespace

int available_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = CPU_COUNT(&mask);
  return within_quota(cpus);
}

int available_cores() { return within_quota(host_topology().cores); }

std::vector<int> usable_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

int64_t available_memory() {
  const int64_t host = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(host, read_cgroup_limits().memory_bytes);
}

int current_cpu() { return sched_getcpu(); }

void leave_cpu(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getcpu() != cpu) return;
  cpu_set_t all;
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t others = all;
  CPU_CLR(cpu, &others);
  // It may go where it likes afterwards: threads stay where they are as long as that is idle.
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) {
    sched_setaffinity(0, sizeof all, &all);
  }
}

}  // namespace kiln
