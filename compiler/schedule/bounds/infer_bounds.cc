// Bounds inference, consumers first: what a producer computes at a loop of its consumer is the box
// around all that is read while that loop stands still.
//
//   B at C's loop y; C[y, x] reads B[y - 1 .. y + 1, x]  ->  B computes rows y - 1 .. y + 1 there
//
// Halide's and TVM's method (Ragan-Kelley et al., PLDI 2013, 4.2). Boxes are found in
// required_region.cc.
#include "compiler/schedule/bounds/infer_bounds.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/required_region.h"
#include "compiler/schedule/bounds/rolling.h"
#include "compiler/schedule/bounds/scan_loops.h"
#include "compiler/schedule/bounds/scan_window.h"
#include "compiler/schedule/bounds/scopes.h"
#include "compiler/schedule/bounds/storage_layout.h"

namespace kiln::schedule {
namespace {

using analysis::Facts;

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
  if (stage.attach.kind == Attach::Kind::At) return region_needed(graph, plan, id, sizes, target);
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
