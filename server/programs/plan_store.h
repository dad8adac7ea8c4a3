#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cache/cache_level.h"
#include "server/counters.h"
#include "server/programs/program_table.h"
#include "server/programs/stored_plan.h"

namespace kiln::server {

/// What equal plans have in common: the program, the shapes, and all that planning depends on.
std::string plan_form(const ProgramEntry& program, const program::GivenTypes& given,
                      const CompileSetting& setting);

/// Plans in the places that outlive the daemon, beside the kernels and within their bounds. May
/// wait for a disk or a network, as these do.
class PlanStore {
 public:
  /// The nearest first.
  PlanStore(std::vector<CacheLevel*> levels, Counters& counters)
      : levels_(std::move(levels)), counters_(counters) {}

  std::optional<CheckedPlan> find(const std::string& form, const program::Program& program,
                                  const CompileSetting& setting);
  void put(const std::string& form, const std::string& packed);

 private:
  const std::vector<CacheLevel*> levels_;
  Counters& counters_;
};

}  // namespace kiln::server
