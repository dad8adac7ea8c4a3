#pragma once

#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// What stands at the start of each iteration of an axis: a Prefetch a cache line of all that the
/// stage reads, `ahead` iterations later, of the tensors that steps prefetch there, where that is
/// an element of the tensor. `facts` say what the loops around are.
///
///   if i + 1 < n { for A.p1 in 0..4 { prefetch A[i + 1, A.p1*16] } }
///
/// Throws Unsupported PREFETCH when data says what is read.
ir::Stmt prefetches_at(const StageGraph& graph, const NestPlan& plan, StageId stage, AxisId axis,
                       const analysis::Facts& facts);

}  // namespace kiln::schedule
