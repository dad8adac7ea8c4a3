// In which memory a stage lies: what steps name, or what the threads and blocks around it see.
#include "compiler/schedule/bounds/scopes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/graph/stage_graph.h"
#include "runtime/core/error.h"

namespace kiln::schedule {
namespace {

bool is_block_index(ir::ThreadAxis axis) {
  return axis == ir::ThreadAxis::BlockX || axis == ir::ThreadAxis::BlockY ||
         axis == ir::ThreadAxis::BlockZ;
}

/// The scope that steps have named; shared.dyn is shared memory, and the scopes of tensor cores are
/// registers.
ir::Scope named_scope(const std::string& scope) {
  if (scope.starts_with("shared")) return ir::Scope::Shared;
  if (scope == "warp") return ir::Scope::Warp;
  return scope == "global" ? ir::Scope::Global : ir::Scope::Local;
}

}  // namespace

void refuse_scope(const Stage& stage, std::string_view why) {
  try {
    fail(ErrorKind::Unsupported, "MEMORY_SCOPE", "{} cannot lie in {} memory: {}", stage.name,
         stage.memory.scope, why);
  } catch (Error& error) {
    error.set_location(stage.memory.scope_line);
    throw;
  }
}

bool is_thread_index(ir::ThreadAxis axis) {
  return axis == ir::ThreadAxis::ThreadX || axis == ir::ThreadAxis::ThreadY ||
         axis == ir::ThreadAxis::ThreadZ;
}

bool is_of_warp(const Stage& stage) { return stage.memory.scope == "warp"; }

bool is_filled_by_threads(const StageGraph& graph, const NestPlan& plan, StageId stage,
                          TargetKind target) {
  const bool for_warp = is_of_warp(graph[stage]);
  const bool is_named = for_warp || graph[stage].memory.scope.starts_with("shared");
  if (!traits_of(target).has_threads || !is_named) return false;
  const std::vector<const Loop*> around = loops_around(graph, plan, stage);
  return std::any_of(around.begin(), around.end(), [&](const Loop* loop) {
    const ir::ThreadAxis thread = graph.axes[loop->axis].thread;
    return for_warp ? thread == ir::ThreadAxis::ThreadX : is_thread_index(thread);
  });
}

ir::Scope scope_of(const StageGraph& graph, const NestPlan& plan, StageId id, TargetKind target) {
  const Stage& stage = graph[id];
  if (!traits_of(target).has_threads) {
    if (is_of_warp(stage)) return ir::Scope::Local;
    return stage.memory.scope.empty() ? ir::Scope::Global : named_scope(stage.memory.scope);
  }
  ir::Scope scope = ir::Scope::Global;
  for (const Loop* loop : loops_around(graph, plan, id)) {
    const ir::ThreadAxis thread = graph.axes[loop->axis].thread;
    if (is_block_index(thread)) scope = ir::Scope::Shared;
    if (is_thread_index(thread)) {
      scope = ir::Scope::Local;
      break;
    }
  }
  if (stage.memory.scope.empty() || stage.memory.scope == "global") return scope;
  if (is_of_warp(stage) && !stage.memory.alignments.empty()) {
    refuse_scope(stage, "storage_align pads rows of memory, and registers have none; leave it out");
  }
  if (stage.memory.scope.starts_with("wmma.")) {
    refuse_scope(stage, "this version uses global, shared and local memory on a GPU");
  }
  const ir::Scope named = named_scope(stage.memory.scope);
  const bool is_of_block = named == ir::Scope::Shared || named == ir::Scope::Warp;
  if (is_of_block && scope == ir::Scope::Global) {
    refuse_scope(stage,
                 "it is computed outside of any block; compute it at a loop inside blockIdx");
  }
  if (named == ir::Scope::Local && scope != ir::Scope::Local) {
    refuse_scope(stage,
                 "it is computed outside of any thread; compute it at a loop inside threadIdx");
  }
  return named;
}

}  // namespace kiln::schedule
