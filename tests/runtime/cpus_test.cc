#include "runtime/cpu/cpus.h"

#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

namespace kiln {
namespace {

cpu_set_t own_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  return cpus;
}

TEST(AvailableCpus, IsAtLeastOne) { EXPECT_GE(available_cpus(), 1); }

TEST(LeaveCpu, MovesToAnotherAndKeepsWhereTheThreadMayRun) {
  std::thread([] {
    const cpu_set_t before = own_cpus();
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one CPU";
    // It may be moved back at once where the other one has more to do.
    int left = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const int cpu = current_cpu();
      leave_cpu(cpu);
      left += current_cpu() != cpu;
    }
    EXPECT_GT(left, 50);
    const cpu_set_t after = own_cpus();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }).join();
}

TEST(LeaveCpu, StaysWhereThereIsNoOtherCpu) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(current_cpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    leave_cpu(current_cpu());
    const cpu_set_t after = own_cpus();
    EXPECT_TRUE(CPU_EQUAL(&one, &after));
    leave_cpu(-1);
    leave_cpu(1 << 20);
    const cpu_set_t last = own_cpus();
    EXPECT_TRUE(CPU_EQUAL(&one, &last));
  }).join();
}

}  // namespace
}  // namespace kiln
