#pragma once

#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// A body as loads, and the checks that must stand before it.
struct LoweredBody {
  std::vector<ir::Stmt> checks;
  ir::Expr value;
};

/// Turns the reads of a body of `stage` into loads. `values` gives the root axes in terms of loops.
///
/// Every read is proved to lie inside its tensor under `facts` and the conditions of the
/// if_then_else branches around it, or gets a Check, whose row is added to `checks`. A read of a
/// scan's state must be of an earlier step. Throws InvalidArgument SCAN_STEP for one that never is.
LoweredBody lower_reads(const StageGraph& graph, const NestPlan& plan, StageId stage,
                        const ir::Expr& body, const ir::Substitution& values,
                        const analysis::Facts& facts, std::vector<RuntimeCheck>& checks);

/// One iteration of a scatter, with the checks that must stand before it: of its reads, and that
/// its indices lie inside of the tensor.
struct LoweredScatter {
  std::vector<ir::Stmt> checks;
  std::vector<ir::Expr> indices;
  ir::Expr update;
};
LoweredScatter lower_scatter(const StageGraph& graph, const NestPlan& plan, StageId stage,
                             const ir::Substitution& values, const analysis::Facts& facts,
                             std::vector<RuntimeCheck>& checks);

}  // namespace kiln::schedule
