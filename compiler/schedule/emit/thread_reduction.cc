// A reduction over an axis that is bound to threads: each thread reduces its part, then half of the
// threads combine two parts each, until one is left.
//
//   C[i] = sum[k](A[i, k]), k bound to threadIdx.x
//     ->  own = 0, own += A[i, k] over the rest of k; C.parts[t] = own;
//         t < 16: C.parts[t] += C.parts[t + 16]; ..
//         t < 1: C.parts[0] += C.parts[1], C[i] = C.parts[0]
//
// The last 64 parts the lanes of a warp combine, by shuffles with those behind; up to 32 threads
// need no shared memory. Harris, "Optimizing Parallel Reduction in CUDA", 2007, without
// bank conflicts. insert_barriers sees to the waiting.
#include "compiler/schedule/emit/thread_reduction.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/bounds/scopes.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/error.h"

namespace kiln::schedule {
namespace {

ir::BufferRef local(const std::string& name, DType type) {
  return ir::Buffer::make(name, type, {ir::index(1)}, ir::Scope::Local);
}

ir::Stmt allocate_all(const std::vector<ir::BufferRef>& buffers, ir::Stmt body) {
  for (auto buffer = buffers.rbegin(); buffer != buffers.rend(); ++buffer)
    body = ir::Allocate::make(*buffer, std::move(body));
  return body;
}

const ir::Reduce& reduce_of(const Stage& stage, uint32_t output) {
  return *ir::as<ir::Reduce>(stage.bodies[output]);
}

}  // namespace

size_t reducing_threads(const StageGraph& graph, const NestPlan& plan, StageId id,
                        TargetKind target) {
  if (!traits_of(target).has_threads || !graph[id].is_reduction()) return 0;
  const std::vector<Loop>& loops = plan.nests[id].loops;
  return static_cast<size_t>(std::ranges::count_if(loops, [&](const Loop& loop) {
    return loop.is_reduce && !loop.is_elided && is_thread_index(graph.axes[loop.axis].thread);
  }));
}

void put_threads_first(StageGraph& graph) {
  for (Stage& stage : graph.stages) {
    const auto is_reduce = [&](AxisId axis) { return graph.axes[axis].kind == AxisKind::Reduce; };
    const auto is_thread = [&](AxisId axis) { return is_thread_index(graph.axes[axis].thread); };
    std::vector<AxisId>& leaves = stage.loops.leaves;
    const auto first = std::ranges::find_if(leaves, is_reduce);
    if (std::all_of(first, leaves.end(), is_reduce))
      std::stable_partition(first, leaves.end(), is_thread);
  }
}

ThreadReduction::ThreadReduction(const StageGraph& graph, const NestPlan& plan, StageId id,
                                 TargetKind target)
    : stage_(graph[id]) {
  std::vector<const Loop*> loops = loops_around(graph, plan, id);
  for (const Loop& loop : plan.nests[id].loops)
    loops.push_back(&loop);
  std::erase_if(loops, [](const Loop* loop) { return loop->is_elided; });
  std::vector<ir::Expr> shape;
  for (const Loop* loop : loops) {
    const ir::ThreadAxis axis = graph.axes[loop->axis].thread;
    if (!is_thread_index(axis)) continue;
    (loop->is_reduce ? reduced_ : around_).push_back({loop->var, loop->extent, axis});
    shape.push_back(loop->extent);
  }
  KILN_CHECK(reduced_.size() == reducing_threads(graph, plan, id, target));
  find_lanes(graph, plan, id, loops);
  for (uint32_t output = 0; output < stage_.types.size(); ++output) {
    const std::string name = graph.tensor_name({id, output});
    const DType type = stage_.types[output];
    own_.push_back(local(name + ".own", type));
    if (lanes_ > 0) {
      left_.push_back(is_one_warp() ? own_.back() : local(name + ".left", type));
      other_.push_back(local(name + ".other", type));
    }
    if (!is_one_warp())
      parts_.push_back(ir::Buffer::make(name + ".parts", type, shape, ir::Scope::Shared));
  }
}

/// All threads of a warp must come to a shuffle, and those that combine must lie in one: each loop
/// over threads has as many of them as all others of its axis in the launch, and the loops between
/// them run equally often in all.
void ThreadReduction::find_lanes(const StageGraph& graph, const NestPlan& plan, StageId id,
                                 const std::vector<const Loop*>& loops) {
  const std::optional<int64_t> count = ir::as_const_int(reduced_[0].extent);
  if (reduced_.size() != 1 || reduced_[0].axis != ir::ThreadAxis::ThreadX || !count) return;
  const bool fits =
      *count > ir::kWarp ? *count % ir::kWarp == 0 : *count > 1 && (*count & (*count - 1)) == 0;
  if (!fits) return;
  const auto is_as_long = [&](const Loop& other, const Threads& here) {
    return other.is_elided || graph.axes[other.axis].thread != here.axis ||
           ir::equal_trees(other.extent, here.extent);
  };
  std::vector<Threads> threads = around_;
  threads.push_back(reduced_[0]);
  for (const StageId stage : graph.order) {
    if (!graph[stage].is_live || root_of(graph, stage) != root_of(graph, id)) continue;
    for (const Loop& other : plan.nests[stage].loops) {
      for (const Threads& here : threads) {
        if (!ir::as_const_int(here.extent) || !is_as_long(other, here)) return;
      }
    }
  }
  for (const Loop* loop : loops) {
    const auto is_used = [&](const Threads& here) { return uses_var(loop->extent, here.var); };
    if (!loop->is_reduce && (has_read(loop->extent) || std::ranges::any_of(threads, is_used)))
      return;
  }
  lanes_ = static_cast<int>(std::min<int64_t>(*count, ir::kWarp));
}

bool ThreadReduction::is_one_warp() const {
  return lanes_ > 0 && ir::is_const(reduced_[0].extent, lanes_);
}

Accumulator ThreadReduction::own(uint32_t output) const { return {own_[output], {ir::index(0)}}; }

ir::Stmt ThreadReduction::start_of(const ir::BufferRef& buffer, uint32_t output) const {
  const ir::Expr start = ir::identity_of(reduce_of(stage_, output).how, stage_.types[output]);
  return ir::Store::make(buffer, {ir::index(0)}, start);
}

ir::Stmt ThreadReduction::part_of_thread(ir::Stmt body) const {
  std::vector<ir::Expr> threads;
  for (const Threads& loop : reduced_)
    threads.emplace_back(loop.var);
  std::vector<ir::Stmt> stmts;
  for (uint32_t output = 0; output < own_.size(); ++output)
    stmts.push_back(start_of(own_[output], output));
  stmts.push_back(std::move(body));
  for (uint32_t output = 0; output < parts_.size(); ++output) {
    stmts.push_back(ir::Store::make(parts_[output], place(threads),
                                    ir::Load::make(own_[output], {ir::index(0)})));
  }
  if (is_one_warp()) stmts.push_back(in_warp(reduced_[0].var));
  return allocate_all(own_, ir::Block::make(std::move(stmts)));
}

std::vector<ir::Stmt> ThreadReduction::combine_parts() const {
  std::vector<ir::Stmt> steps;
  if (is_one_warp()) return steps;
  // Each lane of a warp begins with two of them.
  const int64_t most = lanes_ > 0 ? 2 * lanes_ : 1;
  for (size_t axis = reduced_.size(); axis-- > 0;) {
    int64_t left = *ir::as_const_int(reduced_[axis].extent);
    while (left > most) {
      const int64_t distance = (left + 1) / 2;
      const bool is_last = distance == 1 && is_one_thread_before(axis);
      steps.push_back(combine(axis, left - distance, distance, is_last ? last_ : ir::Stmt()));
      left = distance;
    }
    if (lanes_ > 0) steps.push_back(by_first_warp(left));
  }
  if (lanes_ == 0 && is_one_thread_before(reduced_.size())) steps.push_back(by_first_thread(last_));
  return steps;
}

/// Each lane combines its value with that of one behind it, half as far behind each time; the first
/// one has all of them then.
ir::Stmt ThreadReduction::in_warp(const ir::VarRef& lane) const {
  std::vector<ir::Stmt> stmts;
  for (int distance = lanes_ / 2; distance > 0; distance /= 2) {
    for (uint32_t output = 0; output < own_.size();) {
      const ir::Combination& how = reduce_of(stage_, output).how;
      std::vector<Accumulator> accumulators;
      std::vector<ir::Expr> sources;
      for (size_t i = 0; i < how.values(); ++i, ++output) {
        stmts.push_back(ir::Shuffle::make(distance, nullptr, lanes_, other_[output], {ir::index(0)},
                                          ir::Load::make(left_[output], {ir::index(0)})));
        accumulators.push_back({left_[output], {ir::index(0)}});
        sources.push_back(ir::Load::make(other_[output], {ir::index(0)}));
      }
      stmts.push_back(combine_values(how, accumulators, sources));
    }
  }
  stmts.push_back(ir::If::make(ir::equal(lane, ir::index(0)), last_));
  return allocate_all(other_, ir::Block::make(std::move(stmts)));
}

/// The parts that are left, one or two a lane, in the warp of the first threads.
ir::Stmt ThreadReduction::by_first_warp(int64_t left) const {
  const ir::VarRef lane = ir::Var::make(reduced_[0].var->name);
  std::vector<ir::Stmt> stmts;
  for (uint32_t output = 0; output < left_.size(); ++output) {
    stmts.push_back(ir::Store::make(left_[output], {ir::index(0)},
                                    ir::Load::make(parts_[output], place({lane}))));
  }
  for (uint32_t output = 0; left > lanes_ && output < left_.size();) {
    const ir::Combination& how = reduce_of(stage_, output).how;
    std::vector<Accumulator> accumulators;
    std::vector<ir::Expr> sources;
    for (size_t i = 0; i < how.values(); ++i, ++output) {
      accumulators.push_back({left_[output], {ir::index(0)}});
      sources.push_back(ir::Load::make(parts_[output], place({lane + ir::index(lanes_)})));
    }
    const ir::Stmt second = combine_values(how, accumulators, sources);
    const bool has_all = left == 2 * lanes_;
    stmts.push_back(has_all ? second
                            : ir::If::make(ir::less(lane, ir::index(left - lanes_)), second));
  }
  stmts.push_back(in_warp(lane));
  return ir::For::make(lane, ir::index(lanes_), ir::LoopKind::ThreadIndex, reduced_[0].axis,
                       allocate_all(left_, ir::Block::make(std::move(stmts))));
}

bool ThreadReduction::is_one_thread_before(size_t axis) const {
  return std::all_of(reduced_.begin(), reduced_.begin() + static_cast<long>(axis),
                     [](const Threads& loop) { return ir::is_const(loop.extent, 1); });
}

/// The first threads of an axis each combine their part with that of a later one. Of the axes
/// before, which are still whole, all take part; of those behind only the first threads. `then`
/// follows in the same threads.
ir::Stmt ThreadReduction::combine(size_t axis, int64_t count, int64_t distance,
                                  const ir::Stmt& then) const {
  std::vector<Threads> loops;
  std::vector<ir::Expr> here;
  for (size_t i = 0; i < reduced_.size(); ++i) {
    const ir::VarRef var = ir::Var::make(reduced_[i].var->name);
    const ir::Expr extent = i < axis ? reduced_[i].extent : ir::index(i == axis ? count : 1);
    loops.push_back({var, extent, reduced_[i].axis});
    here.emplace_back(var);
  }
  std::vector<ir::Expr> later = here;
  later[axis] = later[axis] + ir::index(distance);
  std::vector<ir::Stmt> stmts;
  for (uint32_t output = 0; output < parts_.size();) {
    const ir::Combination& how = reduce_of(stage_, output).how;
    std::vector<Accumulator> accumulators;
    std::vector<ir::Expr> sources;
    for (size_t i = 0; i < how.values(); ++i, ++output) {
      accumulators.push_back({parts_[output], place(here)});
      sources.push_back(ir::Load::make(parts_[output], place(later)));
    }
    stmts.push_back(combine_values(how, accumulators, sources));
  }
  if (then) stmts.push_back(then);
  ir::Stmt result = ir::Block::make(std::move(stmts));
  for (size_t i = loops.size(); i-- > 0;) {
    result = ir::For::make(loops[i].var, loops[i].extent, ir::LoopKind::ThreadIndex, loops[i].axis,
                           std::move(result));
  }
  return result;
}

ir::Expr ThreadReduction::whole(uint32_t output) const {
  if (lanes_ > 0) return ir::Load::make(left_[output], {ir::index(0)});
  return ir::Load::make(parts_[output],
                        place(std::vector<ir::Expr>(reduced_.size(), ir::index(0))));
}

ir::Stmt ThreadReduction::by_first_thread(ir::Stmt body) const {
  for (size_t i = reduced_.size(); i-- > 0;) {
    body = ir::For::make(ir::Var::make(reduced_[i].var->name), ir::index(1),
                         ir::LoopKind::ThreadIndex, reduced_[i].axis, std::move(body));
  }
  return body;
}

std::vector<ir::Expr> ThreadReduction::place(const std::vector<ir::Expr>& of_reduction) const {
  std::vector<ir::Expr> indices;
  for (const Threads& loop : around_)
    indices.emplace_back(loop.var);
  indices.insert(indices.end(), of_reduction.begin(), of_reduction.end());
  return indices;
}

}  // namespace kiln::schedule
