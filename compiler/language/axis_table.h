#pragma once

#include <string>
#include <vector>

#include "compiler/language/definition.h"
#include "compiler/language/step.h"

namespace kiln::language {

/// All axes of a scheduled kernel: those of the definition, then those that the steps define, in
/// the order of their ids.
struct AxisTable {
  struct Row {
    std::string name;
    StageId stage;  // whose axis it is
    AxisKind kind;
    int defined_by;   // position of the step, -1 for the definition's own
    int consumed_by;  // position of the split, fuse or tile that used it up, or -1
  };
  std::vector<Row> rows;
};

/// The table after all steps. The steps must have passed decode_schedule().
AxisTable axis_table(const Definition& definition, const SourceMap& names,
                     const Schedule& schedule);

/// For each axis of the definition the stage it belongs to. An axis used by no stage belongs to
/// none
/// (-1).
std::vector<int> owners_of_axes(const Definition& definition);

}  // namespace kiln::language
