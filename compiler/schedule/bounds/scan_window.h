#pragma once

#include <cstdint>
#include <optional>

#include "compiler/analysis/prove.h"
#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// How many steps of a scan's output must be kept at a time, where that is known to be fewer than
/// all: the steps that its cell reads and the one it computes. Nothing when the output is an
/// argument, or when a stage may read a step that these overwrite.
std::optional<int64_t> window_of(const StageGraph& graph, StageId scan, uint32_t output,
                                 const analysis::Facts& sizes);

}  // namespace kiln::schedule
