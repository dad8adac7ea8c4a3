// Bounds inference, consumers first: what a producer computes at a loop of its consumer is the box
// around all that is read while that loop stands still.
//
//   B at C's loop y; C[y, x] reads B[y - 1 .. y + 1, x]  ->  B computes rows y - 1 .. y + 1 there
//
// Halide's and TVM's method (Ragan-Kelley et al., PLDI 2013, 4.2). A box that would depend on loops
// further in, or on data, becomes the whole dimension.
#include "compiler/schedule/bounds/infer_bounds.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/axis_arithmetic.h"
#include "compiler/schedule/bounds/rolling.h"
#include "compiler/schedule/bounds/scan_loops.h"
#include "compiler/schedule/bounds/scan_window.h"
#include "compiler/schedule/bounds/storage_layout.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

using analysis::Facts;
using analysis::Interval;

/// Whether an expression uses variables of `vars` only.
class UsesOnly : public ir::Visitor {
 public:
  explicit UsesOnly(const std::vector<ir::VarRef>& vars) : vars_(vars) {}
  bool holds = true;

 private:
  using Visitor::visit;
  void visit(const ir::Var& var) override {
    holds = holds && std::find(vars_.begin(), vars_.end(), ir::VarRef(&var)) != vars_.end();
  }
  void visit(const ir::TensorRead&) override { holds = false; }
  const std::vector<ir::VarRef>& vars_;
};

bool uses_only(const ir::Expr& expr, const std::vector<ir::VarRef>& vars) {
  UsesOnly walk(vars);
  walk(expr);
  return walk.holds;
}

/// Grows `whole` so that it covers `part`; a null bound is unknown.
void unite(Interval& whole, const Interval& part, const Facts& facts) {
  if (!whole.min || !part.min) {
    whole = {};
    return;
  }
  // A proof keeps min and max out of the loop bounds, which every later pass would have to see
  // through.
  const auto pick = [&](const ir::Expr& a, const ir::Expr& b, bool smaller) {
    if (analysis::can_prove(ir::less_equal(a, b), facts)) return smaller ? a : b;
    if (analysis::can_prove(ir::less_equal(b, a), facts)) return smaller ? b : a;
    return smaller ? ir::min(a, b) : ir::max(a, b);
  };
  whole = {pick(whole.min, part.min, true), pick(whole.max, part.max, false)};
}

/// What one attached stage must compute each time.
class RequiredRegion {
 public:
  RequiredRegion(const StageGraph& graph, const NestPlan& plan, StageId stage, const Facts& sizes,
                 TargetKind target)
      : graph_(graph), plan_(plan), stage_(stage), facts_(sizes) {
    const bool for_threads = is_filled_by_threads(graph, plan, stage, target);
    is_filled_ = for_threads;
    for (const Loop* loop : loops_around(graph, plan, stage)) {
      facts_.push_range(loop->var, ir::index(0), loop->extent);
      // Threads that fill a buffer together need the union of what each of them reads, all its
      // virtual threads.
      const ir::ThreadAxis thread = graph.axes[loop->axis].thread;
      const bool is_filling =
          is_of_warp(graph[stage]) ? thread == ir::ThreadAxis::ThreadX : is_thread_index(thread);
      if (for_threads && (is_filling || thread == ir::ThreadAxis::VThread)) continue;
      fixed_.insert(loop->var);
      around_.push_back({loop->var, ir::index(0), loop->extent});
    }
  }

  std::vector<Region> find() {
    const size_t dimensions = graph_[stage_].data.size();
    std::vector<std::optional<Interval>> bounds(dimensions);
    for (const StageId reader : readers_of(graph_, stage_)) {
      std::vector<Facts::Range> inner;
      const ir::Substitution values = values_in(reader, inner);
      add_ranges(reader, values, inner);
      for (const ir::Expr& body : expanded_bodies(graph_, reader)) {
        for_each_read(body, [&](const ir::TensorRead& read) {
          if (read.stage != stage_) return;
          for (size_t d = 0; d < dimensions; ++d) {
            add(bounds[d], ir::substitute(read.indices[d], values), inner);
          }
        });
      }
    }
    std::vector<Region> region;
    for (size_t d = 0; d < dimensions; ++d)
      region.push_back(region_of(bounds[d], d));
    return region;
  }

 private:
  /// Root axes of the reader that stand still or move in part, in terms of loops. The others stay
  /// variables with a range of their own, which gives tighter bounds; so do parts of a split, whose
  /// ranges are added to `ranges`: c.inner of c.outer*8 + c.inner is 0 .. 7 whatever loops it is
  /// made of.
  ir::Substitution values_in(StageId reader, std::vector<Facts::Range>& ranges) const {
    const Stage& stage = graph_[reader];
    const Nest& nest = plan_.nests[reader];
    ir::Substitution values;
    for (const auto& [root, value] : nest.values) {
      if (!moves_freely(reader, value) || overhangs(reader, root, value)) values[root] = value;
    }
    if (stage.kind != Stage::Kind::Compute) return values;
    AxisArithmetic axes(graph_, stage, nest.region);
    for (const Loop& loop : nest.loops)
      axes.use_variable(loop.axis, loop.var);
    for (const Relation& relation : stage.loops.relations) {
      const Split* split = std::get_if<Split>(&relation);
      if (split == nullptr) continue;
      for (const AxisId part : {split->outer, split->inner}) {
        const ir::Expr offset = axes.offset(part);
        const ir::Expr extent = axes.extent(part);
        const bool is_made_of_loops =
            ir::as<ir::Var>(offset) == nullptr && !has_read(extent) && moves_freely(reader, offset);
        if (!is_made_of_loops) continue;
        const ir::VarRef var = ir::Var::make(graph_.axes[part].name);
        axes.use_variable(part, var);
        ranges.push_back({var, ir::index(0), extent});
      }
    }
    for (const auto* roots : {&stage.data, &stage.reduce}) {
      for (const AxisId root : *roots) {
        const auto value = values.find(graph_.axes[root].value);
        if (value != values.end()) value->second = axes.value(root);
      }
    }
    return values;
  }

  /// Whether the loops of a root axis, one tile of threads, cover a little more than all of it.
  bool overhangs(StageId reader, const ir::VarRef& root, const ir::Expr& value) const {
    if (!is_filled_) return false;
    const Stage& stage = graph_[reader];
    const auto axis = std::ranges::find_if(
        stage.data, [&](AxisId data) { return graph_.axes[data].value == root; });
    if (axis == stage.data.end()) return false;
    std::vector<Facts::Range> ranges;
    for (const Loop& loop : plan_.nests[reader].loops)
      ranges.push_back({loop.var, ir::index(0), loop.extent});
    const Interval covered = analysis::bounds_of(value, ranges, facts_);
    if (!covered.min || !covered.max) return false;
    const auto dimension = static_cast<size_t>(axis - stage.data.begin());
    return is_nearly_whole(plan_.nests[reader].region[dimension].extent,
                           analysis::simplify(covered.max - covered.min + 1, facts_));
  }

  bool moves_freely(StageId reader, const ir::Expr& value) const {
    bool uses_own_loop = false;
    for (const Loop& loop : plan_.nests[reader].loops) {
      if (!ir::uses_var(value, loop.var)) continue;
      if (fixed_.contains(loop.var)) return false;
      uses_own_loop = true;
    }
    return uses_own_loop;
  }

  /// Those of what moves inside: loops, and root axes that are no loops' values.
  void add_ranges(StageId reader, const ir::Substitution& values,
                  std::vector<Facts::Range>& ranges) const {
    // What data says is not known here: its type alone would make a box of two thousand million.
    const auto add_range = [&](const ir::VarRef& var, const ir::Expr& minimum,
                               const ir::Expr& extent) {
      if (!has_read(minimum) && !has_read(extent))
        ranges.push_back({var, minimum, minimum + extent});
    };
    const auto add_loop = [&](const Loop& loop) {
      if (!fixed_.contains(loop.var)) add_range(loop.var, ir::index(0), loop.extent);
    };
    for (const Loop* loop : loops_around(graph_, plan_, reader))
      add_loop(*loop);
    const Nest& nest = plan_.nests[reader];
    for (const Loop& loop : nest.loops)
      add_loop(loop);
    const Stage& stage = graph_[reader];
    for (size_t d = 0; d < stage.data.size(); ++d) {
      const ir::VarRef& root = graph_.axes[stage.data[d]].value;
      if (!moves_freely(reader, nest.values.at(root))) continue;
      add_range(root, nest.region[d].min, nest.region[d].extent);
    }
    for (const AxisId axis : stage.reduce) {
      const ir::VarRef& root = graph_.axes[axis].value;
      if (!moves_freely(reader, nest.values.at(root))) continue;
      add_range(root, ir::substitute(graph_.axes[axis].minimum, values),
                ir::substitute(graph_.axes[axis].extent, values));
    }
  }

  void add(std::optional<Interval>& bounds, const ir::Expr& index,
           const std::vector<Facts::Range>& inner) {
    const Interval part = has_read(index) ? Interval{} : analysis::bounds_of(index, inner, facts_);
    const Interval known = part.min && part.max ? part : Interval{};
    if (!bounds) {
      bounds = known;
    } else {
      unite(*bounds, known, facts_);
    }
  }

  Region region_of(const std::optional<Interval>& bounds, size_t dimension) {
    const ir::Expr& shape = graph_[stage_].shapes[0][dimension];
    const Region whole{ir::index(0), shape, true};
    if (!bounds || !bounds->min) return whole;
    std::vector<ir::VarRef> known = graph_.sizes;
    known.insert(known.end(), fixed_.begin(), fixed_.end());
    const ir::Expr min = analysis::simplify(bounds->min, facts_);
    if (!uses_only(min, known)) return whole;

    // Memory and loops want an extent of sizes alone: the most that any iteration around needs.
    ir::Expr extent = analysis::simplify(bounds->max - min + 1, facts_);
    if (!uses_only(extent, graph_.sizes)) {
      const Interval widest = analysis::bounds_of(extent, around_, facts_);
      if (!widest.max || !uses_only(widest.max, graph_.sizes)) return whole;
      extent = analysis::simplify(widest.max, facts_);
    }
    if (!analysis::can_prove(ir::less_equal(ir::index(0), extent), facts_)) return whole;
    if (analysis::can_prove(ir::less_equal(shape, extent), facts_) &&
        !is_nearly_whole(shape, extent))
      return whole;
    return {min, extent, false};
  }

  /// A tile of threads that is a little larger than all there is: its threads fill all of it, so
  /// that no guard stands among the products (fill_tiles).
  bool is_nearly_whole(const ir::Expr& shape, const ir::Expr& extent) const {
    const std::optional<int64_t> tile = ir::as_const_int(extent);
    const std::optional<int64_t> there = ir::as_const_int(shape);
    return is_filled_ && tile && there && *there < *tile && *tile < 2 * *there;
  }

  const StageGraph& graph_;
  const NestPlan& plan_;
  const StageId stage_;
  bool is_filled_ = false;  // by threads
  Facts facts_;
  std::unordered_set<ir::VarRef> fixed_;
  std::vector<Facts::Range> around_;
};

std::vector<Region> whole_region(const Stage& stage) {
  std::vector<Region> region;
  for (const ir::Expr& extent : stage.shapes[0])
    region.push_back({ir::index(0), extent, true});
  return region;
}

/// A scatter runs over its own axes, whatever its shape is.
std::vector<Region> region_of_axes(const StageGraph& graph, const Stage& scatter) {
  std::vector<Region> region;
  for (const AxisId axis : scatter.data)
    region.push_back({ir::index(0), graph.axes[axis].extent, true});
  return region;
}

/// An update computes one time step, whole.
std::vector<Region> update_region(const StageGraph& graph, const NestPlan& plan,
                                  const Stage& stage) {
  std::vector<Region> region = whole_region(stage);
  region[static_cast<size_t>(stage.time_dimension)] = {
      time_value(graph, plan, static_cast<StageId>(stage.role.cell_of)), ir::index(1), false};
  return region;
}

/// What a stage computes each time its loops run.
std::vector<Region> required_region(const StageGraph& graph, const NestPlan& plan, StageId id,
                                    const Facts& sizes, TargetKind target) {
  const Stage& stage = graph[id];
  if (stage.role.is_update) return update_region(graph, plan, stage);
  if (stage.attach.kind == Attach::Kind::At)
    return RequiredRegion(graph, plan, id, sizes, target).find();
  return whole_region(stage);
}

/// Shared loops run over all columns, wherever the stage that they are shared with stands. So in
/// the dimensions that they cut a nest covers the whole tensor, of which each thread keeps its
/// part.
std::vector<Region> region_of_loops(const StageGraph& graph, StageId id,
                                    const std::vector<Region>& required,
                                    const std::vector<Loop>& shared, const Facts& sizes) {
  if (shared.empty()) return required;
  std::vector<Region> region = required;
  std::vector<Region> whole = whole_region(graph[id]);
  const auto time = static_cast<size_t>(graph[id].time_dimension);
  whole[time] = required[time];
  const Nest trial = make_nest(graph, id, whole, shared, sizes);
  for (size_t d = 0; d < region.size(); ++d) {
    if (d == time) continue;
    const bool is_cut = std::any_of(shared.begin(), shared.end(), [&](const Loop& loop) {
      return ir::uses_var(trial.offsets[d], loop.var);
    });
    if (is_cut) region[d] = whole[d];
  }
  return region;
}

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

/// What all threads around a buffer see of it: on a GPU, one inside a thread is that thread's own,
/// and one inside a block is shared by its threads. On a CPU a scope that is named says nothing.
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

/// `required` is the part of an attached stage that is kept; of an output all is.
void add_storage(const StageGraph& graph, NestPlan& plan, StageId id,
                 const std::vector<Region>& required, TargetKind target) {
  const Stage& stage = graph[id];
  for (uint32_t output = 0; output < stage.types.size(); ++output) {
    const TensorId tensor{id, output};
    if (plan.storage.contains(tensor)) continue;
    Storage storage;
    std::vector<ir::Expr> shape = stage.shapes[output];
    if (stage.attach.kind == Attach::Kind::At && !graph.is_parameter(tensor)) {
      for (size_t d = 0; d < shape.size(); ++d) {
        const Region& region = required[d];
        shape[d] = region.extent;
        const bool is_rolling = plan.nests[id].rolling == static_cast<int>(d);
        storage.origin.push_back(region.is_whole || is_rolling ? nullptr : region.min);
      }
      storage.rolling = plan.nests[id].rolling;
    } else {
      storage.origin.resize(shape.size());
    }
    storage.layout = stage.memory.layout;
    shape = extents_in_layout(stage, shape, facts_of_sizes(graph));
    std::vector<ir::Expr> strides = aligned_strides(stage, shape, facts_of_sizes(graph));
    const MemoryInTurn memory = memory_in_turn(graph, plan, id, target);
    if ((storage.copy = memory.copy)) {
      if (!strides.empty()) strides.insert(strides.begin(), strides[0] * shape[0]);
      shape.insert(shape.begin(), ir::index(memory.copies));
    }
    const ir::Scope scope = scope_of(graph, plan, id, target);
    // Other memory has no banks that threads share, nor has that of a CPU.
    const bool has_banks = scope == ir::Scope::Shared && traits_of(target).has_threads;
    storage.buffer =
        ir::Buffer::make(graph.tensor_name(tensor), stage.types[output], std::move(shape), scope,
                         std::move(strides), has_banks ? stage.memory.swizzle : 0);
    plan.storage[tensor] = storage;
  }
}

/// State, init and update of a scan all lie in its output.
void add_scan_storage(const StageGraph& graph, NestPlan& plan, StageId id, TargetKind target,
                      const Facts& sizes) {
  add_storage(graph, plan, id, {}, target);
  const Stage& scan = graph[id];
  const auto time = static_cast<size_t>(scan.time_dimension);
  for (uint32_t output = 0; output < scan.types.size(); ++output) {
    Storage& storage = plan.storage.at({id, output});
    // Only the last steps are kept: an index of time is taken modulo their number.
    if (const std::optional<int64_t> window = window_of(graph, id, output, sizes)) {
      std::vector<ir::Expr> shape = scan.shapes[output];
      shape[time] = ir::index(*window);
      storage.buffer = ir::Buffer::make(storage.buffer->name, scan.types[output], std::move(shape),
                                        storage.buffer->scope);
      storage.rolling = scan.time_dimension;
    }
    const Storage whole = storage;
    plan.storage[scan.as_scan.state[output]] = whole;
    plan.storage[scan.as_scan.update[output]] = whole;
    Storage& init = plan.storage[scan.as_scan.init[output]] = whole;
    if (scan.as_scan.is_reverse) {
      // Its init is counted from 0, but gives the last steps.
      init.origin[time] = graph.axes[scan.as_scan.time].minimum - steps_of(graph, id);
    }
  }
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

size_t loop_of_axis(const Nest& nest, AxisId axis) {
  const auto at = std::find_if(nest.loops.begin(), nest.loops.end(),
                               [&](const Loop& loop) { return loop.axis == axis; });
  KILN_CHECK(at != nest.loops.end());
  return static_cast<size_t>(at - nest.loops.begin());
}

std::vector<const Loop*> loops_around(const StageGraph& graph, const NestPlan& plan, StageId id) {
  const Stage& stage = graph[id];
  std::vector<const Loop*> loops;
  if (stage.role.is_init) {
    for (const Loop& loop : plan.nests[stage.role.init_of].loops) {
      if (loop.is_shared) loops.push_back(&loop);
    }
    return loops;
  }
  if (stage.attach.kind != Attach::Kind::At) return loops;
  loops = loops_around(graph, plan, stage.attach.stage);
  const Nest& nest = plan.nests[stage.attach.stage];
  const bool is_scan = graph[stage.attach.stage].kind == Stage::Kind::Scan;
  for (size_t i = 0; i <= loop_of_axis(nest, stage.attach.axis); ++i) {
    if (is_scan || !nest.loops[i].is_shared) loops.push_back(&nest.loops[i]);
  }
  return loops;
}

NestPlan infer_bounds(const StageGraph& graph, TargetKind target) {
  const Facts sizes = facts_of_sizes(graph);
  NestPlan plan;
  plan.nests.resize(graph.stages.size());
  for (auto at = graph.order.rbegin(); at != graph.order.rend(); ++at) {
    const StageId id = *at;
    const Stage& stage = graph[id];
    if (!stage.is_live || stage.attach.kind == Attach::Kind::Inline) continue;
    if (stage.kind == Stage::Kind::Scan) {
      plan.nests[id] = make_scan_nest(graph, id, sizes);
      add_scan_storage(graph, plan, id, target, sizes);
      continue;
    }
    if (stage.kind == Stage::Kind::Placeholder) {
      if (graph.is_parameter({id, 0})) add_storage(graph, plan, id, {}, target);
      continue;
    }
    if (stage.kind == Stage::Kind::Scatter) {
      plan.nests[id] = make_nest(graph, id, region_of_axes(graph, stage), {}, sizes);
      add_storage(graph, plan, id, {}, target);
      // A scatter updates its base in place.
      plan.storage[stage.as_scatter.base] = plan.storage.at({id, 0});
      continue;
    }
    const std::vector<Region> required = required_region(graph, plan, id, sizes, target);
    const std::vector<Loop> shared = shared_loops_of(graph, plan, id);
    plan.nests[id] =
        make_nest(graph, id, region_of_loops(graph, id, required, shared, sizes), shared, sizes);
    plan.nests[id].rolling = roll(graph, plan, id, sizes);
    add_storage(graph, plan, id, required, target);
  }
  return plan;
}

}  // namespace kiln::schedule
