#pragma once

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::server {

using autoschedule::Candidate;
using autoschedule::StageSketches;

/// "0:8,32,1;1:16,1": the sketch of each stage and its values. Two of one space are the same
/// exactly when their texts are.
std::string key_of(const Candidate& candidate);
/// Nothing for a text that is no candidate of the space.
std::optional<Candidate> candidate_of(const std::string& key, std::span<const StageSketches> space);

/// Which candidate of a space to measure next.
///
/// First what is taken unmeasured, then each other sketch with the values it prefers, then some
/// drawn at random; after that mostly neighbours of the fastest so far (one parameter moved, or one
/// stage with another sketch), and a random one now and then: an evolution strategy, (4 + 1) with
/// restarts. Deterministic for a seed and the times it is told.
class Search {
 public:
  Search(std::vector<StageSketches> space, uint64_t seed);

  const std::vector<StageSketches>& space() const { return space_; }
  /// What is taken unmeasured.
  Candidate preferred() const { return autoschedule::preferred(space_); }
  /// How many there are; a floating number, since they may be very many.
  double candidates() const;
  /// One that was not tried; nothing when all were.
  std::optional<Candidate> next();
  /// What came of it: seconds a run, or nothing when it failed.
  void tried(const Candidate& candidate, std::optional<double> seconds);
  bool was_tried(const Candidate& candidate) const { return tried_.contains(key_of(candidate)); }

 private:
  Candidate random();
  Candidate neighbour(Candidate candidate);
  /// The first in the order of the space that was not tried.
  std::optional<Candidate> first_untried() const;
  void plan_first();
  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random_);
  }

  const std::vector<StageSketches> space_;
  std::mt19937_64 random_;
  std::vector<Candidate> planned_;  // to be taken from the back
  std::set<std::string> tried_;
  std::multimap<double, Candidate> fastest_;  // few
};

}  // namespace kiln::server
