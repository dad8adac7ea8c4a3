#pragma once

#include <vector>

#include "compiler/schedule/bounds/nest.h"
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
  /// What is done with the combination of all, once, by the thread that made it, which waits for
  /// nobody. Given before the statements are asked for.
  void set_last(ir::Stmt last) { last_ = std::move(last); }
  /// Of one thread: start values, then `body`, then its part is kept for the others. Where all of
  /// them are of one warp these combine them, too.
  ir::Stmt part_of_thread(ir::Stmt body) const;
  /// Halves the parts until those that are left are of one warp, or the first one is the
  /// combination of all; a loop over threads a step.
  std::vector<ir::Stmt> combine_parts() const;
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
  void find_lanes(const StageGraph& graph, const NestPlan& plan, StageId id,
                  const std::vector<const Loop*>& loops);
  bool is_one_warp() const;
  std::vector<ir::Expr> place(const std::vector<ir::Expr>& of_reduction) const;
  ir::Stmt combine(size_t axis, int64_t count, int64_t distance, const ir::Stmt& then) const;
  ir::Stmt by_first_thread(ir::Stmt body) const;
  ir::Stmt start_of(const ir::BufferRef& buffer, uint32_t output) const;
  ir::Stmt in_warp(const ir::VarRef& lane) const;
  ir::Stmt by_first_warp(int64_t left) const;
  /// Whether the axes before this one have one thread.
  bool is_one_thread_before(size_t axis) const;

  const Stage& stage_;
  std::vector<Threads> around_;
  std::vector<Threads> reduced_;
  std::vector<ir::BufferRef> own_;    // one an output
  std::vector<ir::BufferRef> left_;   // likewise, what a lane of the last warp has
  std::vector<ir::BufferRef> other_;  // likewise, what a lane behind it has
  std::vector<ir::BufferRef> parts_;  // likewise; none where all threads are of one warp
  int lanes_ = 0;                     // of a warp that combine what is left; 0: none do
  ir::Stmt last_;
};

}  // namespace kiln::schedule
