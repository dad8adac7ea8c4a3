#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {
inline namespace client {

struct PredictOptions {
  /// Each size of the definition, by name.
  std::map<std::string, std::int64_t> sizes = {};
  /// How many cores of a CPU the kernel is to have; 0: as many as the service's host has.
  unsigned threads = 0;
};

/// What one bottleneck alone would take.
struct PredictedTerm {
  std::string name;  // "memory", ..: those of a CPU are others than those of a GPU
  double seconds = 0;
  bool on_top = false;  // added to the largest of the others
};

struct PredictedSchedule {
  std::string name;                // "C: outer products(rows=8, lanes=32)"
  std::vector<std::string> steps;  // as a kernel file has them
  double seconds = 0;              // of a run
  std::vector<PredictedTerm> terms;
};

struct Predictions {
  std::string machine;       // that the schedules are chosen for, in words
  std::string surroundings;  // its clock, caches, memory and threads, in words
  /// The one that is taken unmeasured, then the others, the quickest first.
  std::vector<PredictedSchedule> schedules;
};

}  // namespace client
}  // namespace kiln
