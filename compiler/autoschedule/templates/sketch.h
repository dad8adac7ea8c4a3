#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// A number that a sketch leaves open: what it may be, ascending, and what is
/// taken unmeasured.
struct Parameter {
  std::string name;
  std::vector<int64_t> values;
  int64_t preferred = 0;
};

/// The numbers of one candidate, by the names of the parameters they are for.
class Values {
 public:
  Values(std::span<const Parameter> parameters, std::span<const int64_t> values)
      : parameters_(parameters), values_(values) {}
  /// Of a parameter that the sketch does not have: `otherwise`.
  int64_t get(std::string_view name, int64_t otherwise) const;

 private:
  std::span<const Parameter> parameters_;
  std::span<const int64_t> values_;
};

/// An automatic schedule of one stage with numbers left open. All sketches of a stage, with any
/// values, compute the same bits: none changes the order in which a reduction combines.
struct Sketch {
  std::string name;
  std::vector<Parameter> parameters;
  std::function<void(StepWriter&, const Values&)> write;

  std::vector<int64_t> preferred() const;
  /// The steps with these values.
  void write_preferred(StepWriter& steps) const;
  /// Whether each value is one that its parameter may have.
  bool has(std::span<const int64_t> values) const;
};

/// Each with its cycles: the cheapest first, and of equal ones that which was first.
std::vector<Sketch> cheapest_first(std::vector<std::pair<double, Sketch>> sketches);

/// The sketches of a root stage, the one that is taken unmeasured first.
struct StageSketches {
  StageId stage = 0;
  std::vector<Sketch> sketches;
};

/// Which sketch, with which values, for each stage of a SketchSpace.
struct Candidate {
  struct Choice {
    uint32_t sketch = 0;
    std::vector<int64_t> values;
    bool operator==(const Choice&) const = default;
  };
  std::vector<Choice> stages;
  bool operator==(const Candidate&) const = default;
};

/// What is taken unmeasured: the first sketch of each stage with its preferred values.
Candidate preferred(std::span<const StageSketches> space);

/// That one, then each other sketch of a stage with the values it prefers.
std::vector<Candidate> each_sketch(std::span<const StageSketches> space);

/// "C: outer products(rows=8, lanes=32); D: .." of stages with these names.
std::string text_of(const Candidate& candidate, std::span<const StageSketches> space,
                    std::span<const std::string> names);

}  // namespace kiln::autoschedule
