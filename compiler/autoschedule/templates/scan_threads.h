#pragma once

#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// The inits of a scan and what stands directly in its time loop.
std::vector<StageId> nests_of_scan(const StageGraph& graph, StageId scan);

/// Scans on a GPU: a thread for each column, which goes through all of time; or, of few columns of
/// a running sum whose order may be changed, threads for parts of time. The cheapest comes first.
std::vector<Sketch> scan_thread_sketches(const Chooser& chooser, StageId scan);

}  // namespace kiln::autoschedule
