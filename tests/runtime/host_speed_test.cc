#include "runtime/cpu/host_speed.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

// A chain that a CPU puts together has it run at 20 GHz and more.
TEST(HostSpeed, ClockIsThatOfACpu) {
  const double gigahertz = host_speed().gigahertz;
  EXPECT_GT(gigahertz, 0.2);
  EXPECT_LT(gigahertz, 8);
}

}  // namespace
}  // namespace kiln
