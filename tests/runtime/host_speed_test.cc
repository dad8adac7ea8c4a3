#include "runtime/cpu/host_speed.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

// A chain that a CPU puts together has it run at 20 GHz and more.
TEST(HostSpeed, ClockIsThatOfACpu) {
  const double gigahertz = measure_host(1).gigahertz;
  EXPECT_GT(gigahertz, 0.2);
  EXPECT_LT(gigahertz, 8);
}

TEST(HostSpeed, OfTwoTurnsIsTheBetterOfEachFigure) {
  const HostSpeed best = best_of({.gigahertz = 3, .from_l3 = 20, .start_seconds = 2e-6},
                                 {.gigahertz = 2, .from_l3 = 30, .start_seconds = 1e-6});
  EXPECT_EQ(best.gigahertz, 3);
  EXPECT_EQ(best.from_l3, 30);
  EXPECT_EQ(best.start_seconds, 1e-6);
}

}  // namespace
}  // namespace kiln
