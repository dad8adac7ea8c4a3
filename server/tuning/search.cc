// Proposes candidates: the defaults of all sketches, some at random, then neighbours of the four
// best (an evolution strategy, (4 + 1) with restarts). What was tried is not proposed again; a
// space that is nearly done is walked in order.
//
//   0:8,32,1  ->  0:12,32,1 (one value moved on)  or  1:16,1 (another sketch)
#include "server/tuning/search.h"

#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

namespace kiln::server {

namespace {

// Enough that one lucky measurement is not the only parent.
constexpr size_t kParents = 4;
// Before neighbours: which valley the search descends into depends on these.
constexpr size_t kRandomFirst = 12;
constexpr int kDraws = 32;          // before the space is walked in order
constexpr size_t kRandomEvery = 5;  // one of so many later candidates

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// The next in the order of the space; false after the last.
bool step_on(Candidate& candidate, std::span<const StageSketches> space) {
  for (size_t s = candidate.stages.size(); s-- > 0;) {
    Candidate::Choice& choice = candidate.stages[s];
    const auto& sketches = space[s].sketches;
    for (size_t p = choice.values.size(); p-- > 0;) {
      const std::vector<int64_t>& values = sketches[choice.sketch].parameters[p].values;
      const auto at = std::upper_bound(values.begin(), values.end(), choice.values[p]);
      if (at != values.end()) {
        choice.values[p] = *at;
        return true;
      }
      choice.values[p] = values.front();
    }
    choice.sketch = choice.sketch + 1 < sketches.size() ? choice.sketch + 1 : 0;
    choice.values.clear();
    for (const autoschedule::Parameter& parameter : sketches[choice.sketch].parameters)
      choice.values.push_back(parameter.values.front());
    if (choice.sketch != 0) return true;
  }
  return false;
}

}  // namespace

std::string key_of(const Candidate& candidate) {
  std::vector<std::string> stages;
  for (const Candidate::Choice& choice : candidate.stages)
    stages.push_back(fmt::format("{}:{}", choice.sketch, fmt::join(choice.values, ",")));
  return fmt::format("{}", fmt::join(stages, ";"));
}

std::optional<Candidate> candidate_of(const std::string& key,
                                      std::span<const StageSketches> space) {
  Candidate candidate;
  const std::vector<std::string_view> stages = split(key, ';');
  if (stages.size() != space.size()) return std::nullopt;
  for (size_t s = 0; s < stages.size(); ++s) {
    const size_t colon = stages[s].find(':');
    Candidate::Choice choice;
    if (colon == std::string_view::npos || !read(stages[s].substr(0, colon), choice.sketch)) {
      return std::nullopt;
    }
    const std::string_view values = stages[s].substr(colon + 1);
    for (const std::string_view value :
         values.empty() ? std::vector<std::string_view>{} : split(values, ',')) {
      if (!read(value, choice.values.emplace_back())) return std::nullopt;
    }
    const auto& sketches = space[s].sketches;
    if (choice.sketch >= sketches.size() || !sketches[choice.sketch].has(choice.values)) {
      return std::nullopt;
    }
    candidate.stages.push_back(std::move(choice));
  }
  return candidate;
}

Search::Search(std::vector<StageSketches> space, uint64_t seed)
    : space_(std::move(space)), random_(seed) {
  plan_first();
}

void Search::plan_first() {
  planned_ = autoschedule::each_sketch(space_);
  for (size_t i = 0; i < kRandomFirst; ++i)
    planned_.push_back(random());
  std::reverse(planned_.begin(), planned_.end());
}

double Search::candidates() const {
  double all = 1;
  for (const StageSketches& stage : space_) {
    double of_stage = 0;
    for (const autoschedule::Sketch& sketch : stage.sketches) {
      double of_sketch = 1;
      for (const autoschedule::Parameter& parameter : sketch.parameters)
        of_sketch *= static_cast<double>(parameter.values.size());
      of_stage += of_sketch;
    }
    all *= of_stage;
  }
  return all;
}

std::optional<Candidate> Search::next() {
  while (!planned_.empty()) {
    Candidate candidate = std::move(planned_.back());
    planned_.pop_back();
    if (!was_tried(candidate)) return candidate;
  }
  for (int draw = 0; draw < kDraws; ++draw) {
    const bool anew = fastest_.empty() || below(kRandomEvery) == 0;
    Candidate candidate =
        anew ? random()
             : neighbour(
                   std::next(fastest_.begin(), static_cast<int>(below(fastest_.size())))->second);
    if (!was_tried(candidate)) return candidate;
  }
  return first_untried();
}

void Search::tried(const Candidate& candidate, std::optional<double> seconds) {
  if (!tried_.insert(key_of(candidate)).second || !seconds) return;
  fastest_.emplace(*seconds, candidate);
  if (fastest_.size() > kParents) fastest_.erase(std::prev(fastest_.end()));
}

Candidate Search::random() {
  Candidate candidate;
  for (const StageSketches& stage : space_) {
    const auto sketch = static_cast<uint32_t>(below(stage.sketches.size()));
    Candidate::Choice choice{sketch, {}};
    for (const autoschedule::Parameter& parameter : stage.sketches[sketch].parameters)
      choice.values.push_back(parameter.values[below(parameter.values.size())]);
    candidate.stages.push_back(std::move(choice));
  }
  return candidate;
}

Candidate Search::neighbour(Candidate candidate) {
  const size_t s = below(space_.size());
  Candidate::Choice& choice = candidate.stages[s];
  const auto& sketches = space_[s].sketches;
  // One more than there are parameters: the sketch itself.
  const size_t moved = below(choice.values.size() + 1);
  if (moved == choice.values.size()) {
    choice.sketch = static_cast<uint32_t>(below(sketches.size()));
    // Values of one sketch mean nothing to another.
    choice.values = sketches[choice.sketch].preferred();
    return candidate;
  }
  const std::vector<int64_t>& values = sketches[choice.sketch].parameters[moved].values;
  const auto at = static_cast<size_t>(
      std::lower_bound(values.begin(), values.end(), choice.values[moved]) - values.begin());
  const bool up = at == 0 || (at + 1 < values.size() && below(2) == 0);
  if (values.size() > 1) choice.values[moved] = values[up ? at + 1 : at - 1];
  return candidate;
}

std::optional<Candidate> Search::first_untried() const {
  Candidate candidate;
  for (const StageSketches& stage : space_) {
    Candidate::Choice choice;
    for (const autoschedule::Parameter& parameter : stage.sketches[0].parameters)
      choice.values.push_back(parameter.values.front());
    candidate.stages.push_back(std::move(choice));
  }
  do {
    if (!was_tried(candidate)) return candidate;
  } while (step_on(candidate, space_));
  return std::nullopt;
}

}  // namespace kiln::server
