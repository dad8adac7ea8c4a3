// Steps from the wire: known ones, within the limits. What they may say and do is the schedule
// state's to decide.
//   {name: "split", stage: 1, axes: {0}, factors: {4}}  ->  Step{Split, ..}, taken by the state
#include <algorithm>

#include "compiler/language/check/check.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/suggest.h"
#include "compiler/language/wire/decode.h"

namespace kiln::language {
namespace {

constexpr int kMostAxesOfStep = 256;

class ScheduleDecoder {
 public:
  ScheduleDecoder(const v1::Schedule& wire, const Kernel& kernel, const Limits& limits)
      : wire_(wire), kernel_(kernel), limits_(limits), state_(kernel.definition, kernel.names) {}

  Schedule decode() {
    check_limit("the schedule", "steps", wire_.steps_size(), limits_.steps);
    for (int i = 0; i < wire_.steps_size(); ++i) {
      decode_noted(i);
    }
    return std::move(schedule_);
  }

 private:
  void decode_noted(int position) {
    const v1::Step& wire = wire_.steps(position);
    text_ = wire.name().substr(0, 64);
    try {
      const Step step = decode(wire);
      state_.apply(step);
      check_size();
      schedule_.steps.push_back(step);
    } catch (Error& error) {
      error.add_note(fmt::format("at step {}: {}", position + 1, text_));
      error.set_location(location(wire.line().file(), wire.line().line()));
      throw;
    }
  }

  /// Names are made of names, and axes of axes.
  void check_size() {
    for (; axes_checked_ < state_.axes().size(); ++axes_checked_) {
      check_limit("an axis name", "bytes",
                  static_cast<int64_t>(state_.axes()[axes_checked_].name.size()),
                  int64_t{4} * limits_.name_bytes);
    }
    check_limit("the schedule", "axes", static_cast<int64_t>(state_.axes().size()),
                int64_t{2} * limits_.axes);
    check_limit("the schedule", "stages", static_cast<int64_t>(state_.stages().size()),
                int64_t{2} * limits_.stages);
    check_limit("a stage name", "bytes", static_cast<int64_t>(state_.stages().back().name.size()),
                int64_t{4} * limits_.name_bytes);
  }

  SourceLocation location(uint32_t file, uint32_t line) const {
    if (line == 0 || line > 0x7FFFFFFFU) return {};
    const auto& files = kernel_.names.files;
    return {file < files.size() ? files[file] : "", static_cast<int>(line)};
  }

  Step decode(const v1::Step& wire) {
    const auto kind = find_step(wire.name());
    if (!kind) {
      std::vector<std::string_view> known;
      for (const StepRow& row : step_table()) {
        known.push_back(row.spelling);
      }
      fail(ErrorKind::InvalidArgument, "UNKNOWN_STEP", "unknown step {}{}", text_,
           suggestion(text_, known));
    }
    const StepRow& row = row_of(*kind);
    check_limit(row.spelling, "axes", wire.axes_size(), kMostAxesOfStep);
    check_limit(row.spelling, "readers", wire.readers_size(), kMostAxesOfStep);
    check_limit(row.spelling, "thread axes", wire.tags_size(), kMostAxesOfStep);
    Step step = step_of(wire, *kind);
    state_.check_form(step);
    text_ = state_.text_of(step);
    if (row.has(step_effects::OfExpression)) {
      check_limit("the name of a reduction", "bytes", static_cast<int64_t>(step.tag.size()),
                  limits_.name_bytes);
    }
    return step;
  }

  const v1::Schedule& wire_;
  const Kernel& kernel_;
  const Limits& limits_;
  ScheduleState state_;
  Schedule schedule_;
  std::string text_;  // of the step at hand
  size_t axes_checked_ = 0;
};

}  // namespace

Step step_of(const v1::Step& wire, StepKind kind) {
  return {.kind = kind,
          .stage = wire.stage(),
          .axes = {wire.axes().begin(), wire.axes().end()},
          .factors = {wire.factors().begin(), wire.factors().end()},
          .parts = wire.parts() == 0 ? std::nullopt : std::optional(wire.parts()),
          .tag = wire.tag(),
          .at_stage = wire.at_stage(),
          .at_axis = wire.at_axis(),
          .output = wire.output(),
          .readers = {wire.readers().begin(), wire.readers().end()},
          .tags = {wire.tags().begin(), wire.tags().end()},
          .value = wire.value(),
          .file = wire.line().file(),
          .line = std::min(wire.line().line(), 0x7FFFFFFFU)};
}

Schedule decode_schedule(const v1::Schedule& schedule, const Kernel& kernel, const Limits& limits) {
  return ScheduleDecoder(schedule, kernel, limits).decode();
}

}  // namespace kiln::language
