#include "compiler/autoschedule/stage_schedules.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/scatters.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kVectorBytes = 128;  // two or four registers, so that latencies overlap
constexpr int64_t kScanColumnBytes = 256;
constexpr int64_t kTileRows = 8;
constexpr int64_t kDotRows = 4;
constexpr int64_t kManyIterations = 64;
constexpr int64_t kStepWork = 256 * 1024;

std::optional<int64_t> constant_extent(const StageGraph& graph, AxisId axis) {
  return ir::as_const_int(analysis::simplify(graph.axes[axis].extent));
}

/// Elements of a vector loop: `bytes` of the widest output, or the largest power of two that fits
/// an extent known to be smaller. Nothing when that is not worth a vector.
std::optional<int64_t> vector_factor(const StageGraph& graph, StageId stage, AxisId axis,
                                     int64_t bytes) {
  int64_t widest = 1;
  for (const DType type : graph[stage].types) {
    widest = std::max<int64_t>(widest, size_of(type));
  }
  int64_t factor = bytes / widest;
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  while (extent && factor > *extent)
    factor /= 2;
  if (factor < 4) return std::nullopt;
  return factor;
}

/// Whether the last dimension is time: then neighbours in memory are not computed together.
bool has_time_last(const Stage& stage) {
  return !stage.data.empty() && stage.is_time(stage.data.size() - 1);
}

/// Marks outer loops until together they have many iterations, as far as one knows.
void parallel_outer(const Chooser& chooser, StageId stage, const std::vector<AxisId>& loops) {
  int64_t iterations = 1;
  const size_t known = chooser.graph.kernel->definition.axes.size();
  for (const AxisId loop : loops) {
    if (iterations >= kManyIterations) return;
    const std::optional<int64_t> extent =
        loop < known ? constant_extent(chooser.graph, loop) : std::nullopt;
    if (extent == 1) continue;
    chooser.steps.parallel(stage, loop);
    iterations = std::min(kManyIterations, extent.value_or(kManyIterations)) * iterations;
  }
}

/// Whether one step of a stage inside a scan is worth several cores: they are woken at each.
bool is_worth_waking(const StageGraph& graph, StageId stage) {
  return graph[stage].is_reduction() && constant_work(graph, stage).value_or(0) >= kStepWork;
}

/// Whether all steps of a scan together are worth several cores.
bool is_large_scan(const StageGraph& graph, StageId scan) {
  const std::optional<int64_t> work = constant_work(graph, graph[scan].update[0].stage);
  const std::optional<int64_t> steps = constant_extent(graph, graph[scan].time);
  return !work || !steps ||
         is_large_work(std::min(*work, int64_t{1} << 40) * std::clamp<int64_t>(*steps, 0, 1 << 20));
}

/// Whether the order in which a reduction combines may be changed. That a reducer of the user's own
/// allows it is a promise, which only explicit steps rely on.
bool may_reassociate(const Chooser& chooser, StageId stage) {
  for (const ir::Expr& body : chooser.graph[stage].bodies) {
    const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
    if (reduce != nullptr && reduce->how.reducer) return false;
  }
  if (!chooser.options.strict) return true;
  const std::vector<DType>& types = chooser.graph[stage].types;
  return std::none_of(types.begin(), types.end(), [](DType type) { return is_float(type); });
}

/// Vectors for a reduction inside of the expressions of a stage, where neighbours in memory are
/// reduced. One that shares its axis with another reduction has no axis that steps could name.
void vectorize_inside(const Chooser& chooser, StageId whole, StageId reduction) {
  const StageGraph& graph = chooser.graph;
  const AxisId innermost = graph[reduction].reduce.back();
  const bool has_id = innermost < graph.kernel->definition.axes.size();
  if (!has_id || !is_contiguous(graph, graph[reduction], innermost) ||
      is_strided(graph, graph[reduction], innermost) || has_dependent_extents(graph, reduction) ||
      has_indirect_reads(graph[reduction]) || !may_reassociate(chooser, reduction)) {
    return;
  }
  const std::optional<int64_t> factor = vector_factor(graph, reduction, innermost, kVectorBytes);
  if (!factor) return;
  const auto [chunks, lanes] = chooser.steps.split(whole, innermost, *factor);
  chooser.steps.vectorize(whole, lanes);
}

}  // namespace

void schedule_elementwise(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const Stage& stage = chooser.graph[id];
  std::vector<AxisId> outer = columns_of(stage);
  if (outer.empty()) return;
  const AxisId last = outer.back();
  outer.pop_back();
  const std::optional<int64_t> factor = vector_factor(chooser.graph, id, last, kVectorBytes);
  // A reduction for each element stands in the innermost loop, and has the vectors.
  const bool has_vectors = factor && !has_indirect_reads(stage) && !has_time_last(stage) &&
                           !is_used_inside(chooser.graph, id, last);
  if (has_vectors) {
    const auto [tiles, lanes] = chooser.steps.split(id, last, *factor);
    chooser.steps.vectorize(id, lanes);
    if (outer.empty()) outer.push_back(tiles);
  } else {
    outer.push_back(last);
  }
  if (may_be_parallel && is_large(chooser.graph, id)) parallel_outer(chooser, id, outer);
  for (const StageId reduction : reductions_inside(chooser.graph, id))
    vectorize_inside(chooser, id, reduction);
}

void schedule_reduction(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const Stage& stage = chooser.graph[id];
  const bool parallel = may_be_parallel && is_large(chooser.graph, id);
  std::vector<AxisId> outer = columns_of(stage);
  if (!has_dependent_extents(chooser.graph, id) && !has_indirect_reads(stage)) {
    const AxisId innermost = stage.reduce.back();
    const AxisId last = outer.empty() ? innermost : outer.back();
    // Where neighbours along both are neighbours in memory, as in a window that slides, data axes
    // are the longer ones, and keep the order of the reduction.
    const bool along_data = !outer.empty() && !has_time_last(stage) &&
                            is_contiguous(chooser.graph, stage, last) &&
                            (!is_contiguous(chooser.graph, stage, innermost) ||
                             !is_strided(chooser.graph, stage, last));
    const AxisId axis = along_data ? last : innermost;
    const bool allowed = along_data || (may_reassociate(chooser, id) &&
                                        is_contiguous(chooser.graph, stage, innermost));
    const std::optional<int64_t> factor = vector_factor(chooser.graph, id, axis, kVectorBytes);
    if (allowed && factor) {
      const auto [tiles, lanes] = chooser.steps.split(id, axis, *factor);
      if (along_data) {
        std::vector<AxisId> order = stage.reduce;
        order.push_back(lanes);
        chooser.steps.reorder(id, order);
        outer.back() = tiles;
      }
      chooser.steps.vectorize(id, lanes);
    }
  }
  if (parallel) parallel_outer(chooser, id, outer);
}

void schedule_contraction(const Chooser& chooser, StageId id, const Contraction& contraction,
                          bool may_be_parallel) {
  const Stage& stage = chooser.graph[id];
  const AxisId innermost = stage.reduce.back();
  const bool as_dots =
      !is_contiguous_in(chooser.graph, *contraction.column_factor, contraction.column) &&
      is_contiguous_in(chooser.graph, *contraction.column_factor, innermost) &&
      is_contiguous_in(chooser.graph, *contraction.row_factor, innermost) &&
      may_reassociate(chooser, id);
  const AxisId vector_axis = as_dots ? innermost : contraction.column;
  const std::optional<int64_t> lanes = vector_factor(chooser.graph, id, vector_axis, kVectorBytes);
  if (!lanes) return schedule_reduction(chooser, id, may_be_parallel);

  StepWriter& steps = chooser.steps;
  const auto tile = [&](AxisId axis, int64_t factor) {
    const int64_t extent = constant_extent(chooser.graph, axis).value_or(factor);
    return steps.split(id, axis, std::clamp<int64_t>(extent, 1, factor));
  };
  const auto [rows, row] = tile(contraction.row, as_dots ? kDotRows : kTileRows);
  const auto [columns, column] = tile(contraction.column, as_dots ? kDotRows : *lanes);
  std::vector<AxisId> order;
  for (const AxisId axis : columns_of(stage)) {
    if (axis != contraction.row && axis != contraction.column) order.push_back(axis);
  }
  order.push_back(rows);
  const std::vector<AxisId> outer = order;
  order.push_back(columns);
  order.insert(order.end(), stage.reduce.begin(), stage.reduce.end());
  AxisId vector = column;
  if (as_dots) {
    const auto [chunks, chunk] = steps.split(id, innermost, *lanes);
    order.back() = chunks;
    vector = chunk;
  }
  order.push_back(row);
  order.push_back(column);
  if (as_dots) order.push_back(vector);
  steps.reorder(id, order);
  steps.vectorize(id, vector);
  if (as_dots) steps.unroll(id, column);
  steps.unroll(id, row);
  if (may_be_parallel && is_large(chooser.graph, id)) parallel_outer(chooser, id, outer);
}

void schedule_compute(const Chooser& chooser, StageId id, bool may_be_parallel) {
  if (!chooser.graph[id].is_reduction()) return schedule_elementwise(chooser, id, may_be_parallel);
  const std::optional<Contraction> contraction = find_contraction(chooser.graph, id);
  if (contraction) return schedule_contraction(chooser, id, *contraction, may_be_parallel);
  schedule_reduction(chooser, id, may_be_parallel);
}

void schedule_scan(const Chooser& chooser, StageId scan_id) {
  const StageGraph& graph = chooser.graph;
  const size_t known = graph.kernel->definition.stages.size();
  std::vector<StageId> nests;
  bool simple = has_independent_columns(graph, scan_id);
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    const bool is_init = stage.is_init && stage.init_of == scan_id;
    if (!stage.is_live || (!is_init && stage.cell_of != static_cast<int>(scan_id))) continue;
    if (stage.kind != Stage::Kind::Compute || stage.attach.kind == schedule::Attach::Kind::Inline) {
      continue;
    }
    simple = simple && id < known && !stage.is_reduction() && stage.data.size() > 1 &&
             !has_indirect_reads(stage);
    if (id < known && stage.data.size() > 1) nests.push_back(id);
  }
  if (!simple) {
    for (const StageId id : nests)
      schedule_compute(chooser, id, is_worth_waking(graph, id));
    return;
  }
  for (const StageId id : nests) {
    const Stage& stage = graph[id];
    std::vector<AxisId> outer = columns_of(stage);
    if (!has_time_last(stage)) {
      const AxisId last = outer.back();
      const std::optional<int64_t> factor = vector_factor(graph, id, last, kScanColumnBytes);
      if (factor) {
        const auto [tiles, lanes] = chooser.steps.split(id, last, *factor);
        chooser.steps.vectorize(id, lanes);
        outer.back() = tiles;
      }
      if (!factor || outer.size() > 1) outer.pop_back();
    }
    // All nests of a scan must agree, so the work of its update decides for all.
    if (is_large_scan(graph, scan_id) && !outer.empty()) {
      chooser.steps.parallel(id, outer[0]);
    }
  }
}

void schedule_scatter(const Chooser& chooser, StageId id) {
  const Stage& stage = chooser.graph[id];
  if (stage.data.empty() || !is_large(chooser.graph, id)) return;
  if (schedule::tells_elements_apart(chooser.graph, id, stage.data[0])) {
    chooser.steps.parallel(id, stage.data[0]);
    return;
  }
  const AxisId last = stage.data.back();
  const std::optional<int64_t> factor = vector_factor(chooser.graph, id, last, kVectorBytes);
  if (!factor || !schedule::tells_elements_apart(chooser.graph, id, last)) return;
  const auto [tiles, lanes] = chooser.steps.split(id, last, *factor);
  std::vector<AxisId> order = {tiles};
  order.insert(order.end(), stage.data.begin(), stage.data.end() - 1);
  order.push_back(lanes);
  chooser.steps.reorder(id, order);
  chooser.steps.parallel(id, tiles);
  chooser.steps.vectorize(id, lanes);
}

void bind_scatter(const Chooser& chooser, StageId id) {
  const Stage& stage = chooser.graph[id];
  std::vector<AxisId> apart;
  std::vector<AxisId> serial;
  for (const AxisId axis : stage.data) {
    const bool is_apart = schedule::tells_elements_apart(chooser.graph, id, axis);
    (is_apart ? apart : serial).push_back(axis);
  }
  if (apart.empty()) return;
  std::vector<AxisId> order = apart;
  order.insert(order.end(), serial.begin(), serial.end());
  if (order != stage.data) chooser.steps.reorder(id, order);
  const AxisId all = chooser.steps.fuse(id, apart);
  const auto [block, thread] = chooser.steps.split(id, all, 256);
  chooser.steps.bind(id, block, "blockIdx.x");
  chooser.steps.bind(id, thread, "threadIdx.x");
}

void bind_elements(const Chooser& chooser, StageId id) {
  const Stage& stage = chooser.graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return;
  const AxisId all = chooser.steps.fuse(id, columns);
  const auto [block, thread] = chooser.steps.split(id, all, 256);
  chooser.steps.bind(id, block, "blockIdx.x");
  chooser.steps.bind(id, thread, "threadIdx.x");
}

}  // namespace kiln::autoschedule
