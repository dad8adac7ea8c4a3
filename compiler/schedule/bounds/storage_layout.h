#pragma once

#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {

/// The strides that the alignments of a stage give a buffer of this shape; empty when rows that lie
/// side by side have them already.
std::vector<ir::Expr> aligned_strides(const Stage& stage, const std::vector<ir::Expr>& shape,
                                      const analysis::Facts& sizes);

/// The extents of the memory of a stage whose own are `shape`: padded where factors do not divide.
std::vector<ir::Expr> extents_in_layout(const Stage& stage, const std::vector<ir::Expr>& shape,
                                        const analysis::Facts& sizes);

/// Which of its two memories a doubled stage uses: 0 and 1 in turn, iteration by iteration of the
/// loop it is computed at. Null for a stage that has one: when that loop runs once, or its
/// iterations at the same time, with a memory for each.
ir::Expr alternating_copy(const StageGraph& graph, const NestPlan& plan, StageId stage);

}  // namespace kiln::schedule
