#include "runtime/cpu/cpus.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <sched.h>

namespace kiln {
namespace {

/// The CPU quota of the process's cgroup (v2, then v1) in CPUs; infinity when there is none.
double cgroup_cpus() {
  std::string quota;
  double period = 0;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period) {
    if (quota != "max" && period > 0) return std::atof(quota.c_str()) / period;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = 0;
  if (quota_file >> microseconds && period_file >> period && microseconds > 0 && period > 0) {
    return microseconds / period;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

int available_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cpus = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cpus = CPU_COUNT(&mask);
  const double quota = std::ceil(cgroup_cpus());
  if (quota < cpus) cpus = static_cast<int>(quota);
  return std::max(cpus, 1);
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
