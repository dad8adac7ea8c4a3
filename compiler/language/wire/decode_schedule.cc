#include <algorithm>
#include <limits>
#include <map>

#include <fmt/ranges.h>

#include "compiler/language/check/check.h"
#include "compiler/language/check/check_cache_read.h"
#include "compiler/language/check/check_hints.h"
#include "compiler/language/check/check_reduction_stage.h"
#include "compiler/language/state/axis_table.h"
#include "compiler/language/suggest.h"
#include "compiler/language/wire/decode.h"

namespace kiln::language {
namespace {

constexpr int kMostAxesOfStep = 256;

/// "split" -> "split", "fuse" -> "fused": what happened to an axis.
std::string_view participle(StepKind kind) {
  switch (kind) {
    case StepKind::Split: return "split";
    case StepKind::Fuse: return "fused";
    case StepKind::Tile: return "tiled";
    case StepKind::Bind: return "bound";
    case StepKind::Parallel: return "made parallel";
    case StepKind::Vectorize: return "vectorized";
    case StepKind::Unroll: return "unrolled";
    case StepKind::Tensorize: return "tensorized";
    case StepKind::Pragma: return "given a pragma";
    case StepKind::Prefetch: return "given a prefetch";
    case StepKind::SoftwarePipeline: return "pipelined";
    default: return "used";
  }
}

bool annotates(StepKind kind) {
  return kind == StepKind::Bind || kind == StepKind::Parallel || kind == StepKind::Vectorize ||
         kind == StepKind::Unroll || kind == StepKind::Tensorize;
}

class ScheduleDecoder {
 public:
  ScheduleDecoder(const v1::Schedule& wire, const Kernel& kernel, const Limits& limits)
      : wire_(wire),
        kernel_(kernel),
        definition_(kernel.definition),
        limits_(limits),
        table_(axis_table(kernel.definition, kernel.names)),
        owners_(owners_of_axes(kernel.definition)) {}

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
      Step step = decode(wire);
      check(step);
      apply(table_, step, position);
      for (size_t i = axes_checked_; i < table_.rows.size(); ++i) {
        check_limit("an axis name", "bytes", static_cast<int64_t>(table_.rows[i].name.size()),
                    int64_t{4} * limits_.name_bytes);
      }
      axes_checked_ = table_.rows.size();
      check_limit("the schedule", "axes", static_cast<int64_t>(table_.rows.size()),
                  int64_t{2} * limits_.axes);
      check_limit("the schedule", "stages", static_cast<int64_t>(table_.stages.size()),
                  int64_t{2} * limits_.stages);
      check_limit("a stage name", "bytes", static_cast<int64_t>(table_.stages.back().name.size()),
                  int64_t{4} * limits_.name_bytes);
      schedule_.steps.push_back(std::move(step));
    } catch (Error& error) {
      error.add_note(fmt::format("at step {}: {}", position + 1, text_));
      error.set_location(location(wire.line().file(), wire.line().line()));
      throw;
    }
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
      refuse("UNKNOWN_STEP", "unknown step {}{}", text_, suggestion(text_, known));
    }
    const StepRow& row = row_of(*kind);
    check_stage_id(row, wire.stage());
    for (const uint32_t reader : wire.readers())
      check_stage_id(row, reader);
    for (const uint32_t axis : wire.axes()) {
      check_axis_id(row, axis);
    }
    if (row.uses(step_fields::At)) check_consumer_ids(row, wire);

    Step step = {.kind = *kind,
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
    check_limit(row.spelling, "axes", wire.axes_size(), kMostAxesOfStep);
    check_limit(row.spelling, "readers", wire.readers_size(), kMostAxesOfStep);
    check_limit(row.spelling, "thread axes", wire.tags_size(), kMostAxesOfStep);
    check_fields(row, step);
    text_ = text_of(step, table_);
    return step;
  }

  void check_axis_id(const StepRow& row, uint32_t axis) {
    if (axis < table_.rows.size()) return;
    refuse("MALFORMED", "{} refers to axis {}, but there are {} at this step", row.spelling, axis,
           table_.rows.size());
  }

  void check_stage_id(const StepRow& row, uint32_t id) {
    if (id < table_.stages.size()) return;
    refuse("MALFORMED", "{} refers to stage {}, but there are {}", row.spelling, id,
           table_.stages.size());
  }

  void check_consumer_ids(const StepRow& row, const v1::Step& wire) {
    check_stage_id(row, wire.at_stage());
    check_axis_id(row, wire.at_axis());
  }

  void check_fields(const StepRow& row, const Step& step) {
    const auto count = static_cast<int>(step.axes.size());
    const int fewest = step.kind == StepKind::Fuse ? 2 : 1;
    if (row.uses(step_fields::Layout)) {
      // Any axes, or none.
    } else if (row.axes == kAnyNumber ? count < fewest : count != row.axes) {
      const int wanted = row.axes == kAnyNumber ? fewest : row.axes;
      refuse("STEP_FIELDS", "{} takes {} {}{}, but got {}", row.spelling, wanted,
             row.axes == kAnyNumber ? "or more " : "", wanted == 1 ? "axis" : "axes", count);
    }
    const auto factors = static_cast<int>(step.factors.size());
    if (row.uses(step_fields::Parts)) {
      if (factors > 1 || (factors == 1) == step.parts.has_value()) {
        refuse("STEP_FIELDS", "{} takes either a factor or parts, but got {}", row.spelling,
               factors == 0   ? "neither"
               : factors == 1 ? "both"
                              : fmt::format("{} factors", factors));
      }
    } else if (factors != row.factors) {
      refuse("STEP_FIELDS", "{} takes {} factor{}, but got {}", row.spelling, row.factors,
             row.factors == 1 ? "" : "s", factors);
    }
    if (!row.uses(step_fields::Parts) && step.parts) {
      refuse("STEP_FIELDS", "{} takes no parts", row.spelling);
    }
    if (!row.uses(step_fields::Tag) && !step.tag.empty()) {
      refuse("STEP_FIELDS", "{} takes no thread axis", row.spelling);
    }
    if (!row.uses(step_fields::Tags) && !step.tags.empty()) {
      refuse("STEP_FIELDS", "{} takes no list of thread axes", row.spelling);
    }
    if (!row.uses(step_fields::Readers) && !step.readers.empty()) {
      refuse("STEP_FIELDS", "{} takes no readers", row.spelling);
    }
    if (row.uses(step_fields::Output)) {
      const auto outputs = table_.stages[step.stage].tensors.size();
      if (step.output >= outputs) {
        refuse("MALFORMED", "{} refers to output {} of {}, which has {}", row.spelling, step.output,
               stage(step.stage), outputs);
      }
    } else if (step.output != 0) {
      refuse("STEP_FIELDS", "{} takes no output", row.spelling);
    }
    if (row.value.empty() && step.value != 0) {
      refuse("STEP_FIELDS", "{} takes no further number", row.spelling);
    }
  }

  void check(const Step& step) {
    const bool reads = step.kind == StepKind::CacheRead || step.kind == StepKind::CachePadded ||
                       step.kind == StepKind::Prefetch;
    if (is_placeholder(step.stage) && !reads) {
      refuse("STEP_STAGE", "{} is a placeholder; steps apply to what is computed",
             stage(step.stage));
    }
    check_numbers(step);
    for (size_t i = 0; i < step.axes.size(); ++i) {
      check_axis(step, step.axes[i]);
      if (std::find(step.axes.begin(), step.axes.begin() + static_cast<ptrdiff_t>(i),
                    step.axes[i]) != step.axes.begin() + static_cast<ptrdiff_t>(i)) {
        refuse("AXIS_TWICE", "{} names axis {} twice", row_of(step.kind).spelling,
               axis(step.axes[i]));
      }
    }
    if (step.kind == StepKind::Bind) check_tag(step);
    if (step.kind == StepKind::CacheRead || step.kind == StepKind::CachePadded)
      check_cache_read(step, table_);
    if (step.kind == StepKind::CacheWrite) check_cache_write(step);
    if (step.kind == StepKind::Rfactor) check_rfactor(step);
    if (step.kind == StepKind::ReductionStage) {
      check_limit("the name of a reduction", "bytes", static_cast<int64_t>(step.tag.size()),
                  limits_.name_bytes);
      refuse_settled(step, check_reduction_stage(step, table_));
    }
    if (step.kind == StepKind::SetScope) check_set_scope(step);
    if (annotates(step.kind)) check_annotation(step);
    if (step.kind == StepKind::Reorder || step.kind == StepKind::Fuse ||
        step.kind == StepKind::Tile) {
      refuse_time(step);
    }
    if (consumes_axes(step.kind)) check_consumed(step);
    if (step.kind == StepKind::ComputeAt) check_compute_at(step);
    if (step.kind == StepKind::ComputeInline) check_inline(step);
    check_hint(step, table_, definition_, text_);
    if (step.kind == StepKind::Prefetch) check_place(step, "prefetch " + tensor_of(step));
    remember_hint(step);
  }

  /// Loops that a pragma, a prefetch or a pipeline is about must stay loops.
  void remember_hint(const Step& step) {
    const bool is_hint = step.kind == StepKind::Pragma || step.kind == StepKind::SoftwarePipeline;
    if (is_hint) hinted_.try_emplace(step.axes[0], schedule_.steps.size());
    if (step.kind == StepKind::Prefetch) {
      hinted_.try_emplace(step.at_axis, schedule_.steps.size());
    }
  }

  const std::string& tensor_of(const Step& step) const {
    return table_.stages[step.stage].tensors[step.output];
  }

  void check_numbers(const Step& step) {
    // The extents of a split round up to its factor, which must not pass the range of int64.
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const bool splits = step.kind == StepKind::Split || step.kind == StepKind::Tile;
    const auto check = [&](std::string_view what, int64_t value) {
      if (value < 1) refuse("SPLIT_FACTOR", "{}: the {} must be at least 1", text_, what);
      if (splits && value > kMost)
        refuse("SPLIT_FACTOR", "{}: the {} must be at most {}", text_, what, kMost);
    };
    for (const int64_t factor : step.factors)
      check(step.factors.size() > 1 ? "factors" : "factor", factor);
    if (step.parts) check("parts", *step.parts);
  }

  void check_axis(const Step& step, AxisId id) {
    const AxisTable::Row& row = table_.rows[id];
    const bool is_layout = row_of(step.kind).uses(step_fields::Layout);
    check_owner(id, is_layout && !step.readers.empty() ? step.readers[0] : step.stage);
    const bool names_stage = step.kind == StepKind::ReductionStage && row.kind == AxisKind::Data;
    // A dimension stays one, whatever became of its loop.
    if (step.kind != StepKind::StorageAlign && !names_stage) check_not_consumed(id);
    if (names_stage) return;
    const AxisTable::Stage& owner = table_.stages[row.stage];
    const int cell = owner.cell_of;
    const bool is_compute = owner.kind == AxisTable::Stage::Kind::Compute;
    if (is_compute && cell >= 0 && owner.time_dimension >= 0 &&
        owner.data[static_cast<size_t>(owner.time_dimension)] == id) {
      const auto scan = static_cast<StageId>(cell);
      refuse("SCAN_TIME", "axis {} of {} is the time of scan {}; schedule {}, the axis of the scan",
             row.name, stage(row.stage), stage(scan),
             axis(std::get<Scan>(definition_.stages[scan]).axis));
    }
  }

  void check_owner(AxisId id, StageId wanted) {
    const AxisTable::Row& row = table_.rows[id];
    if (id < owners_.size() && owners_[id] < 0) {
      refuse("FOREIGN_AXIS", "axis {} belongs to no stage", row.name);
    }
    if (row.stage != wanted) {
      refuse("FOREIGN_AXIS", "axis {} belongs to stage {}, not to {}", row.name, stage(row.stage),
             stage(wanted));
    }
  }

  void check_not_consumed(AxisId id) {
    const AxisTable::Row& row = table_.rows[id];
    if (row.consumed_by < 0) return;
    const Step& step = schedule_.steps[static_cast<size_t>(row.consumed_by)];
    if (defines_stage(step.kind)) refuse_moved(row, step);
    std::string parts;
    for (const AxisTable::Row& other : table_.rows) {
      if (other.defined_by != row.consumed_by) continue;
      parts += (parts.empty() ? "" : ", ") + other.name;
    }
    refuse("CONSUMED_AXIS", "axis {} was {} into {}{}", row.name, participle(step.kind), parts,
           at_line(step));
  }

  /// What became of an axis that is not of its stage any more, since the work is another stage's.
  [[noreturn]] void refuse_moved(const AxisTable::Row& row, const Step& step) {
    const auto made =
        std::find_if(table_.stages.begin(), table_.stages.end(),
                     [&](const auto& stage) { return stage.defined_by == row.consumed_by; });
    if (step.kind == StepKind::Rfactor) {
      refuse("CONSUMED_AXIS", "{} now reduces what {} has; the reduction over {} is in {}",
             stage(row.stage), made->name, row.name, made->name);
    }
    if (step.kind == StepKind::ReductionStage) {
      refuse("CONSUMED_AXIS",
             "the reduction over {} inside {} is the stage {} now; name the axes of {}", row.name,
             stage(row.stage), made->name, made->name);
    }
    if (row.kind == AxisKind::Reduce) {
      refuse("CONSUMED_AXIS", "{} is now a copy; the reduction is in {}", stage(row.stage),
             made->name);
    }
    refuse("CONSUMED_AXIS",
           "{} is now a copy of {}, with its own axes as loops; {} gave the copy its layout",
           stage(row.stage), made->name, row.name);
  }

  static std::string at_line(const Step& step) {
    return step.line == 0 ? "" : fmt::format(" at line {}", step.line);
  }

  void check_tag(const Step& step) {
    const auto tags = thread_tags();
    if (std::find(tags.begin(), tags.end(), step.tag) == tags.end()) {
      refuse("THREAD_AXIS", "unknown thread axis {}; known: {}", step.tag.substr(0, 64),
             fmt::join(tags, ", "));
    }
    if (step.tag == "vthread") return;
    const auto [bound, fresh] = bound_.try_emplace({step.stage, step.tag}, step.axes[0]);
    if (fresh || bound->second == step.axes[0]) return;
    refuse("THREAD_AXIS", "axis {} of {} is bound to {} already; bind {} to another thread axis",
           axis(bound->second), stage(step.stage), step.tag, axis(step.axes[0]));
  }

  void check_annotation(const Step& step) {
    const AxisId id = step.axes[0];
    if (step.kind != StepKind::Unroll) refuse_time(step);
    const auto [before, fresh] = annotated_.try_emplace(id, schedule_.steps.size());
    if (fresh) return;
    const Step& other = schedule_.steps[before->second];
    refuse("AXIS_ANNOTATED", "axis {} was {}{}{} already", axis(id), participle(other.kind),
           other.tag.empty()                   ? ""
           : other.kind == StepKind::Tensorize ? " with " + other.tag
                                               : " to " + other.tag,
           at_line(other));
  }

  void refuse_time(const Step& step) {
    const bool has_time = std::any_of(step.axes.begin(), step.axes.end(), [&](AxisId id) {
      return table_.rows[id].kind == AxisKind::Time;
    });
    if (has_time) refuse("SCAN_TIME", "the time axis of a scan is sequential");
  }

  /// An axis that something hangs on cannot be taken away.
  void check_consumed(const Step& step) {
    const std::string_view verb = row_of(step.kind).spelling;
    for (const AxisId id : step.axes) {
      if (const Step* other = find_mark(id)) {
        refuse("AXIS_ANNOTATED", "axis {} was {}{}; {} it before that", axis(id),
               participle(other->kind), at_line(*other), verb);
      }
      if (const auto found = attached_.find(id); found != attached_.end()) {
        refuse("AXIS_ATTACHED", "{} is computed at axis {}; {} it before compute_at",
               stage(found->second), axis(id), verb);
      }
    }
  }

  /// The step that says how the loop of an axis runs, or null.
  const Step* find_mark(AxisId id) const {
    for (const auto* marks : {&annotated_, &hinted_}) {
      if (const auto found = marks->find(id); found != marks->end()) {
        return &schedule_.steps[found->second];
      }
    }
    return nullptr;
  }

  bool is_output(StageId id) const {
    return std::any_of(definition_.parameters.begin(), definition_.parameters.end(),
                       [id](TensorId parameter) { return parameter.stage == id; });
  }

  /// The scan that `id` is an update or an init of, or -1.
  int scan_with(StageId id, std::vector<TensorId> Scan::*list) const {
    for (StageId i = 0; i < definition_.stages.size(); ++i) {
      const auto* scan = std::get_if<Scan>(&definition_.stages[i]);
      if (scan == nullptr) continue;
      for (const TensorId tensor : scan->*list) {
        if (tensor.stage == id) return static_cast<int>(i);
      }
    }
    return -1;
  }

  void check_compute_at(const Step& step) {
    const std::string& name = stage(step.stage);
    if (step.at_stage == step.stage) {
      refuse("COMPUTE_AT", "{} cannot be computed at itself", name);
    }
    if (is_placeholder(step.at_stage)) {
      refuse("COMPUTE_AT", "{} is a placeholder and has no loops to compute {} in",
             stage(step.at_stage), name);
    }
    if (is_output(step.stage)) {
      refuse("COMPUTE_AT", "{} is an output and cannot be computed inside another stage", name);
    }
    if (const int scan = scan_with(step.stage, &Scan::update); scan >= 0) {
      refuse("COMPUTE_AT", "{} is the update of scan {}, which computes it", name,
             stage(static_cast<StageId>(scan)));
    }
    check_place(step, "compute " + name);
    attached_.insert_or_assign(step.at_axis, step.stage);
  }

  /// The loop that a step names beside its stage is there; `what` is to be done at it.
  void check_place(const Step& step, const std::string& what) {
    check_owner(step.at_axis, step.at_stage);
    const AxisTable::Row& row = table_.rows[step.at_axis];
    if (row.consumed_by >= 0) {
      const Step& taken = schedule_.steps[static_cast<size_t>(row.consumed_by)];
      if (defines_stage(taken.kind)) refuse_moved(row, taken);
      std::string parts;
      for (const AxisTable::Row& other : table_.rows) {
        if (other.defined_by != row.consumed_by) continue;
        parts += (parts.empty() ? "" : " or ") + other.name;
      }
      const Step& other = schedule_.steps[static_cast<size_t>(row.consumed_by)];
      refuse("CONSUMED_AXIS", "axis {} of {} was {}{}; {} at {}", row.name, stage(step.at_stage),
             participle(other.kind), at_line(other), what, parts);
    }
  }

  void check_inline(const Step& step) {
    const std::string& name = stage(step.stage);
    if (scan_with(step.stage, &Scan::update) >= 0) {
      refuse("COMPUTE_INLINE", "a scan update cannot be inlined");
    }
    if (is_scan(step.stage)) refuse("COMPUTE_INLINE", "{} is a scan and cannot be inlined", name);
    if (is_scatter(step.stage)) {
      refuse("COMPUTE_INLINE", "{} is a scatter and cannot be inlined", name);
    }
    if (const int scan = scan_with(step.stage, &Scan::init); scan >= 0) {
      refuse("COMPUTE_INLINE", "{} gives scan {} its initial steps and cannot be inlined", name,
             stage(static_cast<StageId>(scan)));
    }
    if (is_output(step.stage)) {
      refuse("COMPUTE_INLINE", "{} is an output and cannot be inlined", name);
    }
    if (table_.stages[step.stage].is_reduction) {
      refuse("COMPUTE_INLINE", "{} has a reduction and cannot be inlined; use compute_at", name);
    }
  }

  bool is_placeholder(StageId id) const {
    return table_.stages[id].kind == AxisTable::Stage::Kind::Placeholder;
  }
  bool is_scan(StageId id) const { return table_.stages[id].kind == AxisTable::Stage::Kind::Scan; }
  bool is_scatter(StageId id) const {
    return table_.stages[id].kind == AxisTable::Stage::Kind::Scatter;
  }

  /// The loops of a stage that a step rearranges must not be spoken for.
  void refuse_settled(const Step& step, const std::vector<AxisId>& axes) {
    const std::string_view verb = row_of(step.kind).spelling;
    for (const AxisId id : axes) {
      if (const Step* other = find_mark(id)) {
        refuse("AXIS_ANNOTATED", "axis {} of {} was {}{}; {} {} before that", axis(id),
               stage(step.stage), participle(other->kind), at_line(*other), verb,
               stage(step.stage));
      }
      if (const auto found = attached_.find(id); found != attached_.end()) {
        refuse("AXIS_ATTACHED", "{} is computed at axis {} of {}; {} {} before compute_at",
               stage(found->second), axis(id), stage(step.stage), verb, stage(step.stage));
      }
    }
  }

  void check_cache_write(const Step& step) {
    check_scope(step);
    const std::string& name = stage(step.stage);
    if (is_scan(step.stage)) {
      refuse("CACHE_WRITE",
             "{} is a scan and has no values of its own to keep; cache_write its update", name);
    }
    if (is_scatter(step.stage)) {
      refuse("CACHE_WRITE",
             "{} is a scatter, which updates its own memory; cache_write a stage that reads it",
             name);
    }
    refuse_settled(step, table_.stages[step.stage].leaves);
    for (const AxisId leaf : table_.leaves_of(step.stage, AxisKind::Reduce)) {
      const AxisTable::Row& row = table_.rows[leaf];
      if (row.defined_by < 0) continue;
      const Step& other = schedule_.steps[static_cast<size_t>(row.defined_by)];
      if (defines_stage(other.kind)) continue;
      refuse("CACHE_WRITE",
             "reduction axis {} of {} was made{}; cache_write {} before that, and {} the axes of "
             "the new stage",
             row.name, name, at_line(other), name, row_of(other.kind).spelling);
    }
  }

  void check_rfactor(const Step& step) {
    const AxisTable::Stage& own = table_.stages[step.stage];
    const AxisTable::Row& row = table_.rows[step.axes[0]];
    if (row.kind != AxisKind::Reduce) {
      refuse(
          "RFACTOR",
          "axis {} of {} is not a reduction axis; rfactor takes a reduction axis or a part of one",
          row.name, own.name);
    }
    if (!own.is_reduction || !own.inner.empty()) {
      fail(ErrorKind::Unsupported, "RFACTOR",
           "{} has a reduction inside a larger expression; take reduction_stage of it to factor {}",
           own.name, row.name);
    }
    const auto last = static_cast<int64_t>(own.data.size());
    if (step.value < 0 || step.value > last) {
      refuse("RFACTOR",
             "factor_axis is {}, but the partial results of {} have the dimensions 0 to {}",
             step.value, own.name, last);
    }
    refuse_settled(step, table_.leaves_of(step.stage, AxisKind::Reduce));
  }

  void check_set_scope(const Step& step) {
    check_scope(step);
    if (is_output(step.stage)) {
      refuse("MEMORY_SCOPE",
             "{} is an output, whose memory is the caller's; set the scope of a cache_write of it",
             stage(step.stage));
    }
  }

  const std::string& stage(StageId id) const { return table_.stages[id].name; }
  const std::string& axis(AxisId id) const { return table_.rows[id].name; }

  template <typename... Args>
  [[noreturn]] static void refuse(std::string_view reason, fmt::format_string<Args...> format,
                                  Args&&... args) {
    fail(ErrorKind::InvalidArgument, reason, format, std::forward<Args>(args)...);
  }

  const v1::Schedule& wire_;
  const Kernel& kernel_;
  const Definition& definition_;
  const Limits& limits_;
  AxisTable table_;
  std::vector<int> owners_;
  Schedule schedule_;
  std::string text_;  // of the step at hand
  size_t axes_checked_ = 0;
  std::map<AxisId, size_t> annotated_;  // axis -> position of bind, parallel, ...
  std::map<AxisId, size_t> hinted_;     // axis -> position of a pragma, a prefetch, ...
  std::map<AxisId, StageId> attached_;  // axis -> a stage computed there
  std::map<std::pair<StageId, std::string>, AxisId> bound_;
};

}  // namespace

Schedule decode_schedule(const v1::Schedule& schedule, const Kernel& kernel, const Limits& limits) {
  return ScheduleDecoder(schedule, kernel, limits).decode();
}

}  // namespace kiln::language
