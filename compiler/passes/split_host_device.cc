// Makes each statement of the body one launch: its ThreadIndex loops stand outermost, each axis
// once.
//
//   for blockIdx.x in 0..b bind { for threadIdx.x in 0..32 bind { S }  for threadIdx.x in 0..8
//   bind { T } }
//     ->
//   for blockIdx.x in 0..b bind { for threadIdx.x in 0..32 bind { S  if threadIdx.x < 8 { T } } }
//
// What stands outside the threads of its launch is done by the first thread alone. A loop around
// bound ones is run by every thread: insert_barriers has seen to their order.
//
// Collects the thread axes of each launch, makes them loops around the whole of it, and replaces
// the loops inside by the axes' variables: a shorter loop by a guard, what stands outside a loop by
// a guard for the first thread. The extents are what the host computes for the launch, so they may
// use sizes and strides alone; of loops over one axis the longest counts. Named after TVM's pass.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pass_context.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// The variable that stands for a hardware index in the whole launch, and how far it goes.
struct Axis {
  VarRef var;
  Expr extent;
};
using Axes = std::map<ThreadAxis, Axis>;

/// What one thread does: its ThreadIndex loops become conditions on the indices of the launch.
class ThreadBody : public Mutator {
 public:
  explicit ThreadBody(const Axes& axes) : axes_(axes) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::ThreadIndex) return Mutator::visit(loop);
    if (loop.thread == ThreadAxis::VThread) {
      return For::make(loop.var, loop.extent, LoopKind::Serial, (*this)(loop.body));
    }
    const Axis& axis = axes_.at(loop.thread);
    bound_.push_back(loop.thread);
    const Stmt body = (*this)(substitute(loop.body, {{loop.var, axis.var}}));
    bound_.pop_back();
    if (equal_trees(axis.extent, loop.extent)) return body;
    return If::make(less(axis.var, loop.extent), body);
  }

  Stmt visit(const Store& store) override {
    return own_.contains(store.buffer) ? Stmt(&store) : by_first_thread(&store);
  }
  Stmt visit(const Atomic& node) override { return by_first_thread(&node); }
  Stmt visit(const Check& check) override { return by_first_thread(&check); }

  Stmt visit(const Allocate& allocate) override {
    if (allocate.buffer->scope != Scope::Shared) own_.insert(allocate.buffer);
    return Mutator::visit(allocate);
  }

  /// A statement outside the loops of an axis is done once, not by each thread of it.
  Stmt by_first_thread(const Stmt& stmt) const {
    Expr condition;
    for (const auto& [thread, axis] : axes_) {
      if (std::ranges::find(bound_, thread) != bound_.end() || is_const(axis.extent, 1)) continue;
      const Expr is_first = equal(axis.var, index(0));
      condition = condition ? logical_and(condition, is_first) : is_first;
    }
    return condition ? If::make(condition, stmt) : stmt;
  }

  const Axes& axes_;
  std::vector<ThreadAxis> bound_;
  std::unordered_set<BufferRef> own_;  // each thread has its own
};

class SplitHostDevice {
 public:
  explicit SplitHostDevice(const Kernel& kernel) : kernel_(kernel) {
    known_ = kernel.sizes;
    known_.insert(known_.end(), kernel.strides.begin(), kernel.strides.end());
  }

  Stmt operator()(const Stmt& launched, const HostLoops&) const {
    const Axes axes = axes_of(launched);
    Stmt nest = ThreadBody(axes)(launched);
    // threadIdx.z outside x: the order in which a person reads a nest; it does not matter
    // otherwise.
    for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
      if (is_block_axis(it->first)) continue;
      nest = For::make(it->second.var, it->second.extent, LoopKind::ThreadIndex, it->first, nest);
    }
    for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
      if (!is_block_axis(it->first)) continue;
      nest = For::make(it->second.var, it->second.extent, LoopKind::ThreadIndex, it->first, nest);
    }
    return nest;
  }

 private:
  /// One variable for all loops of an axis; its extent is the longest of theirs.
  Axes axes_of(const Stmt& launched) const {
    Axes axes;
    for (const For* loop : thread_loops(launched)) {
      if (loop->thread == ThreadAxis::VThread) continue;
      if (!is_known_to_host(loop->extent, known_)) {
        fail(ErrorKind::Unsupported, "THREAD_EXTENT",
             "{} of {} has the extent {}, which is not known before the launch",
             name_of(loop->thread), kernel_.name, loop->extent);
      }
      const auto [found, is_new] = axes.try_emplace(
          loop->thread, Axis{Var::make(std::string(name_of(loop->thread))), loop->extent});
      Expr& extent = found->second.extent;
      if (!is_new && !equal_trees(extent, loop->extent)) extent = max(extent, loop->extent);
    }
    return axes;
  }

  const Kernel& kernel_;
  std::vector<VarRef> known_;
};

}  // namespace

ir::Kernel split_host_device(ir::Kernel kernel, const PassContext&) {
  kernel.body = map_launches(kernel.body, SplitHostDevice(kernel));
  return kernel;
}

}  // namespace kiln::passes
