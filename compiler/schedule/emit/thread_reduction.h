#pragma once

#include <vector>

#include "compiler/schedule/bounds/infer_bounds.h"
#include "compiler/schedule/emit/combine.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// How many loops of a stage's reduction are bound to threads that a GPU has. Those stand before
/// its other loops over the reduction (put_threads_first).
size_t reducing_threads(const StageGraph& graph, const NestPlan& plan, StageId id,
                        TargetKind target);

/// In each reduction without loops over data inside, the loops that are bound to threads come
/// first: each thread adds up all the rest of its part.
void put_threads_first(StageGraph& graph);

/// The memory and the statements of a reduction whose iterations are divided among threads.
class ThreadReduction {
 public:
  ThreadReduction(const StageGraph& graph, const NestPlan& plan, StageId id, TargetKind target);

  /// The thread's own value of an output.
  Accumulator own(uint32_t output) const;
  /// Of one thread: start values, then `body`, then its part is kept for the others.
  ir::Stmt part_of_thread(ir::Stmt body) const;
  /// Halves the parts until the first one is the combination of all, a loop over threads a step;
  /// then `last`, once, by the thread that made it, which waits for nobody.
  std::vector<ir::Stmt> combine_parts(const ir::Stmt& last) const;
  /// The combination of all parts.
  ir::Expr whole(uint32_t output) const;
  /// What all threads of the block share.
  const std::vector<ir::BufferRef>& shared() const { return parts_; }

 private:
  /// A loop over threads, of the reduction or around it.
  struct Threads {
    ir::VarRef var;
    ir::Expr extent;
    ir::ThreadAxis axis;
  };
  std::vector<ir::Expr> place(const std::vector<ir::Expr>& of_reduction) const;
  ir::Stmt combine(size_t axis, int64_t count, int64_t distance, const ir::Stmt& then) const;
  ir::Stmt by_first_thread(ir::Stmt body) const;
  /// Whether the axes before this one have one thread.
  bool is_one_thread_before(size_t axis) const;

  const Stage& stage_;
  std::vector<Threads> around_;
  std::vector<Threads> reduced_;
  std::vector<ir::BufferRef> own_;    // one an output
  std::vector<ir::BufferRef> parts_;  // likewise
};

}  // namespace kiln::schedule
