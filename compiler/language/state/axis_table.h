#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/language/definition.h"
#include "compiler/language/tables/step.h"

namespace kiln::language {

/// All stages and axes of a scheduled kernel: those of the definition, then those that the steps
/// define, in the order of their ids.
struct AxisTable {
  struct Row {
    std::string name;
    StageId stage;    // whose axis it is; of an axis that no stage uses, any
    AxisKind kind;    // of an axis made of several: Reduce when any of them is
    int defined_by;   // position of the step, -1 for the definition's own
    int consumed_by;  // position of the step that used it up (a split, a fuse, ..), or -1
  };
  struct Stage {
    enum class Kind : uint8_t { Placeholder, Compute, Scan, Scatter };
    Kind kind;
    std::string name;
    std::vector<std::string> tensors;  // the names of its outputs
    std::vector<uint32_t> ranks;       // one an output
    int defined_by = -1;               // position of the step, -1 for the definition's own
    int cell_of = -1;                  // the scan whose cell it is part of, or -1
    int time_dimension = -1;           // of a scan, its states and inits and its cell; else -1
    bool is_reduction = false;         // its bodies are reductions, not only something inside them
    std::vector<AxisId> data = {};     // Compute: the axes that its bodies use
    std::vector<AxisId> reduce = {};   // likewise
    std::vector<AxisId> inner = {};    // of these, those of reductions inside of its expressions
    std::vector<AxisId> at_time = {};  // of these, those of reductions that a scan's state is in
    std::vector<AxisId> leaves = {};   // the loops, outermost first
  };
  std::vector<Row> rows;
  std::vector<Stage> stages;
  std::unordered_map<std::string, int> taken;  // names of stages and tensors; the last _1, _2 tried

  const std::string& name_of(StageId stage) const { return stages[stage].name; }
  /// The loops of a stage over data axes; those over reduction axes.
  std::vector<AxisId> leaves_of(StageId stage, AxisKind kind) const;
};

/// The table before any step.
AxisTable axis_table(const Definition& definition, const SourceMap& names);

/// The table after all steps. The steps must have passed decode_schedule().
AxisTable axis_table(const Definition& definition, const SourceMap& names,
                     const Schedule& schedule);

/// Enters what the step at `position` defines and consumes.
void apply(AxisTable& table, const Step& step, int position);

/// For each axis of the definition the stage it belongs to. An axis used by no stage belongs to
/// none
/// (-1).
std::vector<int> owners_of_axes(const Definition& definition);

/// For each stage the scan whose cell it is part of (state, updates and what stands between them),
/// or -1.
std::vector<int> cells_of(const Definition& definition);

/// "split(k, factor=32)", "compute_at(B, C.i)": for messages. The step's axes are in the table.
std::string text_of(const Step& step, const AxisTable& table);

/// The same with each axis after its stage, "split(C.k, factor=32)": as a kernel file has it.
std::string kernel_file_text(const Step& step, const AxisTable& table);

/// Each step of a schedule as a kernel file has it.
std::vector<std::string> kernel_file_text(const Schedule& schedule, const Definition& definition,
                                          const SourceMap& names);

}  // namespace kiln::language
