#pragma once

#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// The loops of a scan: those it shares with all its nests, outermost, then those of time.
///
/// Loops are shared when the inits and everything computed at a time step start with the same bound
/// or parallel loops over the same columns, and no column reads the state of another: then each
/// thread runs through time on its own.
Nest make_scan_nest(const StageGraph& graph, StageId scan, const analysis::Facts& sizes);

/// The scan's shared loops, for an init or a stage that stands directly in the time loop.
std::vector<Loop> shared_loops_of(const StageGraph& graph, const NestPlan& plan, StageId stage);

/// The index of time that the loops of a scan compute.
ir::Expr time_value(const StageGraph& graph, const NestPlan& plan, StageId scan);

/// How many steps a scan has, initial ones included.
const ir::Expr& steps_of(const StageGraph& graph, StageId scan);

}  // namespace kiln::schedule
