#pragma once

#include <string>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

// Parameters and loops that sketches have in common.
namespace kiln::autoschedule {

/// "lanes": half of `preferred` to four times it, as far as the axis is so long.
Parameter lanes_parameter(const StageGraph& graph, const std::vector<AxisId>& line,
                          int64_t preferred);
/// `values` as far as a known extent of the axis is so large, and `preferred`.
Parameter tile_parameter(const StageGraph& graph, std::string name, AxisId axis,
                         std::vector<int64_t> values, int64_t preferred);
/// "block": threads of a block.
Parameter block_parameter();
/// "parallel": 1 for several cores.
Parameter parallel_parameter(bool preferred);

/// Marks outer loops until together they have many iterations, as far as one knows.
void parallel_outer(const StageGraph& graph, StepWriter& steps, StageId stage,
                    const std::vector<AxisId>& loops);

}  // namespace kiln::autoschedule
