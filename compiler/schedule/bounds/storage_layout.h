#pragma once

#include "compiler/schedule/bounds/nest.h"
#include "runtime/core/target_kind.h"

namespace kiln::schedule {

/// The strides that the alignments of a stage give a buffer of this shape; empty when rows that lie
/// side by side have them already.
std::vector<ir::Expr> aligned_strides(const Stage& stage, const std::vector<ir::Expr>& shape,
                                      const analysis::Facts& sizes);

/// The extents of the memory of a stage whose own are `shape`: padded where factors do not divide.
std::vector<ir::Expr> extents_in_layout(const Stage& stage, const std::vector<ir::Expr>& shape,
                                        const analysis::Facts& sizes);

/// How many memories a stage has that a GPU copies to shared memory in the background, for as many
/// iterations of a pipelined loop; 0 where it does not. That is what hardware does of 4 to 16 bytes
/// at once, without registers in between.
int64_t late_copies(const StageGraph& graph, StageId stage, TargetKind target);

/// Which of its memories a stage uses, and of how many: one after the other, iteration by iteration
/// of the loop it is computed at. Of a doubled one there are two.
struct MemoryInTurn {
  ir::Expr copy;  // null for a stage that has one: when that loop runs once, or its iterations at
                  // the same time, with a memory for each
  int64_t copies = 1;
};
MemoryInTurn memory_in_turn(const StageGraph& graph, const NestPlan& plan, StageId stage,
                            TargetKind target);

}  // namespace kiln::schedule
