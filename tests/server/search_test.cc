#include "server/tuning/search.h"

#include <cmath>

#include <gtest/gtest.h>

namespace kiln::server {
namespace {

/// Two sketches of one stage: a tile of rows and lanes, and plain rows.
std::vector<StageSketches> tile_space() {
  const autoschedule::Parameter rows{"rows", {1, 2, 4, 6, 8, 10, 12, 14, 16}, 8};
  const autoschedule::Parameter lanes{"lanes", {8, 16, 32, 64, 128}, 32};
  const autoschedule::Parameter depth{"depth", {0, 64, 128, 256, 512}, 0};
  return {{0,
           {{.name = "tile", .parameters = {rows, lanes, depth}, .write = {}},
            {.name = "rows", .parameters = {rows}, .write = {}}}}};
}

/// Seconds with one hollow, at rows 12, lanes 64, depth 256.
double hollow(const Candidate& candidate) {
  const Candidate::Choice& choice = candidate.stages[0];
  if (choice.sketch == 1) return 10;
  const auto off = [&](size_t i, double best, double scale) {
    return std::abs(static_cast<double>(choice.values[i]) - best) / scale;
  };
  return 1 + off(0, 12, 4) + off(1, 64, 32) + off(2, 256, 128);
}

TEST(Search, BeginsWithWhatIsTakenUnmeasured) {
  Search search(tile_space(), 1);
  EXPECT_EQ(key_of(*search.next()), "0:8,32,0");
  EXPECT_EQ(key_of(*search.next()), "1:8");
}

TEST(Search, TriesEachCandidateOnceAndThenEnds) {
  Search search(tile_space(), 1);
  EXPECT_EQ(search.candidates(), 9 * 5 * 5 + 9);
  std::set<std::string> seen;
  while (const std::optional<Candidate> candidate = search.next()) {
    EXPECT_TRUE(seen.insert(key_of(*candidate)).second) << key_of(*candidate);
    search.tried(*candidate,
                 seen.size() % 3 == 0 ? std::nullopt : std::optional(hollow(*candidate)));
  }
  EXPECT_EQ(seen.size(), 9U * 5 * 5 + 9);
}

TEST(Search, FindsAHollowBeforeAThirdOfTheSpaceIsTried) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Search search(tile_space(), seed);
    double best = 100;
    for (int trial = 0; trial < 78; ++trial) {
      const Candidate candidate = *search.next();
      best = std::min(best, hollow(candidate));
      search.tried(candidate, hollow(candidate));
    }
    EXPECT_EQ(best, 1) << "seed " << seed;
  }
}

TEST(Search, GoesOnFromWhatWasTriedBefore) {
  Search search(tile_space(), 1);
  search.tried(*candidate_of("0:8,32,0", search.space()), 1.0);
  search.tried(*candidate_of("1:8", search.space()), std::nullopt);
  const std::string next = key_of(*search.next());
  EXPECT_NE(next, "0:8,32,0");
  EXPECT_NE(next, "1:8");
}

TEST(Search, ReadsOnlyKeysOfItsSpace) {
  const std::vector<StageSketches> space = tile_space();
  for (const char* key : {"0:8,32,0", "1:16", "0:16,128,512"}) {
    const std::optional<Candidate> candidate = candidate_of(key, space);
    ASSERT_TRUE(candidate) << key;
    EXPECT_EQ(key_of(*candidate), key);
  }
  for (const char* key : {"", "0", "0:", "0:8", "0:8,32,1", "2:8", "1:8;1:8", "1:8,", "1:x", "x:8",
                          "1:99999999999999999999"}) {
    EXPECT_FALSE(candidate_of(key, space)) << key;
  }
}

}  // namespace
}  // namespace kiln::server
