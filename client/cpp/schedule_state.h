#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <kiln/schedule.h>

namespace kiln {
inline namespace client {
namespace detail {

/// A step as it was asked for. `defined` are the axes it made, in the order of the step table.
struct StepRecord {
  std::string name;
  std::shared_ptr<const StageNode> stage;
  std::vector<Axis> axes = {};
  std::vector<std::int64_t> factors = {};
  std::optional<std::int64_t> parts = {};
  std::string tag = {};
  std::shared_ptr<const StageNode> at_stage = {};
  std::optional<Axis> at_axis = {};
  std::uint32_t output = 0;
  std::vector<std::shared_ptr<const StageNode>> readers = {};
  std::vector<std::string> tags = {};
  std::int64_t value = 0;
  std::string file = {};
  std::uint32_t line = 0;
  std::vector<Axis> defined = {};
  std::shared_ptr<const StageNode> made = {};  // the stage it made
};

struct ScheduleState {
  std::vector<Tensor> outputs;
  std::unordered_set<const StageNode*> stages;  // all that the outputs need
  std::vector<StepRecord> steps;
  std::map<const AxisNode*, const StageNode*> owners;  // of axes that steps made
  // By which step, as text. Two stages may reduce over one axis, and each has its own loop of it.
  std::map<std::pair<const StageNode*, const AxisNode*>, std::string> consumed;
  // The reduction axes of stages whose work a step has given to another one.
  std::map<const StageNode*, std::vector<Axis>> reduced;
};

/// Records a step that has been checked, and makes its axes.
std::vector<Axis> record_step(ScheduleState& schedule, StepRecord step);

/// Records a step that makes a stage. Everything so far is checked as the service checks it.
std::shared_ptr<const StageNode> record_new_stage(ScheduleState& schedule, StepRecord step);

/// Every stage that these tensors need, themselves included.
std::unordered_set<const StageNode*> stages_of(const std::vector<Tensor>& tensors);

}  // namespace detail
}  // namespace client
}  // namespace kiln
