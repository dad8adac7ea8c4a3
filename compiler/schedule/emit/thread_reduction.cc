// A reduction over an axis that is bound to threads: each thread reduces its part, then half of the
// threads combine two parts each, until one is left.
//
//   C[i] = sum[k](A[i, k]), k bound to threadIdx.x
//     ->  own = 0, own += A[i, k] over the rest of k; C.parts[t] = own;
//         t < 16: C.parts[t] += C.parts[t + 16]; ..
//         t < 1: C.parts[0] += C.parts[1], C[i] = C.parts[0]
//
// Harris, "Optimizing Parallel Reduction in CUDA", 2007, without bank conflicts. insert_barriers
// sees to the waiting.
#include "compiler/schedule/emit/thread_reduction.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "runtime/core/error.h"

namespace kiln::schedule {
namespace {

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
  std::vector<ir::Expr> shape;
  for (const Loop* loop : loops) {
    const ir::ThreadAxis axis = graph.axes[loop->axis].thread;
    if (!is_thread_index(axis) || loop->is_elided) continue;
    (loop->is_reduce ? reduced_ : around_).push_back({loop->var, loop->extent, axis});
    shape.push_back(loop->extent);
  }
  KILN_CHECK(reduced_.size() == reducing_threads(graph, plan, id, target));
  for (uint32_t output = 0; output < stage_.types.size(); ++output) {
    const std::string name = graph.tensor_name({id, output});
    own_.push_back(
        ir::Buffer::make(name + ".own", stage_.types[output], {ir::index(1)}, ir::Scope::Local));
    parts_.push_back(
        ir::Buffer::make(name + ".parts", stage_.types[output], shape, ir::Scope::Shared));
  }
}

Accumulator ThreadReduction::own(uint32_t output) const { return {own_[output], {ir::index(0)}}; }

ir::Stmt ThreadReduction::part_of_thread(ir::Stmt body) const {
  std::vector<ir::Expr> threads;
  for (const Threads& loop : reduced_)
    threads.emplace_back(loop.var);
  std::vector<ir::Stmt> stmts;
  for (uint32_t output = 0; output < own_.size(); ++output) {
    const ir::Expr start = ir::identity_of(reduce_of(stage_, output).how, stage_.types[output]);
    stmts.push_back(ir::Store::make(own_[output], {ir::index(0)}, start));
  }
  stmts.push_back(std::move(body));
  for (uint32_t output = 0; output < own_.size(); ++output) {
    stmts.push_back(ir::Store::make(parts_[output], place(threads),
                                    ir::Load::make(own_[output], {ir::index(0)})));
  }
  ir::Stmt all = ir::Block::make(std::move(stmts));
  for (auto buffer = own_.rbegin(); buffer != own_.rend(); ++buffer)
    all = ir::Allocate::make(*buffer, std::move(all));
  return all;
}

std::vector<ir::Stmt> ThreadReduction::combine_parts(const ir::Stmt& last) const {
  std::vector<ir::Stmt> steps;
  for (size_t axis = reduced_.size(); axis-- > 0;) {
    for (int64_t left = *ir::as_const_int(reduced_[axis].extent); left > 1;) {
      const int64_t distance = (left + 1) / 2;
      const bool is_last = distance == 1 && is_one_thread_before(axis);
      steps.push_back(combine(axis, left - distance, distance, is_last ? last : ir::Stmt()));
      left = distance;
    }
  }
  if (is_one_thread_before(reduced_.size())) steps.push_back(by_first_thread(last));
  return steps;
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
