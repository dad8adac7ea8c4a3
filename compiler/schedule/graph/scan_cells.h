#pragma once

#include <map>
#include <string_view>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Makes every init and update of a scan a stage that is nothing else, since both are written
/// straight into the scan's output: a placeholder, an argument, or a tensor that others read too is
/// copied by a stage `scan.init` or `scan.update`.
void copy_shared_scan_inputs(StageGraph& graph);

/// Who uses a tensor.
struct Uses {
  int reads = 0;        // by bodies, bounds and scatters
  int scan_places = 0;  // as an init or update
};
std::map<TensorId, Uses> uses_of_tensors(const StageGraph& graph);

/// Adds a stage `{user}.{what}` that copies the tensor.
StageId add_copy(StageGraph& graph, StageId user, TensorId source, std::string_view what);

/// Marks inits and cells: the stages that depend on a scan's state are computed inside its time
/// loop. Throws InvalidArgument SCAN_STATE where a state is used outside of its update, Unsupported
/// NESTED_SCAN for a scan inside a scan.
void find_scan_cells(StageGraph& graph);

}  // namespace kiln::schedule
