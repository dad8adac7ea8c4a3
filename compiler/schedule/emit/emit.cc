// Writes the loops of all stages: each nest where it is attached, its guards as far out as they can
// stand, its start values before the loops of a reduction, its memory around all that uses it.
//
//   C[i] = sum[k](B[i, k]), B at C's loop i
//     ->  for i { allocate B { for k { B[k] = .. }; C[i] = 0; for k { C[i] = C[i] + B[k] } } }
//
// What the loops around say (ranges, guards) are facts, with which guards and checks are proved
// away.
#include "compiler/schedule/emit/emit.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/bounds/scopes.h"
#include "compiler/schedule/bounds/storage_layout.h"
#include "compiler/schedule/emit/fetch_early.h"
#include "compiler/schedule/emit/hoist_checks.h"
#include "compiler/schedule/emit/innermost.h"
#include "compiler/schedule/emit/pragmas.h"
#include "compiler/schedule/emit/prefetch.h"
#include "compiler/schedule/emit/scan_parts.h"
#include "compiler/schedule/emit/thread_reduction.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

class Emitter {
 public:
  Emitter(const StageGraph& graph, const NestPlan& plan, TargetKind target,
          std::vector<RuntimeCheck>& checks)
      : graph_(graph),
        plan_(plan),
        target_(target),
        facts_(facts_of_sizes(graph)),
        innermost_(graph, plan, target, facts_, checks) {}

  ir::Stmt kernel() {
    // Put together from the last back: the memory of a stage stands around its nest and all later
    // ones.
    std::vector<std::pair<StageId, ir::Stmt>> roots;
    for (const StageId id : graph_.order) {
      const Stage& stage = graph_[id];
      if (!stage.is_live || stage.kind == Stage::Kind::Placeholder || stage.role.is_init) continue;
      if (stage.role.base_of >= 0) continue;
      if (stage.attach.kind != Attach::Kind::Root) continue;
      roots.emplace_back(id, nest_of(id));
    }
    ir::Stmt body = ir::Block::make({});
    for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
      body = allocate(root->first, ir::Block::make({root->second, body}));
    }
    return body;
  }

 private:
  ir::Stmt nest_of(StageId id) {
    return at_stage(graph_, id, [&] {
      ir::Stmt nest = guarded(Walk{id, plan_.nests[id]}, 0);
      if (graph_[id].kind == Stage::Kind::Scan) return scan_of(id, std::move(nest));
      if (graph_[id].kind != Stage::Kind::Scatter) return nest;
      return ir::Block::make({nest_of(graph_[id].as_scatter.base.stage), std::move(nest)});
    });
  }

  /// The loops of a scan, in parts where a step asks for that and there is more than one.
  ir::Stmt scan_of(StageId id, ir::Stmt nest) const {
    const ScanParts& scan = graph_[id].as_scan;
    if (scan.steps_in_part == 0) return nest;
    const Loop& time = plan_.nests[id].loops[loop_of_axis(plan_.nests[id], scan.time)];
    if (time.is_elided) return nest;
    return in_parts(nest, time.var, scan.steps_in_part, target_);
  }

  /// What stands inside the first `level` loops: the guards that are known there, the stages that
  /// are attached there, and the rest.
  ir::Stmt guarded(const Walk& walk, size_t level) {
    const bool enters_thread = walk.threads != nullptr && !walk.in_thread &&
                               level == loops_for_reducing_threads(walk.stage);
    if (enters_thread) {
      Walk inside = walk;
      inside.in_thread = true;
      return walk.threads->part_of_thread(guarded(inside, level));
    }
    // A producer keeps its own guards, and no barrier of its threads may stand under one of ours,
    // unless that is one of time, which is the same for all threads.
    if (traits_of(target_).has_threads && graph_[walk.stage].kind != Stage::Kind::Scan) {
      return attached(walk, level, [&] {
        return under_guards(walk, level, 0, [&] { return inside(walk, level); });
      });
    }
    return under_guards(walk, level, 0,
                        [&] { return attached(walk, level, [&] { return inside(walk, level); }); });
  }

  template <typename Body>
  ir::Stmt under_guards(const Walk& walk, size_t level, size_t first, const Body& body) {
    for (size_t i = first; i < walk.nest.guards.size(); ++i) {
      const Guard& guard = walk.nest.guards[i];
      if (level_of(walk, guard) != level || (guard.is_reduce && walk.part == Part::Init)) continue;
      std::vector<ir::Stmt> before;
      const ir::Expr condition =
          innermost_.lowered(walk, ir::substitute(guard.condition, walk.renamed), before);
      // Mostly a split whose factor divides, or a guard that one further out implies.
      if (analysis::can_prove(condition, facts_)) continue;
      facts_.push_condition(condition);
      ir::Stmt inner = under_guards(walk, level, i + 1, body);
      facts_.pop();
      before.push_back(ir::If::make(condition, std::move(inner), nullptr, true));
      return ir::Block::make(std::move(before));
    }
    return body();
  }

  /// Inside of what all threads do together, since all of them wait there.
  size_t level_of(const Walk& walk, const Guard& guard) const {
    const size_t inside =
        std::max(loops_for_all_threads(walk.stage), loops_for_reducing_threads(walk.stage));
    if (guard.level >= inside) return guard.level;
    return walk.part == Part::Init ? std::max(guard.level, walk.nest.first_reduce() + 1) : inside;
  }

  /// How many loops of a stage stand around what one of the threads of its reduction adds up; 0
  /// where one thread reduces.
  size_t loops_for_reducing_threads(StageId id) const {
    const size_t threads = reducing_threads(graph_, plan_, id, target_);
    if (threads == 0) return 0;
    size_t loops = plan_.nests[id].first_reduce();
    for (size_t found = 0; found < threads; ++loops)
      found += plan_.nests[id].loops[loops].is_elided ? 0 : 1;
    return loops;
  }

  /// How many loops of a stage stand around what its threads fill or reduce together.
  size_t loops_for_all_threads(StageId id) const {
    size_t loops = 0;
    if (!traits_of(target_).has_threads) return loops;
    for (const StageId inner : graph_.order) {
      const Stage& stage = graph_[inner];
      const bool is_inside =
          stage.is_live && stage.attach.kind == Attach::Kind::At && stage.attach.stage == id;
      if (!is_inside) continue;
      const bool is_together = is_filled_by_threads(graph_, plan_, inner, target_) ||
                               loops_for_all_threads(inner) > 0 ||
                               loops_for_reducing_threads(inner) > 0;
      if (!is_together) continue;
      loops = std::max(loops, loop_of_axis(plan_.nests[id], stage.attach.axis) + 1);
    }
    return loops;
  }

  template <typename Body>
  ir::Stmt attached(const Walk& walk, size_t level, const Body& body) {
    if (level == 0 || walk.part == Part::Init) return body();
    const AxisId axis = walk.nest.loops[level - 1].axis;
    const std::vector<StageId> here = attached_at(graph_, walk.stage, axis);
    std::vector<ir::Stmt> nests;
    for (const StageId id : here)
      nests.push_back(nest_of(id));
    ir::Stmt result = body();
    std::vector<LateNest> late;
    std::vector<ir::Stmt> put;
    int64_t copies = 0;
    for (size_t i = here.size(); i-- > 0;) {
      if (is_filled_by_block(here[i])) {
        for_threads_.push_back(here[i]);
        nests[i] = by_all_threads(here[i], nests[i]);
      }
      if (is_copied_late(walk.stage, axis, here[i])) {
        late.insert(late.begin(), {nests[i], graph_[here[i]].name});
        copies = late_copies(graph_, here[i], target_);
        continue;
      }
      const bool is_early = is_fetched_early(walk.stage, axis, here[i]);
      if (is_early) nests[i] = fetched_early(walk, level, here[i], nests[i]);
      if (is_early && !allocates_here(here[i])) {
        put.insert(put.begin(), nests[i]);
        continue;
      }
      result = ir::Block::make({nests[i], result});
      if (allocates_here(here[i])) result = allocate(here[i], result);
    }
    // What waited in registers is stored before threads wait for copies of the others, so that they
    // wait once.
    if (!late.empty()) put.push_back(fetched_late(walk, level, late, copies));
    put.push_back(std::move(result));
    return ir::Block::make(std::move(put));
  }

  /// Whether the part of a later iteration is copied in the background.
  bool is_copied_late(StageId consumer, AxisId axis, StageId id) const {
    return is_fetched_early(consumer, axis, id) && late_copies(graph_, id, target_) > 0 &&
           plan_.storage.at({id, 0}).copy;
  }

  ir::Stmt fetched_late(const Walk& walk, size_t level, const std::vector<LateNest>& nests,
                        int64_t copies) {
    const Loop& loop = walk.nest.loops[level - 1];
    early_.push_back(fetch_late(nests, copies, loop.var, loop.extent, threads_around(walk, level),
                                graph_.axes[loop.axis].name + " of " + graph_[walk.stage].name));
    return early_.back().next;
  }

  /// Whether a step pipelines the loop, and what is computed at it needs nothing else that is.
  bool is_fetched_early(StageId consumer, AxisId axis, StageId id) const {
    return traits_of(target_).has_threads && is_pipelined(graph_, consumer, axis) &&
           !reads_what_is_computed_at(graph_, id, consumer);
  }

  /// The nest of `id` in the loop before `level`: what of it stays there.
  ir::Stmt fetched_early(const Walk& walk, size_t level, StageId id, const ir::Stmt& nest) {
    const Loop& loop = walk.nest.loops[level - 1];
    if (loop.is_elided) return nest;
    const std::vector<ThreadsAround> threads = threads_around(walk, level);
    early_.push_back(fetch_early(nest, loop.var, loop.extent, threads, graph_[id].name,
                                 graph_.axes[loop.axis].name + " of " + graph_[walk.stage].name));
    return ir::Block::make({early_.back().put, early_.back().next});
  }

  /// The threads that the loop before `level` stands in.
  std::vector<ThreadsAround> threads_around(const Walk& walk, size_t level) const {
    std::vector<const Loop*> loops = loops_around(graph_, plan_, walk.stage);
    for (size_t i = 0; i + 1 < level; ++i)
      loops.push_back(&walk.nest.loops[i]);
    std::vector<ThreadsAround> threads;
    for (const Loop* around : loops) {
      const ir::ThreadAxis thread = graph_.axes[around->axis].thread;
      if (is_thread_index(thread) && !around->is_elided)
        threads.push_back({around->var, around->extent, thread});
    }
    return threads;
  }

  /// Whether the iterations of the loop around an attached stage share its memory.
  bool outlives_iteration(StageId id) const {
    const auto storage = plan_.storage.find({id, 0});
    if (storage == plan_.storage.end()) return false;
    return storage->second.copy || plan_.nests[id].rolling >= 0;
  }

  /// Whether the memory of an attached stage stands inside the loop where the stage does.
  bool allocates_here(StageId id) const {
    return !outlives_iteration(id) && !is_filled_by_block(id);
  }

  /// Whether all threads of the block fill the stage together, outside of whose loops its memory
  /// stands.
  bool is_filled_by_block(StageId id) const {
    return !is_of_warp(graph_[id]) && is_filled_by_threads(graph_, plan_, id, target_);
  }

  /// A stage that threads fill together: once for those axes that none of its own loops are bound
  /// to. Each loop over threads stands inside one over the same threads. Run one after the other,
  /// every thread fills all of the memory; on a GPU the inner index is the outer one.
  ir::Stmt by_all_threads(StageId id, ir::Stmt nest) const {
    const auto& own = plan_.nests[id].loops;
    for (const Loop* around : loops_around(graph_, plan_, id)) {
      const ir::ThreadAxis thread = graph_.axes[around->axis].thread;
      const bool is_bound = std::any_of(own.begin(), own.end(), [&](const Loop& loop) {
        return graph_.axes[loop.axis].thread == thread;
      });
      if (!is_thread_index(thread) || is_bound) continue;
      const ir::VarRef var = ir::Var::make(std::string(ir::name_of(thread)));
      nest = ir::For::make(var, ir::index(1), ir::LoopKind::ThreadIndex, thread, std::move(nest));
    }
    return nest;
  }

  ir::Stmt inside(const Walk& walk, size_t level) {
    const bool starts_reduction = graph_[walk.stage].is_reduction() && walk.part == Part::Whole &&
                                  level == walk.nest.first_reduce();
    if (!starts_reduction) return rest(walk, level);
    if (reducing_threads(graph_, plan_, walk.stage, target_) > 0)
      return reduced_by_threads(walk, level);
    Walk init{walk.stage, walk.nest, Part::Init};
    for (size_t i = level; i < walk.nest.loops.size(); ++i) {
      const ir::VarRef& var = walk.nest.loops[i].var;
      // A variable has one loop: passes tell loops by it.
      init.renamed[var] = ir::Var::make(var->name);
    }
    ir::Stmt first = rest(init, level);
    return ir::Block::make({first, rest(Walk{walk.stage, walk.nest, Part::Update}, level)});
  }

  /// The same where threads reduce a part each.
  ir::Stmt reduced_by_threads(const Walk& walk, size_t level) {
    ThreadReduction threads(graph_, plan_, walk.stage, target_);
    threads.set_last(innermost_.result_of_threads(walk, threads));
    const Walk parts{walk.stage, walk.nest, Part::Update, walk.renamed, &threads};
    std::vector<ir::Stmt> stmts = {rest(parts, level)};
    for (ir::Stmt& step : threads.combine_parts())
      stmts.push_back(std::move(step));
    ir::Stmt all = ir::Block::make(std::move(stmts));
    for (const ir::BufferRef& buffer : threads.shared()) {
      if (threads_around_ > 0) {
        shared_buffers_.push_back(buffer);
      } else {
        all = ir::Allocate::make(buffer, std::move(all));
      }
    }
    // What threads do one after the other is one launch.
    return bound_around_ > 0 ? all : in_one_block(std::move(all));
  }

  /// The loop at `level` and all inside it.
  ir::Stmt rest(const Walk& walk, size_t level) {
    if (level == walk.nest.loops.size()) return innermost_.iteration(walk);
    const Loop& loop = walk.nest.loops[level];
    if (loop.is_reduce && walk.part == Part::Init) return guarded(walk, level + 1);
    if (graph_[walk.stage].kind == Stage::Kind::Scan) {
      // Inits run before the first step, inside the loops that time shares with them.
      const bool first_of_time = level == 0 || walk.nest.loops[level - 1].is_shared;
      if (first_of_time && !loop.is_shared) {
        return ir::Block::make({inits_of(walk.stage), loop_of(walk, loop, level)});
      }
      return loop_of(walk, loop, level);
    }
    if (loop.is_elided || loop.is_shared) {
      return with_pragmas(graph_.axes[loop.axis], guarded(walk, level + 1));
    }
    return loop_of(walk, loop, level);
  }

  ir::Stmt loop_of(const Walk& walk, const Loop& loop, size_t level) {
    if (loop.is_elided) return with_pragmas(graph_.axes[loop.axis], guarded(walk, level + 1));
    const auto renamed = walk.renamed.find(loop.var);
    const ir::VarRef var =
        renamed == walk.renamed.end() ? loop.var : ir::VarRef(ir::as<ir::Var>(renamed->second));
    std::vector<ir::Stmt> before;
    const ir::Expr extent =
        innermost_.lowered(walk, ir::substitute(loop.extent, walk.renamed), before);
    const ir::ThreadAxis thread = graph_.axes[loop.axis].thread;
    const bool is_threads = is_thread_index(thread);
    const bool is_bound = is_threads || ir::is_block_axis(thread);
    threads_around_ += is_threads ? 1 : 0;
    bound_around_ += is_bound ? 1 : 0;
    facts_.push_range(var, ir::index(0), extent);
    const size_t early = early_.size();
    ir::Stmt body = guarded(walk, level + 1);
    const bool is_init = walk.part == Part::Init;
    if (!is_init && traits_of(target_).has_vectors) {
      body = ir::Block::make(
          {prefetches_at(graph_, plan_, walk.stage, loop.axis, facts_), std::move(body)});
    }
    facts_.pop();
    threads_around_ -= is_threads ? 1 : 0;
    bound_around_ -= is_bound ? 1 : 0;
    before.push_back(loop_with_checks(walk, loop, var, extent, std::move(body)));
    ir::Stmt result = ir::Block::make(std::move(before));
    for (; early_.size() > early; early_.pop_back()) {
      result = ir::Block::make({early_.back().first, std::move(result)});
      for (const ir::BufferRef& registers : early_.back().registers)
        result = ir::Allocate::make(registers, result);
    }
    if (is_threads && threads_around_ == 0) result = with_shared_memory(std::move(result));
    if (is_init) return result;
    // Memory that iterations share is there for all of them.
    for (const StageId id : attached_at(graph_, walk.stage, loop.axis)) {
      if (outlives_iteration(id) && !is_filled_by_block(id))
        result = allocate(id, std::move(result));
    }
    return result;
  }

  /// The outermost loop over threads, inside the memory that they fill together, which is one of a
  /// block: without any, of a single one.
  ir::Stmt with_shared_memory(ir::Stmt threads) {
    if (for_threads_.empty() && shared_buffers_.empty()) return threads;
    const bool has_blocks = has_blocks_inside(threads);
    for (const StageId id : std::exchange(for_threads_, {})) {
      if (has_blocks) refuse_memory_of_many_blocks(id);
      threads = allocate(id, std::move(threads));
    }
    for (const ir::BufferRef& buffer : std::exchange(shared_buffers_, {}))
      threads = ir::Allocate::make(buffer, std::move(threads));
    return has_blocks || bound_around_ > 0 ? threads : in_one_block(std::move(threads));
  }

  static bool has_blocks_inside(const ir::Stmt& threads) {
    return std::ranges::any_of(ir::thread_loops(threads), [](const ir::For* loop) {
      return ir::is_block_axis(loop->thread) && !ir::is_const(loop->extent, 1);
    });
  }

  [[noreturn]] void refuse_memory_of_many_blocks(StageId id) const {
    refuse_scope(graph_[id],
                 "loops over blockIdx stand inside of its loops over threadIdx, so that no block "
                 "could fill it for itself; reorder the loops so that blockIdx comes first");
  }

  static ir::Stmt in_one_block(ir::Stmt body) {
    return ir::For::make(ir::Var::make("blockIdx.x"), ir::index(1), ir::LoopKind::ThreadIndex,
                         ir::ThreadAxis::BlockX, std::move(body));
  }

  ir::Stmt loop_with_checks(const Walk& walk, const Loop& loop, const ir::VarRef& var,
                            const ir::Expr& extent, ir::Stmt body) {
    const Axis& axis = graph_.axes[loop.axis];
    // Nothing is hoisted out of a loop over threads: what stands before it would not run in a
    // thread.
    if (axis.thread != ir::ThreadAxis::None) {
      return with_pragmas(axis,
                          ir::For::make(var, extent, axis.loop_kind, axis.thread, std::move(body)));
    }
    const HoistedChecks hoisted = hoist_checks(body, var);
    ir::Stmt nest =
        with_pragmas(axis, ir::For::make(var, extent, axis.loop_kind, axis.thread, hoisted.rest));
    if (axis.intrinsic && walk.part != Part::Init && traits_of(target_).has_vectors) {
      nest = ir::Tensorize::make(*axis.intrinsic, std::move(nest));
    }
    if (hoisted.checks.empty()) return nest;
    ir::Stmt checks = ir::Block::make(hoisted.checks);
    const ir::Expr runs = ir::less(ir::index(0), extent);
    if (!analysis::can_prove(runs, facts_)) checks = ir::If::make(runs, std::move(checks));
    return ir::Block::make({std::move(checks), std::move(nest)});
  }

  ir::Stmt inits_of(StageId scan) {
    std::vector<ir::Stmt> nests;
    std::unordered_set<StageId> done;
    for (const TensorId init : graph_[scan].as_scan.init) {
      if (done.insert(init.stage).second) nests.push_back(nest_of(init.stage));
    }
    return ir::Block::make(std::move(nests));
  }

  /// Memory for the outputs of a stage that are no arguments, around the statements that use it.
  ir::Stmt allocate(StageId id, ir::Stmt body) {
    const Stage& stage = graph_[id];
    for (uint32_t output = static_cast<uint32_t>(stage.types.size()); output-- > 0;) {
      const TensorId tensor{id, output};
      if (graph_.is_parameter(tensor) || (stage.role.is_update && graph_.scan_output_of(tensor)))
        continue;
      body = ir::Allocate::make(plan_.storage.at(tensor).buffer, std::move(body));
    }
    return body;
  }

  const StageGraph& graph_;
  const NestPlan& plan_;
  const TargetKind target_;
  analysis::Facts facts_;
  Innermost innermost_;
  int threads_around_ = 0;  // loops over threads around what is being emitted
  int bound_around_ = 0;    // the same with those over blocks
  // What still needs its memory outside of these.
  std::vector<StageId> for_threads_;
  std::vector<ir::BufferRef> shared_buffers_;
  std::vector<EarlyFetch> early_;  // whose registers and first values stand before a loop around
};

}  // namespace

ir::Stmt emit_loops(const StageGraph& graph, const NestPlan& plan, TargetKind target,
                    std::vector<RuntimeCheck>& checks) {
  return Emitter(graph, plan, target, checks).kernel();
}

}  // namespace kiln::schedule
