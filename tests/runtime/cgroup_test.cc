#include "runtime/cpu/cgroup.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "runtime/cpu/cpus.h"
#include "tests/runtime/system_files.h"

namespace kiln {
namespace {

/// The mount point of control groups.
class Groups : public testing::SystemFiles {
 protected:
  CgroupLimits limits(const std::string& self) const {
    write("self", self);
    return read_cgroup_limits(root_, root_ / "self");
  }
};

TEST_F(Groups, TheLeastOfTheOwnGroupAndThoseAboveHolds) {
  write("system.slice/kilnd.service/cpu.max", "400000 100000");
  write("system.slice/kilnd.service/memory.max", "8589934592");
  write("system.slice/cpu.max", "150000 100000");
  write("system.slice/memory.max", "max");
  write("memory.max", "17179869184");
  const CgroupLimits found = limits("0::/system.slice/kilnd.service");
  EXPECT_EQ(found.cpus, 1.5);
  EXPECT_EQ(found.memory_bytes, 8589934592);
}

TEST_F(Groups, AGroupThatIsNotThereCountsAsTheRoot) {
  write("cpu.max", "50000 100000");
  write("memory.max", "1048576");
  const CgroupLimits found = limits("0::/docker/0123abcd");
  EXPECT_EQ(found.cpus, 0.5);
  EXPECT_EQ(found.memory_bytes, 1048576);
}

TEST_F(Groups, Version1HasAFolderEachController) {
  write("cpu/kiln/cpu.cfs_quota_us", "300000");
  write("cpu/kiln/cpu.cfs_period_us", "100000");
  write("cpu/cpu.cfs_quota_us", "-1");
  write("cpu/cpu.cfs_period_us", "100000");
  write("memory/kiln/memory.limit_in_bytes", "2097152");
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  const CgroupLimits found = limits("4:memory:/kiln\n3:cpuset:/\n1:cpu,cpuacct:/kiln\n0::/");
  EXPECT_EQ(found.cpus, 3);
  EXPECT_EQ(found.memory_bytes, 2097152);
}

TEST_F(Groups, WhatCannotBeReadLimitsNothing) {
  write("cpu.max", "soon");
  write("memory/memory.limit_in_bytes", "x1");
  const CgroupLimits found = limits("no line of a cgroup\n0:\n7:memory:/");
  EXPECT_TRUE(std::isinf(found.cpus));
  EXPECT_EQ(found.memory_bytes, std::numeric_limits<int64_t>::max());
}

TEST(AvailableMemory, IsAtMostWhatTheCgroupAllows) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_LE(available_memory(), read_cgroup_limits().memory_bytes);
}

}  // namespace
}  // namespace kiln
