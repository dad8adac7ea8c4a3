// Kernel files as kernels with schedules. Steps are read one at a time with the table of axes so
// far, since a step names what the ones before it made.
//
//   split(C.i, factor=4)  then  vectorize(C.i.inner)
#include <algorithm>
#include <unordered_map>

#include "compiler/language/check/check.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/suggest.h"
#include "compiler/language/text/build_text.h"
#include "compiler/language/text/text.h"
#include "compiler/language/text/text_names.h"
#include "compiler/language/wire/decode.h"

namespace kiln::language {
namespace syntax {
namespace {

constexpr size_t kMostAxesShown = 4;

/// Turns names of stages and axes into their numbers, step by step.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Source& source, const Kernel& kernel)
      : source_(source), state_(kernel.definition, printable_names(kernel)) {
    enter_names();
    for (StageId id = 0; id < kernel.names.stages.size(); ++id) {
      tensors_.emplace(kernel.names.stages[id], TensorId{id, 0});
    }
    for (const auto& [tensor, name] : kernel.names.tensors) {
      tensors_.emplace(name, tensor);
    }
  }

  /// Whether later steps can still be understood: false when this one is sure to be refused.
  bool add(const StepCall& call, v1::Schedule& schedule) {
    v1::Step& step = *schedule.add_steps();
    step.set_name(std::string(call.name));
    step.mutable_line()->set_line(static_cast<uint32_t>(source_.line_of(call.place)));
    const auto kind = find_step(call.name);
    if (!kind) return false;
    const StepRow& row = row_of(*kind);
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      add_argument(call, row, i, step);
    }
    const bool names_stage = row.axes == 0;
    if (names_stage ? call.arguments.empty() : step.axes().empty()) return false;
    if (!names_stage) step.set_stage(state_.axis(step.axes(0)).stage);
    const bool any_number = row.axes == kAnyNumber || row.uses(step_fields::Layout);
    if (!any_number && step.axes_size() != row.axes) return false;
    return enter(*kind, step);
  }

 private:
  void add_argument(const StepCall& call, const StepRow& row, size_t position, v1::Step& step) {
    const StepCall::Argument& argument = call.arguments[position];
    if (argument.is_number) return add_number(call, row, argument, step);
    if (row.axes == 0 && position == 0) {
      const TensorId tensor = this->tensor(argument);
      step.set_stage(tensor.stage);
      if (row.uses(step_fields::Output)) step.set_output(tensor.output);
    } else if (row.uses(step_fields::At) && position == 1) {
      const AxisId axis = this->axis(argument);
      step.set_at_axis(axis);
      step.set_at_stage(state_.axes()[axis].stage);
    } else if (row.uses(step_fields::Tag) && position == place_of_tag(call, row)) {
      step.set_tag(std::string(argument.text));
    } else if (row.uses(step_fields::Tags) && position > place_of_axes(row)) {
      step.add_tags(std::string(argument.text));
    } else if (row.uses(step_fields::Readers) && position > place_of_axes(row)) {
      // Readers come first, and an axis has its stage in front, so a name is told by the tables.
      const bool is_axis = row.uses(step_fields::Layout) && !step.readers().empty() &&
                           axes_.contains(std::string(argument.text));
      if (is_axis) {
        step.add_axes(axis(argument));
      } else {
        step.add_readers(tensor(argument).stage);
      }
    } else if (row.axes == 0) {
      const int most = row.uses(step_fields::At | step_fields::Tag) ? 2 : 1;
      source_.refuse(argument.place, "{} takes no more than {} argument{}", row.spelling, most,
                     most == 1 ? "" : "s");
    } else {
      step.add_axes(axis(argument));
    }
  }

  /// Where the stage or the axes of a step end: the position of the last of them.
  static size_t place_of_axes(const StepRow& row) {
    return row.axes > 1 ? static_cast<size_t>(row.axes) - 1 : 0;
  }

  /// The tag comes after the stage or the axes; without anything else by name, it is the last name.
  static size_t place_of_tag(const StepCall& call, const StepRow& row) {
    if (row.axes == 0 || row.uses(step_fields::Tags | step_fields::Readers)) {
      return place_of_axes(row) + 1;
    }
    size_t last = 0;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (!call.arguments[i].is_number) last = i;
    }
    return last == 0 ? call.arguments.size() : last;
  }

  void add_number(const StepCall& call, const StepRow& row, const StepCall::Argument& argument,
                  v1::Step& step) {
    const bool is_value = argument.word.empty() && !row.value.empty() &&
                          step.factors_size() >= row.factors && !row.uses(step_fields::Parts);
    if (is_value || (!row.value.empty() && argument.word == row.value)) {
      step.set_value(argument.number);
    } else if (argument.word.empty() || argument.word == "factor") {
      step.add_factors(argument.number);
    } else if (argument.word == "parts") {
      if (argument.number < 1) source_.refuse(argument.place, "the parts must be at least 1");
      step.set_parts(argument.number);
    } else {
      source_.refuse(argument.place, "{} has no {}; known: {}", call.name, argument.word,
                     row.value.empty() ? "factor, parts" : row.value);
    }
  }

  TensorId tensor(const StepCall::Argument& argument) const {
    const auto found = tensors_.find(std::string(argument.text));
    if (found != tensors_.end()) return found->second;
    source_.refuse(argument.place, "unknown stage {}{}", argument.text.substr(0, 64),
                   near(argument.text, tensors_));
  }

  AxisId axis(const StepCall::Argument& argument) const {
    const auto found = axes_.find(std::string(argument.text));
    if (found != axes_.end()) return found->second;
    const std::string axes = axes_meant_by(argument.text);
    source_.refuse(argument.place, "unknown axis {}{}", argument.text.substr(0, 64),
                   axes.empty() ? near(argument.text, axes_) : fmt::format("; write {}", axes));
  }

  /// Of a stage without an axis, or an axis without its stage: "C.i or C.j".
  std::string axes_meant_by(std::string_view name) const {
    std::vector<std::string> meant;
    for (StageId id = 0; id < state_.stages().size(); ++id) {
      for (const AxisId leaf : state_.stage(id).loops.leaves) {
        const std::string& axis = state_.axes()[leaf].name;
        if (state_.stage(id).name != name && axis != name) continue;
        if (meant.size() == kMostAxesShown) return fmt::format("{}, ...", fmt::join(meant, ", "));
        meant.push_back(fmt::format("{}.{}", state_.stage(id).name, axis));
      }
    }
    return fmt::format("{}", fmt::join(meant, meant.size() == 2 ? " or " : ", "));
  }

  template <typename Map>
  static std::string near(std::string_view name, const Map& map) {
    std::vector<std::string_view> known;
    for (const auto& [candidate, id] : map) {
      known.push_back(candidate);
    }
    std::sort(known.begin(), known.end());
    const std::string_view best = nearest(name, known);
    return best.empty() ? "" : fmt::format("; did you mean {}", best);
  }

  /// The decoder says why a step is refused, with its line.
  bool enter(StepKind kind, const v1::Step& wire) {
    try {
      state_.apply(step_of(wire, kind));
    } catch (const Error&) {
      return false;
    }
    enter_names();
    return true;
  }

  void enter_names() {
    for (; entered_stages_ < state_.stages().size(); ++entered_stages_) {
      const StageRow& stage = state_.stages()[entered_stages_];
      const auto id = static_cast<StageId>(entered_stages_);
      check_limit("a stage name", "bytes", static_cast<int64_t>(stage.name.size()), 4'096);
      tensors_.emplace(stage.name, TensorId{id, 0});
      for (uint32_t output = 0; output < stage.tensors.size(); ++output) {
        tensors_.emplace(stage.tensors[output], TensorId{id, output});
      }
    }
    for (; entered_ < state_.axes().size(); ++entered_) {
      const AxisRow& row = state_.axes()[entered_];
      const auto id = static_cast<AxisId>(entered_);
      check_limit("an axis name", "bytes", static_cast<int64_t>(row.name.size()), 4'096);
      axes_.insert_or_assign(fmt::format("{}.{}", state_.stage(row.stage).name, row.name), id);
      if (row.kind == AxisKind::Time) axes_.insert_or_assign(row.name, id);
    }
  }

  const Source& source_;
  ScheduleState state_;
  size_t entered_ = 0;
  size_t entered_stages_ = 0;
  std::unordered_map<std::string, TensorId> tensors_;
  std::unordered_map<std::string, AxisId> axes_;
};

}  // namespace

namespace {

Schedule build_schedule(const Source& source, const ScheduleBlock& block, const Kernel& kernel,
                        const Limits& limits) {
  check_limit("the schedule", "steps", static_cast<int64_t>(block.steps.size()), limits.steps);
  v1::Schedule schedule;
  ScheduleBuilder builder(source, kernel);
  for (const StepCall& step : block.steps) {
    // Steps behind a wrong one name what it would have made; their errors would only hide the
    // first.
    if (!builder.add(step, schedule)) break;
  }
  try {
    return decode_schedule(schedule, kernel, limits);
  } catch (Error& error) {
    // The error names the line of its step.
    const int line = error.location().line;
    const auto step = std::ranges::find_if(
        block.steps, [&](const StepCall& call) { return source.line_of(call.place) == line; });
    if (step != block.steps.end()) source.locate(error, step->place);
    throw;
  }
}

}  // namespace

TargetSchedules build_schedules(const Source& source, const std::vector<ScheduleBlock>& blocks,
                                const Kernel& kernel, const Limits& limits) {
  TargetSchedules schedules;
  for (const ScheduleBlock& block : blocks) {
    const bool known = block.target == "cpu" || block.target == "cuda";
    if (!known) {
      source.refuse(block.place, "unknown target {}; known: cpu, cuda", block.target.substr(0, 64));
    }
    for (const auto& [target, schedule] : schedules) {
      if (target == block.target) {
        source.refuse(block.place, "the kernel has two schedules for {}", target);
      }
    }
    schedules.emplace_back(block.target, build_schedule(source, block, kernel, limits));
  }
  return schedules;
}

}  // namespace syntax

namespace {

/// What a file has, under the file's name.
struct ParsedFile {
  ParsedFile(std::string_view text, std::string_view file_name, const Limits& limits)
      : source(text, file_name) {
    check_limit("the file", "bytes", static_cast<int64_t>(text.size()), limits.text_bytes);
    tree = syntax::parse(source, limits.depth, limits.expressions);
    if (!tree.schedules.empty()) {
      source.refuse(tree.schedules[0].place, "expected a kernel, but found schedule");
    }
    for (const syntax::KernelText& kernel : tree.kernels)
      add(kernel, limits);
  }

  syntax::Source source;
  syntax::Tree tree;
  std::vector<TextKernel> kernels;

 private:
  void add(const syntax::KernelText& text, const Limits& limits) {
    for (const TextKernel& other : kernels) {
      if (other.kernel.names.kernel != text.name) continue;
      source.refuse(text.place, "the file has two kernels {}", text.name);
    }
    TextKernel kernel = {syntax::build_kernel(source, tree, text, limits), {}};
    kernel.schedules = syntax::build_schedules(source, text.schedules, kernel.kernel, limits);
    kernels.push_back(std::move(kernel));
  }
};

}  // namespace

std::vector<TextKernel> parse_text(std::string_view text, std::string_view file_name,
                                   const Limits& limits) {
  return ParsedFile(text, file_name, limits).kernels;
}

std::vector<v1::Program> parse_programs(std::string_view text, std::string_view file_name,
                                        const Limits& limits) {
  const ParsedFile file(text, file_name, limits);
  return syntax::build_programs(file.source, file.tree, file.kernels);
}

}  // namespace kiln::language
