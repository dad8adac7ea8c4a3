#include "runtime/cpu/cpu_topology.h"

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cpu/cpus.h"
#include "tests/runtime/system_files.h"

namespace kiln {
namespace {

/// As /sys/devices/system.
class Topologies : public testing::SystemFiles {
 protected:
  void add_cpu(int cpu, const std::string& siblings, int socket) const {
    const std::string folder = "cpu/cpu" + std::to_string(cpu) + "/topology/";
    write(folder + "thread_siblings_list", siblings);
    write(folder + "physical_package_id", std::to_string(socket));
  }
  /// Two sockets of two cores of two threads: 0 and 4 are of the first core, 2 and 6 of the third.
  void add_two_sockets() const {
    for (int cpu = 0; cpu < 8; ++cpu) {
      const int core = cpu % 4;
      add_cpu(cpu, std::to_string(core) + "," + std::to_string(core + 4), core / 2);
    }
    write("node/node0/cpulist", "0-1,4-5");
    write("node/node1/cpulist", "2-3,6-7");
    write("node/possible", "0-1");
  }
};

std::vector<int> first_cpus(int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

TEST_F(Topologies, CountsCoresOnceAndSocketsAndHasTheCpusOfNodes) {
  add_two_sockets();
  const CpuTopology all = read_topology(first_cpus(8), root_);
  EXPECT_EQ(all.cores, 4);
  EXPECT_EQ(all.sockets, 2);
  EXPECT_EQ(all.nodes, (std::vector<std::vector<int>>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST_F(Topologies, KnowsOnlyOfTheCpusThatAreUsed) {
  add_two_sockets();
  const CpuTopology one = read_topology(std::vector<int>{2, 6, 7}, root_);
  EXPECT_EQ(one.cores, 2);
  EXPECT_EQ(one.sockets, 1);
  EXPECT_EQ(one.nodes, (std::vector<std::vector<int>>{{2, 6, 7}}));
}

TEST_F(Topologies, HasNodesByTheirNumbers) {
  for (int cpu = 0; cpu < 3; ++cpu)
    add_cpu(cpu, std::to_string(cpu), 0);
  write("node/node10/cpulist", "0");
  write("node/node2/cpulist", "1");
  write("node/node3/cpulist", "");  // memory without CPUs
  write("node/node4/cpulist", "2-x");
  const CpuTopology found = read_topology(first_cpus(3), root_);
  // CPU 2, of no list, goes to the first.
  EXPECT_EQ(found.nodes, (std::vector<std::vector<int>>{{1, 2}, {0}}));
}

TEST_F(Topologies, TakesCpusForCoresWhereNothingIsSaid) {
  const CpuTopology found = read_topology(first_cpus(3), root_ / "absent");
  EXPECT_EQ(found.cores, 3);
  EXPECT_EQ(found.sockets, 1);
  EXPECT_EQ(found.nodes, (std::vector<std::vector<int>>{{0, 1, 2}}));
  EXPECT_EQ(read_topology({}, root_).cores, 1);
}

TEST(HostTopology, IsOfTheCpusAtHand) {
  const CpuTopology& host = host_topology();
  size_t cpus = 0;
  for (const std::vector<int>& node : host.nodes)
    cpus += node.size();
  EXPECT_EQ(cpus, usable_cpus().size());
  EXPECT_GE(host.cores, 1);
  EXPECT_LE(host.cores, static_cast<int>(cpus));
  EXPECT_LE(available_cores(), host.cores);
  EXPECT_LE(available_cores(), available_cpus());
}

TEST(PagesByNode, GivesEachNodeItsShareInOrder) {
  EXPECT_EQ(pages_by_node(0, 8, 8, 2), (std::vector<NodePages>{{0, 4, 0}, {4, 4, 1}}));
  EXPECT_EQ(pages_by_node(0, 7, 7, 3), (std::vector<NodePages>{{0, 3, 0}, {3, 2, 1}, {5, 2, 2}}));
  // A part of it, as an upload writes it.
  EXPECT_EQ(pages_by_node(3, 5, 8, 2), (std::vector<NodePages>{{3, 1, 0}, {4, 1, 1}}));
  EXPECT_EQ(pages_by_node(6, 7, 8, 2), (std::vector<NodePages>{{6, 1, 1}}));
  EXPECT_EQ(pages_by_node(0, 1, 1, 4), (std::vector<NodePages>{{0, 1, 0}}));
}

TEST(PagesByNode, HasEachPageOnce) {
  for (int64_t pages = 1; pages < 20; ++pages) {
    for (int nodes = 1; nodes < 9; ++nodes) {
      int64_t next = 0;
      for (const NodePages& part : pages_by_node(0, pages, pages, nodes)) {
        EXPECT_EQ(part.first, next);
        next += part.count;
      }
      EXPECT_EQ(next, pages) << pages << " pages, " << nodes << " nodes";
    }
  }
}

TEST(OnCpus, MovesTheThreadAndBringsItBack) {
  std::thread([] {
    const std::vector<int> before = usable_cpus();
    for (const int cpu : before) {
      const OnCpus here(std::vector<int>{cpu});
      EXPECT_EQ(usable_cpus(), std::vector<int>{cpu});
      EXPECT_EQ(current_cpu(), cpu);
    }
    EXPECT_EQ(usable_cpus(), before);
  }).join();
}

TEST(OnCpus, LeavesTheThreadWhereTheSystemRefuses) {
  const std::vector<int> before = usable_cpus();
  {
    // No CPU at all.
    const OnCpus nowhere(std::vector<int>{});
    EXPECT_EQ(usable_cpus(), before);
  }
  EXPECT_EQ(usable_cpus(), before);
}

}  // namespace
}  // namespace kiln
