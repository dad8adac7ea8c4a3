// Looks up the numbers of a sketch by name, and says whether some are of its space: records of
// `tune` outlive the program that wrote them. What candidates there are without a search, and how
// one is called.
#include "compiler/autoschedule/templates/sketch.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::autoschedule {

int64_t Values::get(std::string_view name, int64_t otherwise) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return values_[i];
  }
  return otherwise;
}

std::vector<int64_t> Sketch::preferred() const {
  std::vector<int64_t> values;
  for (const Parameter& parameter : parameters)
    values.push_back(parameter.preferred);
  return values;
}

void Sketch::write_preferred(StepWriter& steps) const {
  const std::vector<int64_t> values = preferred();
  write(steps, Values(parameters, values));
}

bool Sketch::has(std::span<const int64_t> values) const {
  if (values.size() != parameters.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::ranges::binary_search(parameters[i].values, values[i])) return false;
  }
  return true;
}

std::vector<Sketch> cheapest_first(std::vector<std::pair<double, Sketch>> sketches) {
  std::ranges::stable_sort(sketches, {}, [](const auto& pair) { return pair.first; });
  std::vector<Sketch> sorted;
  for (auto& [cycles, sketch] : sketches)
    sorted.push_back(std::move(sketch));
  return sorted;
}

Candidate preferred(std::span<const StageSketches> space) {
  Candidate candidate;
  for (const StageSketches& stage : space)
    candidate.stages.push_back({0, stage.sketches[0].preferred()});
  return candidate;
}

std::vector<Candidate> each_sketch(std::span<const StageSketches> space) {
  const Candidate first = preferred(space);
  std::vector<Candidate> candidates = {first};
  for (size_t s = 0; s < space.size(); ++s) {
    for (uint32_t i = 1; i < space[s].sketches.size(); ++i) {
      Candidate& other = candidates.emplace_back(first);
      other.stages[s] = {i, space[s].sketches[i].preferred()};
    }
  }
  return candidates;
}

std::string text_of(const Candidate& candidate, std::span<const StageSketches> space,
                    std::span<const std::string> names) {
  std::vector<std::string> stages;
  for (size_t s = 0; s < candidate.stages.size(); ++s) {
    const Candidate::Choice& choice = candidate.stages[s];
    const Sketch& sketch = space[s].sketches[choice.sketch];
    std::vector<std::string> values;
    for (size_t p = 0; p < choice.values.size(); ++p)
      values.push_back(fmt::format("{}={}", sketch.parameters[p].name, choice.values[p]));
    const StageId id = space[s].stage;
    stages.push_back(fmt::format("{}: {}({})", id < names.size() ? names[id] : "", sketch.name,
                                 fmt::join(values, ", ")));
  }
  return fmt::format("{}", fmt::join(stages, "; "));
}

}  // namespace kiln::autoschedule
