#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/language/definition.h"
#include "compiler/language/state/loops.h"
#include "compiler/language/tables/step.h"

namespace kiln::language {

/// Where a stage is computed: whole before its consumers, where it is read, or inside a loop.
struct Attachment {
  enum class Kind : uint8_t { Root, Inline, At };
  Kind kind = Kind::Root;
  StageId stage = 0;  // At: whose loop
  AxisId axis = 0;    // At
  int step = -1;      // position of the step that said so
};

/// An axis of a scheduled kernel. Positions of steps are -1 where there is none.
struct AxisRow {
  std::string name;
  StageId stage;                // whose axis it is; of an axis that no stage uses, any
  AxisKind kind;                // of an axis made of several: Reduce when any of them is
  int defined_by = -1;          // the step, -1 for the definition's own
  int consumed_by = -1;         // the step that used it up (a split, a fuse, ..)
  int annotated_by = -1;        // the step that says how its loop runs
  std::vector<int> hints = {};  // the steps that say something of the loops from it inwards
  bool is_used = true;          // whether it belongs to a stage
};

/// A stage of a scheduled kernel.
struct StageRow {
  enum class Kind : uint8_t { Placeholder, Compute, Scan, Scatter };
  Kind kind;
  std::string name;
  std::vector<std::string> tensors;  // the names of its outputs
  std::vector<uint32_t> ranks;       // one an output
  bool is_output = false;            // of the kernel, which then has its memory
  int defined_by = -1;               // position of the step, -1 for the definition's own
  int cell_of = -1;                  // the scan whose cell it is part of, or -1
  int update_of = -1;                // the scan that it gives the next state
  int init_of = -1;                  // the scan that it gives the initial steps
  AxisId time = 0;                   // Scan: its axis
  int time_dimension = -1;           // of a scan, its states and inits and its cell; else -1
  bool is_reduction = false;         // its bodies are reductions, not only something inside them
  std::vector<AxisId> data = {};     // Compute: the axes that its bodies use
  std::vector<AxisId> reduce = {};   // likewise
  std::vector<AxisId> inner = {};    // of these, those of reductions inside of its expressions
  std::vector<AxisId> at_time = {};  // of these, those of reductions that a scan's state is in
  Loops loops = {};
  Attachment attach = {};
  int scope_by = -1;  // position of the step that names its memory scope
};

/// All stages and axes of a scheduled kernel: those of the definition, then those that the steps
/// define, in the order of their ids.
struct StateTables {
  std::vector<AxisRow> axes;
  std::vector<StageRow> stages;
  std::vector<Step> steps;                     // those applied
  std::unordered_map<std::string, int> taken;  // names of stages and tensors; the last _1, _2 tried

  const std::string& name_of(StageId stage) const { return stages[stage].name; }
  /// The loops of a stage over data axes; those over reduction axes.
  std::vector<AxisId> leaves_of(StageId stage, AxisKind kind) const;
  std::vector<std::string> names_of(const std::vector<AxisId>& axes) const;
  /// The stage computed at a loop, the one of the latest step, if there is one.
  std::optional<StageId> attached_at(AxisId axis) const;
  /// Whether a step of this kind has been taken on a stage.
  bool has_step(StepKind kind, StageId stage) const;
  const Step* step_at(int position) const {
    return position < 0 ? nullptr : &steps[static_cast<size_t>(position)];
  }
  /// The step that says how the loop of an axis runs, or else the first with a hint on it, or null.
  const Step* mark_of(AxisId axis) const;
};

/// The tables before any step.
StateTables tables_of(const Definition& definition, const SourceMap& names);

/// For each axis of the definition the stage it belongs to. An axis used by no stage belongs to
/// none (-1).
std::vector<int> owners_of_axes(const Definition& definition);

/// For each stage the scan whose cell it is part of (state, updates and what stands between them),
/// or -1.
std::vector<int> cells_of(const Definition& definition);

}  // namespace kiln::language
