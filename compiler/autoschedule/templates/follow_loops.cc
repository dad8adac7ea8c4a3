// Takes the steps that one stage's data axes have gone through for the axes of another one:
//
//   split(C.i, 8), reorder(C.i.outer, C.k, C.i.inner), unroll(C.i.inner)
//     ->  split(O.i, 8), reorder(O.i.outer, O.i.inner), unroll(O.i.inner)
#include <algorithm>
#include <unordered_map>

#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {
namespace {

using language::Step;
using language::StepKind;

/// The steps of one stage, and which of its axes are parts of its data axes.
class Leader {
 public:
  Leader(const language::ScheduleState& state, uint32_t stage, std::vector<uint32_t> data)
      : state_(state), stage_(stage), parts_(std::move(data)) {
    for (size_t i = 0; i < state.steps().size(); ++i) {
      const Step& step = state.steps()[i];
      if (step.stage != stage) continue;
      positions_.push_back(static_cast<int>(i));
      if (step.kind != StepKind::Split || !is_part(step.axes[0])) continue;
      const std::vector<uint32_t> made = state.defined_by(static_cast<int>(i));
      parts_.insert(parts_.end(), made.begin(), made.end());
    }
  }

  /// Whether all of it can be said of other axes: loops over tiles first, then those it reduces
  /// along, and what stands in these is written out.
  bool has_tiles() const {
    const bool are_loops = std::ranges::all_of(positions_, [&](int position) {
      const StepKind kind = state_.steps()[static_cast<size_t>(position)].kind;
      return kind == StepKind::Split || kind == StepKind::Reorder || kind == StepKind::Parallel ||
             kind == StepKind::Vectorize || kind == StepKind::Unroll;
    });
    if (!are_loops) return false;
    bool reduces = false;
    bool has_inner = false;
    for (const uint32_t leaf : state_.stage(stage_).loops.leaves) {
      if (!is_part(leaf)) {
        reduces = true;
        continue;
      }
      const Step* how = state_.annotation_of(leaf);
      const bool is_written_out =
          how != nullptr && (how->kind == StepKind::Vectorize || how->kind == StepKind::Unroll);
      if (is_written_out != reduces) return false;
      has_inner = has_inner || reduces;
    }
    return has_inner;
  }

  const std::vector<int>& positions() const { return positions_; }

 private:
  bool is_part(uint32_t axis) const { return std::ranges::find(parts_, axis) != parts_.end(); }

  const language::ScheduleState& state_;
  const uint32_t stage_;
  std::vector<uint32_t> parts_;
  std::vector<int> positions_;
};

}  // namespace

bool StepWriter::follow(StageId stage, const std::vector<AxisId>& axes, StageId leader,
                        const std::vector<AxisId>& leader_axes) {
  std::unordered_map<uint32_t, uint32_t> own;  // axes for those of the leader
  std::vector<uint32_t> data;
  for (size_t i = 0; i < axes.size(); ++i) {
    data.push_back(id_of_axis(leader_axes[i]));
    own[data.back()] = id_of_axis(axes[i]);
  }
  const Leader led(state_, id_of_stage(leader), data);
  if (!led.has_tiles()) return false;
  for (const int position : led.positions()) {
    Step step = state_.steps()[static_cast<size_t>(position)];
    step.stage = id_of_stage(stage);
    std::erase_if(step.axes, [&](uint32_t axis) { return !own.contains(axis); });
    for (uint32_t& axis : step.axes)
      axis = own[axis];
    if (step.axes.empty()) continue;
    const auto before = static_cast<uint32_t>(state_.axes().size());
    const std::vector<uint32_t> made = state_.defined_by(position);
    add(std::move(step));
    for (uint32_t i = 0; i < made.size(); ++i)
      own[made[i]] = before + i;
  }
  return true;
}

}  // namespace kiln::autoschedule
