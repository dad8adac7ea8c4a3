#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/language/tables/step.h"
#include "compiler/schedule/graph/stage_graph.h"
#include "compiler/target.h"

namespace kiln {

/// All automatic schedules of a kernel: sketches for each root stage (and what is attached to it)
/// that has no step. Stages with steps are left exactly as they are. Empty where `options` turn
/// automatic schedules off.
///
/// `kernel` must outlive it.
class SketchSpace {
 public:
  /// `tiles`: blocks of code made of tiles, which are other sketches of the last stage.
  SketchSpace(const language::Kernel& kernel, const language::Schedule& given, const Target& target,
              const CompileOptions& options, std::span<const TileBlock> tiles = {});
  ~SketchSpace();
  SketchSpace(const SketchSpace&) = delete;
  SketchSpace& operator=(const SketchSpace&) = delete;

  const std::vector<autoschedule::StageSketches>& stages() const { return stages_; }
  /// The names of all stages, also of those that steps have made, by their ids.
  std::vector<std::string> stage_names() const;
  /// What is taken unmeasured: the first sketch of each stage with its preferred values.
  autoschedule::Candidate preferred() const { return autoschedule::preferred(stages_); }
  /// The given steps and those of a candidate. Axis ids of added steps follow those given. Throws
  /// InvalidArgument SKETCH for a candidate of another space.
  language::Schedule schedule(const autoschedule::Candidate& candidate) const;

 private:
  const autoschedule::OpenSchedule given_;
  std::unique_ptr<schedule::StageGraph> graph_;
  // What sketches for threads are chosen by: all that is inline is written out.
  std::unique_ptr<schedule::StageGraph> seen_;
  std::vector<autoschedule::StageSketches> stages_;
};

}  // namespace kiln
