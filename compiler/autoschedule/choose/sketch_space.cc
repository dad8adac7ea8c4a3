// Each kind of target has a start of its own, of steps that change which stages there are, and
// sketches for the stages that come of it.
#include "compiler/autoschedule/choose/sketch_space.h"

#include <fmt/format.h>

#include "compiler/autoschedule/choose/core_space.h"
#include "compiler/autoschedule/choose/thread_space.h"
#include "compiler/autoschedule/templates/attention_threads.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln {
namespace {

/// Whether all stages may be one launch that no step describes.
bool may_be_joined(const language::Schedule& given, const Target& target,
                   const CompileOptions& options) {
  return options.automatic && target.traits().has_threads && given.steps.empty() && !options.strict;
}

/// The schedule that sketches are added to.
autoschedule::OpenSchedule start_of(const language::Kernel& kernel, const language::Schedule& given,
                                    const Target& target, const CompileOptions& options) {
  if (may_be_joined(given, target, options) &&
      autoschedule::is_unstored_attention(kernel, target.arch))
    return {given, {}};
  if (options.automatic && target.traits().has_threads)
    return autoschedule::start_for_threads(kernel, given, target, options);
  if (options.automatic && target.traits().has_vectors)
    return autoschedule::start_for_cores(kernel, given, target, options);
  return {given, {}};
}

std::string name_of(const TileBlock& block) {
  std::string name = fmt::format("tiles of {} x {}", *block.rows, *block.columns);
  if (block.steps) name += fmt::format(", {} steps at once", *block.steps);
  if (block.warps.value_or(0) > 0) name += fmt::format(", {} warps", *block.warps);
  return name;
}

/// Code made of tiles, beside the CUDA C that is taken unmeasured, which drivers run that are too
/// old.
autoschedule::Sketch tile_sketch(const autoschedule::StageSketches& stage, const TileBlock& block) {
  return {.name = name_of(block),
          .parameters = {},
          .write = [id = stage.stage, taken = stage.sketches[0], block](
                       autoschedule::StepWriter& steps, const autoschedule::Values&) {
            taken.write_preferred(steps);
            steps.tile_block(id, block);
          }};
}

}  // namespace

SketchSpace::SketchSpace(const language::Kernel& kernel, const language::Schedule& given,
                         const Target& target, const CompileOptions& options,
                         std::span<const TileBlock> tiles)
    : given_(start_of(kernel, given, target, options)) {
  if (!options.automatic || !target.traits().is_compiled) return;
  graph_ = std::make_unique<schedule::StageGraph>(autoschedule::graph_of(kernel, given_));
  const std::vector<bool> touched = autoschedule::touched_roots(*graph_);
  const bool has_threads = target.traits().has_threads;
  if (has_threads) seen_ = std::make_unique<schedule::StageGraph>(schedule::written_out(*graph_));
  const autoschedule::Chooser chooser{has_threads ? *seen_ : *graph_, options,
                                      autoschedule::machine_of(target.arch), target.arch};
  const auto one_by_one = [&] {
    return has_threads ? autoschedule::thread_space(chooser, touched)
                       : autoschedule::core_space(chooser, touched);
  };
  stages_ = may_be_joined(given, target, options)
                ? autoschedule::threaded_attention(kernel, *seen_, target.arch, one_by_one)
                : one_by_one();
  if (stages_.empty()) return;
  autoschedule::StageSketches& last = stages_.back();
  for (const TileBlock& block : tiles)
    last.sketches.push_back(tile_sketch(last, block));
}

SketchSpace::~SketchSpace() = default;

std::vector<std::string> SketchSpace::stage_names() const {
  std::vector<std::string> names;
  if (!graph_) return names;
  for (const schedule::Stage& stage : graph_->stages)
    names.push_back(stage.name);
  return names;
}

language::Schedule SketchSpace::schedule(const autoschedule::Candidate& candidate) const {
  if (candidate.stages.size() != stages_.size()) {
    fail(ErrorKind::InvalidArgument, "SKETCH", "the candidate has {} stages, but must have {}",
         candidate.stages.size(), stages_.size());
  }
  if (stages_.empty()) return given_.schedule;
  autoschedule::StepWriter steps(given_.schedule, *graph_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    const autoschedule::Candidate::Choice& choice = candidate.stages[i];
    const std::vector<autoschedule::Sketch>& sketches = stages_[i].sketches;
    if (choice.sketch >= sketches.size() || !sketches[choice.sketch].has(choice.values)) {
      fail(ErrorKind::InvalidArgument, "SKETCH", "the candidate's stage {} is of another kernel",
           i);
    }
    const autoschedule::Sketch& sketch = sketches[choice.sketch];
    sketch.write(steps, autoschedule::Values(sketch.parameters, choice.values));
  }
  return std::move(steps).schedule();
}

}  // namespace kiln
