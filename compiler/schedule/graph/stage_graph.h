#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/mutator.h"
#include "compiler/ir/stmt.h"
#include "compiler/language/kernel.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/tables/hints.h"
#include "runtime/core/error.h"

namespace kiln::schedule {

/// Positions in StageGraph. Those below the definition's counts are the definition's own.
using StageId = uint32_t;
using AxisId = uint32_t;
using language::AxisKind;
using language::Fuse;
using language::Relation;
using language::Split;
using language::TensorId;

/// One axis: a root axis, which the bodies of its stage name, or one that a step has made.
struct Axis {
  std::string name;
  AxisKind kind = AxisKind::Data;
  StageId stage = 0;
  ir::VarRef value;        // root axes: the variable that bodies use
  ir::Expr minimum;        // root axes
  ir::Expr extent;         // root axes; of a reduction it may use values of other axes
  bool is_shared = false;  // several reductions run over it; all but one of them have copies

  // How its loop runs, and the step that said so (-1: none).
  ir::LoopKind loop_kind = ir::LoopKind::Serial;
  ir::ThreadAxis thread = ir::ThreadAxis::None;
  int annotated_by = -1;

  // What a step says of the loops from this one inwards.
  std::optional<language::TensorIntrinsic> intrinsic;
  int64_t unrolled_statements = 0;  // at most so many come of unrolling
  bool keeps_loops = false;         // loops to be unrolled stay loops
};

/// Where a stage is computed: of one in a cell of a scan, at a loop of the scan until a step says
/// something else. `stage` and `axis` are positions.
using Attach = language::Attachment;

/// What must hold of the axes of a stage, so that there is something to compute.
struct Condition {
  ir::Expr holds;
  bool is_reduce = false;  // else, outside of it nothing is stored
};

/// Neighbours along a dimension lie a multiple of `factor` and `offset` elements apart.
struct Alignment {
  size_t dimension = 0;
  int64_t factor = 1;
  int64_t offset = 0;
};

/// A dimension of a stage's memory: how often `step` elements along `dimension` of the stage have
/// been passed, of `count` in a row, from where it starts again; 0 where it never does.
struct LayoutDimension {
  size_t dimension = 0;
  int64_t step = 1;
  int64_t count = 0;
};

/// What a scan computes: the next step of each state from those before.
struct ScanParts {
  AxisId time = 0;
  bool is_reverse = false;  // from the last index to the first
  std::vector<TensorId> init;
  std::vector<TensorId> update;
  std::vector<TensorId> state;
  std::vector<ir::ThreadAxis> env_threads;  // those that stand around all of it
  int64_t steps_in_part = 0;                // of parts that run at once; 0 where there are none
  int parted_by = -1;                       // the step that says so
};

/// What a scatter updates. The update is the body of its stage, over the axes `data`, which are not
/// those of its shape.
struct ScatterParts {
  TensorId base;
  std::vector<ir::Expr> indices;
  std::optional<language::Operator> combiner;  // nothing: the update replaces the element
};

/// What a stage is to the scan or the scatter that takes its values.
struct Role {
  int cell_of = -1;  // the scan whose state this stage depends on
  bool is_update = false;
  bool is_init = false;  // written straight into the output of the scan `init_of`
  StageId init_of = 0;
  int base_of = -1;  // written straight into the output of this scatter
};

/// Where the values of a stage lie.
struct Memory {
  std::string scope;          // one of language::memory_scopes(), empty when no step names one
  SourceLocation scope_line;  // of that step
  std::vector<Alignment> alignments;
  int64_t swizzle = 0;                  // ir/swizzle.h; 0: none
  std::vector<LayoutDimension> layout;  // empty: the dimensions as they are
  int doubled_by = -1;                  // the step that gives it its memory twice
  int rolled_by = -1;                   // the step that has iterations share it
};

/// A stage of the definition, one that a step defines, or one that the compiler adds: a reduction
/// taken out of a larger expression, or a copy into the state of a scan.
struct Stage {
  enum class Kind : uint8_t { Placeholder, Compute, Scan, Scatter };
  Kind kind = Kind::Placeholder;
  std::string name;
  StageId origin = 0;                         // the stage of the definition it stands for
  std::optional<StageId> part_of;             // of a reduction taken out of a stage: that stage
  std::vector<AxisId> stands_for;             // of such a reduction: what `data` are in that stage
  std::vector<DType> types;                   // one an output
  std::vector<std::vector<ir::Expr>> shapes;  // one an output
  bool is_live = false;                       // an output of the kernel needs it

  // Compute. A body is an expression, or a Reduce on top; then all bodies are, over the same axes.
  std::vector<AxisId> data;
  std::vector<AxisId> reduce;
  std::vector<ir::Expr> bodies;
  bool from_branch = false;  // a reduction that stood under an if_then_else
  // In terms of the variables of its axes: what a layout or partial results leave empty.
  std::vector<Condition> conditions;
  // Which dimension is time, in a scan, its states and inits, and the stages of its cell; else -1.
  int time_dimension = -1;

  ScanParts as_scan;        // of a scan
  ScatterParts as_scatter;  // of a scatter
  Role role;

  language::Loops loops;  // as the steps have changed them
  Attach attach;
  Memory memory;
  bool is_touched = false;  // some step says how it runs
  bool is_padding = false;  // what cache_padded has made

  bool is_reduction() const { return !reduce.empty(); }
  bool is_time(size_t dimension) const { return static_cast<int>(dimension) == time_dimension; }
  /// The data axis that is time; the stage must have one.
  AxisId time_axis() const { return data[static_cast<size_t>(time_dimension)]; }
};

/// Whether a stage has loops over its own axes, as a compute.
inline bool runs_over_axes(const Stage& stage) {
  return stage.kind == Stage::Kind::Compute || stage.kind == Stage::Kind::Scatter;
}

/// Where a tensor of a scan's cell is stored: state, init and update share the scan's output.
struct ScanOutput {
  StageId scan;
  uint32_t output;
};

/// Iterations of `axis` fetch what the one `ahead` iterations later reads of a tensor.
struct Prefetch {
  TensorId tensor;
  StageId reader = 0;
  AxisId axis = 0;
  int64_t ahead = 0;
  int step = -1;
};

/// What is computed at the axis may run ahead of it.
struct Pipeline {
  StageId stage = 0;
  AxisId axis = 0;
  int64_t stages = 0;
  int step = -1;
};

/// The definition under its schedule, with expressions. Every stage only reads stages before it in
/// `order`. Beside the stages and axes that steps name there are those that the compiler adds, so
/// that all have positions of their own.
struct StageGraph {
  const language::Kernel* kernel = nullptr;
  language::ScheduleState state;  // what the steps taken so far mean, by their ids
  std::vector<ir::VarRef> sizes;
  std::vector<Axis> axes;
  std::vector<Stage> stages;
  std::vector<StageId> order;
  std::vector<Prefetch> prefetches;
  std::vector<Pipeline> pipelines;
  std::vector<std::string> notes;  // what steps ask for that changes nothing, and why
  // What the ids of steps mean: positions of the definition's stages and axes, then of those that
  // steps define.
  std::vector<StageId> stage_of_id;
  std::vector<AxisId> axis_of_id;

  const Stage& operator[](StageId id) const { return stages[id]; }
  /// "C", or "scan.v1" for an output of a stage with several.
  std::string tensor_name(TensorId tensor) const;
  bool is_parameter(TensorId tensor) const;
  /// Whether an output of the stage is an argument of the kernel, so that its memory is the
  /// caller's.
  bool has_parameter(StageId id) const;
  /// The scan output that a tensor is stored in: states, inits and updates.
  std::optional<ScanOutput> scan_output_of(TensorId tensor) const;
};

/// The records of a kernel, each stage at the root with its own axes as loops. Takes reductions out
/// of larger expressions and finds the cells of scans. Throws InvalidArgument or Unsupported,
/// naming the stage, for what no schedule could compute.
StageGraph build_stage_graph(const language::Kernel& kernel);

/// The stage at the root in whose loops a stage stands. Inits and cells belong to their scan.
StageId root_of(const StageGraph& graph, StageId stage);

/// Whether `part` is the stage or a reduction taken out of its expression.
bool is_part_of(const StageGraph& graph, StageId part, StageId stage);

/// The stage, then the reductions taken out of its expression.
std::vector<StageId> parts_of(const StageGraph& graph, StageId stage);

/// The stages that are computed at this loop of the consumer, in order.
std::vector<StageId> attached_at(const StageGraph& graph, StageId consumer, AxisId axis);

/// Where the user wrote a stage.
SourceLocation location_of(const StageGraph& graph, StageId stage);

/// Runs `body`; an Error that leaves it has the stage's line, unless it has a more exact one.
template <typename Body>
decltype(auto) at_stage(const StageGraph& graph, StageId stage, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    error.set_location(location_of(graph, stage));
    throw;
  }
}

/// Where the user wrote a step.
SourceLocation location_of(const StageGraph& graph, const language::Step& step);

}  // namespace kiln::schedule
