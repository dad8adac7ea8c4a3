#include "server/tuning/turns.h"

#include <gtest/gtest.h>

namespace kiln::server {
namespace {

using Seconds = std::vector<double>;

TEST(Turns, ACandidateMustWinNearlyAllOfThem) {
  const Seconds best(7, 10.0);
  EXPECT_TRUE(kBetter.is_passed({Seconds(7, 9.0), best, best}));
  EXPECT_TRUE(kBetter.is_passed({{9, 9, 9, 12, 9, 9, 9}, best, best}));
  EXPECT_FALSE(kBetter.is_passed({{9, 9, 9, 12, 12, 9, 9}, best, best}));
  EXPECT_FALSE(kBetter.is_passed({Seconds(7, 9.9), best, best})) << "no difference";
}

/// A machine that is busy in some turns: each is won, and yet the figures say the contrary.
TEST(Turns, ACandidateMustNotBeSlowerThanTheDefaultInTheMiddle) {
  const Turns busy{{9, 9, 19, 19, 19, 19, 30}, {10, 10, 20, 20, 20, 20, 20}, Seconds(7, 17.0)};
  EXPECT_FALSE(kBetter.is_passed(busy));
  EXPECT_LT(busy.speedup(), 1);
  Turns same = busy;
  same.defaults = same.best;
  EXPECT_TRUE(kBetter.is_passed(same));
  EXPECT_GT(same.speedup(), 1);
}

TEST(Turns, ARecordStaysUnlessItIsSeenToBeNone) {
  const Seconds best(7, 10.0);
  EXPECT_TRUE(kKept.is_passed({{10.1, 10.1, 10.1, 10.1, 10.1, 9.9, 9.9}, best, best}));
  EXPECT_FALSE(kKept.is_passed({{10.1, 10.1, 10.1, 10.1, 10.1, 10.1, 9.9}, best, best}));
  EXPECT_FALSE(kKept.is_passed({{10.5, 10.5, 10.5, 10.5, 10.5, 9.9, 9.9}, best, best}));
}

TEST(Turns, TellHowManyTimesAsFastAsTheDefault) {
  EXPECT_EQ((Turns{{4, 5, 6}, {1, 1, 1}, {9, 10, 30}}.speedup()), 2);
}

}  // namespace
}  // namespace kiln::server
