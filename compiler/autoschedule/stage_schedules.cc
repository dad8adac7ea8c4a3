#include "compiler/autoschedule/stage_schedules.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/scatters.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kScanColumnBytes = 256;
constexpr int64_t kManyIterations = 64;
constexpr int64_t kStepWork = 256 * 1024;

/// Whether the last dimension is time: then neighbours in memory are not computed together.
bool has_time_last(const Stage& stage) {
  return !stage.data.empty() && stage.is_time(stage.data.size() - 1);
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

/// Vectors for a reduction inside of the expressions of a stage, where neighbours in memory are
/// reduced.
struct InnerVectors {
  AxisId axis = 0;
  int64_t lanes = 0;
};

/// One that shares its axis with another reduction has no axis that steps could name.
std::vector<InnerVectors> vectors_inside(const Chooser& chooser, StageId whole) {
  const StageGraph& graph = chooser.graph;
  std::vector<InnerVectors> found;
  for (const StageId reduction : reductions_inside(graph, whole)) {
    const AxisId innermost = graph[reduction].reduce.back();
    const bool has_id = innermost < graph.kernel->definition.axes.size();
    if (!has_id || !is_contiguous(graph, graph[reduction], innermost) ||
        is_strided(graph, graph[reduction], innermost) || has_dependent_extents(graph, reduction) ||
        has_indirect_reads(graph[reduction]) || !may_reassociate(chooser, reduction)) {
      continue;
    }
    const std::optional<int64_t> factor = vector_factor(graph, reduction, innermost, kVectorBytes);
    if (factor) found.push_back({innermost, *factor});
  }
  return found;
}

void write_elements(const StageGraph& graph, StageId id, const std::vector<InnerVectors>& inside,
                    StepWriter& steps, const Values& values) {
  std::vector<AxisId> outer = columns_of(graph[id]);
  const AxisId last = outer.back();
  outer.pop_back();
  if (const int64_t factor = values.get("lanes", 0); factor > 0) {
    auto [tiles, lanes] = steps.split(id, last, factor);
    steps.vectorize(id, lanes);
    if (const int64_t copies = values.get("unroll", 1); copies > 1) {
      const auto [groups, copy] = steps.split(id, tiles, copies);
      steps.unroll(id, copy);
      tiles = groups;
    }
    if (outer.empty()) outer.push_back(tiles);
  } else {
    outer.push_back(last);
  }
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
  for (const InnerVectors& vectors : inside) {
    const auto [chunks, lanes] = steps.split(id, vectors.axis, vectors.lanes);
    steps.vectorize(id, lanes);
  }
}

/// Blocks of rows and columns, so that what is read along the rows is still in the cache when the
/// next column reads what is beside it.
void write_blocks(const StageGraph& graph, StageId id, AxisId across, StepWriter& steps,
                  const Values& values) {
  std::vector<AxisId> order = columns_of(graph[id]);
  const AxisId last = order.back();
  order.pop_back();
  std::erase(order, across);
  const auto [rows, row] = steps.split(id, across, values.get("rows", 1));
  const auto [columns, column] = steps.split(id, last, values.get("lanes", 1));
  order.push_back(rows);
  const std::vector<AxisId> outer = order;
  order.insert(order.end(), {columns, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

/// The axis along which neighbours are read where the last axis steps over rows, as in a transpose.
std::optional<AxisId> axis_across(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.size() < 2 || !is_strided(graph, stage, columns.back())) return std::nullopt;
  for (size_t i = columns.size() - 1; i-- > 0;) {
    if (is_contiguous(graph, stage, columns[i])) return columns[i];
  }
  return std::nullopt;
}

std::vector<Sketch> element_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return {};
  const AxisId last = columns.back();
  const std::optional<int64_t> factor = vector_factor(graph, id, last, kVectorBytes);
  // A reduction for each element stands in the innermost loop, and has the vectors.
  const bool has_vectors = factor && !has_indirect_reads(stage) && !has_time_last(stage) &&
                           !is_used_inside(graph, id, last);
  Sketch elements{.name = "elements", .parameters = {}, .write = {}};
  if (has_vectors) {
    elements.parameters = {lanes_parameter(graph, last, *factor), {"unroll", {1, 2, 4}, 1}};
  }
  const Parameter parallel = parallel_parameter(may_be_parallel && is_large(graph, id));
  elements.parameters.push_back(parallel);
  const std::vector<InnerVectors> inside = vectors_inside(chooser, id);
  elements.write = [&graph, id, inside](StepWriter& steps, const Values& values) {
    write_elements(graph, id, inside, steps, values);
  };
  std::vector<Sketch> sketches = {std::move(elements)};
  const std::optional<AxisId> across = axis_across(graph, id);
  if (has_vectors && across && inside.empty()) {
    sketches.push_back(
        {.name = "blocks",
         .parameters = {tile_parameter(graph, "rows", *across, {4, 8, 16, 32, 64}, 16),
                        lanes_parameter(graph, last, *factor), parallel},
         .write = [&graph, id, across](StepWriter& steps, const Values& values) {
           write_blocks(graph, id, *across, steps, values);
         }});
  }
  return sketches;
}

/// Along which axis of a reduction the vectors lie; nothing when there are none.
struct ReductionVectors {
  AxisId axis = 0;
  int64_t lanes = 0;
  bool along_data = false;  // which keeps the order of the reduction
};

std::optional<ReductionVectors> vectors_of_reduction(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (has_dependent_extents(graph, id) || has_indirect_reads(stage)) return std::nullopt;
  const std::vector<AxisId> outer = columns_of(stage);
  const AxisId innermost = stage.reduce.back();
  const AxisId last = outer.empty() ? innermost : outer.back();
  // Where neighbours along both are neighbours in memory, as in a window that slides, data axes
  // are the longer ones, and keep the order of the reduction.
  const bool along_data =
      !outer.empty() && !has_time_last(stage) && is_contiguous(graph, stage, last) &&
      (!is_contiguous(graph, stage, innermost) || !is_strided(graph, stage, last));
  const AxisId axis = along_data ? last : innermost;
  const bool allowed =
      along_data || (may_reassociate(chooser, id) && is_contiguous(graph, stage, innermost));
  const std::optional<int64_t> factor = vector_factor(graph, id, axis, kVectorBytes);
  if (!allowed || !factor) return std::nullopt;
  return ReductionVectors{axis, *factor, along_data};
}

void write_reduction(const StageGraph& graph, StageId id,
                     const std::optional<ReductionVectors>& vectors, StepWriter& steps,
                     const Values& values) {
  const Stage& stage = graph[id];
  std::vector<AxisId> outer = columns_of(stage);
  if (vectors) {
    const int64_t factor = values.get("lanes", vectors->lanes);
    const auto [tiles, lanes] = steps.split(id, vectors->axis, factor);
    if (vectors->along_data) {
      std::vector<AxisId> order = stage.reduce;
      order.push_back(lanes);
      steps.reorder(id, order);
      outer.back() = tiles;
    }
    steps.vectorize(id, lanes);
  }
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

std::vector<Sketch> reduction_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const std::optional<ReductionVectors> vectors = vectors_of_reduction(chooser, id);
  Sketch sketch{.name = "reduction", .parameters = {}, .write = {}};
  if (vectors) sketch.name = vectors->along_data ? "vectors along data" : "vectors reduced";
  // As many partial results as lanes: more or fewer would change the order.
  if (vectors && vectors->along_data) {
    sketch.parameters.push_back(lanes_parameter(graph, vectors->axis, vectors->lanes));
  }
  if (!columns_of(graph[id]).empty()) {
    sketch.parameters.push_back(parallel_parameter(may_be_parallel && is_large(graph, id)));
  }
  sketch.write = [&graph, id, vectors](StepWriter& steps, const Values& values) {
    write_reduction(graph, id, vectors, steps, values);
  };
  return {std::move(sketch)};
}

/// The stages of a scan's cell and inits that have loops of their own.
struct ScanNests {
  std::vector<StageId> nests;
  bool simple = false;  // columns that have nothing to do with each other, without reductions
};

ScanNests nests_of(const StageGraph& graph, StageId scan) {
  const size_t known = graph.kernel->definition.stages.size();
  ScanNests found{.nests = {}, .simple = has_independent_columns(graph, scan)};
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    const bool is_init = stage.is_init && stage.init_of == scan;
    if (!stage.is_live || (!is_init && stage.cell_of != static_cast<int>(scan))) continue;
    if (stage.kind != Stage::Kind::Compute || stage.attach.kind == schedule::Attach::Kind::Inline) {
      continue;
    }
    found.simple = found.simple && id < known && !stage.is_reduction() && stage.data.size() > 1 &&
                   !has_indirect_reads(stage);
    if (id < known && stage.data.size() > 1) found.nests.push_back(id);
  }
  return found;
}

void write_columns(const StageGraph& graph, const std::vector<StageId>& nests, StepWriter& steps,
                   const Values& values) {
  for (const StageId id : nests) {
    const Stage& stage = graph[id];
    std::vector<AxisId> outer = columns_of(stage);
    if (!has_time_last(stage)) {
      const AxisId last = outer.back();
      const std::optional<int64_t> factor =
          vector_factor(graph, id, last, values.get("bytes", kScanColumnBytes));
      if (factor) {
        const auto [tiles, lanes] = steps.split(id, last, *factor);
        steps.vectorize(id, lanes);
        outer.back() = tiles;
      }
      if (!factor || outer.size() > 1) outer.pop_back();
    }
    // All nests of a scan must agree, so the work of its update decides for all.
    if (values.get("parallel", 0) != 0 && !outer.empty()) steps.parallel(id, outer[0]);
  }
}

/// The sketch that is taken unmeasured, for each stage inside of a scan.
Sketch cells_sketch(const Chooser& chooser, const std::vector<StageId>& nests) {
  std::vector<Sketch> parts;
  for (const StageId id : nests) {
    std::vector<Sketch> sketches =
        compute_sketches(chooser, id, is_worth_waking(chooser.graph, id));
    if (!sketches.empty()) parts.push_back(std::move(sketches[0]));
  }
  return {.name = "cells", .parameters = {}, .write = [parts](StepWriter& steps, const Values&) {
            for (const Sketch& part : parts)
              part.write(steps, Values(part.parameters, part.preferred()));
          }};
}

}  // namespace

std::optional<int64_t> constant_extent(const StageGraph& graph, AxisId axis) {
  return ir::as_const_int(analysis::simplify(graph.axes[axis].extent));
}

bool may_reassociate(const Chooser& chooser, StageId stage) {
  for (const ir::Expr& body : chooser.graph[stage].bodies) {
    const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
    if (reduce != nullptr && reduce->how.reducer) return false;
  }
  if (!chooser.options.strict) return true;
  const std::vector<DType>& types = chooser.graph[stage].types;
  return std::none_of(types.begin(), types.end(), [](DType type) { return is_float(type); });
}

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

Parameter lanes_parameter(const StageGraph& graph, AxisId axis, int64_t preferred) {
  constexpr int64_t kFewest = 4;
  const int64_t extent = constant_extent(graph, axis).value_or(preferred * 4);
  Parameter lanes{.name = "lanes", .values = {}, .preferred = preferred};
  for (int64_t value = preferred / 2; value <= preferred * 4; value *= 2) {
    if (value >= kFewest && (value <= extent || value == preferred)) lanes.values.push_back(value);
  }
  return lanes;
}

Parameter tile_parameter(const StageGraph& graph, std::string name, AxisId axis,
                         std::vector<int64_t> values, int64_t preferred) {
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  std::erase_if(values, [&](int64_t value) {
    return extent && value != preferred && value > std::max<int64_t>(*extent, 1);
  });
  return {std::move(name), std::move(values), preferred};
}

Parameter parallel_parameter(bool preferred) { return {"parallel", {0, 1}, preferred ? 1 : 0}; }

void parallel_outer(const StageGraph& graph, StepWriter& steps, StageId stage,
                    const std::vector<AxisId>& loops) {
  int64_t iterations = 1;
  const size_t known = graph.kernel->definition.axes.size();
  for (const AxisId loop : loops) {
    if (iterations >= kManyIterations) return;
    const std::optional<int64_t> extent =
        loop < known ? constant_extent(graph, loop) : std::nullopt;
    if (extent == 1) continue;
    steps.parallel(stage, loop);
    iterations = std::min(kManyIterations, extent.value_or(kManyIterations)) * iterations;
  }
}

std::vector<Sketch> compute_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  if (!chooser.graph[id].is_reduction()) return element_sketches(chooser, id, may_be_parallel);
  if (const std::optional<Contraction> found = find_contraction(chooser.graph, id)) {
    std::vector<Sketch> sketches = contraction_sketches(chooser, id, *found, may_be_parallel);
    if (!sketches.empty()) return sketches;
  }
  return reduction_sketches(chooser, id, may_be_parallel);
}

std::vector<Sketch> scan_sketches(const Chooser& chooser, StageId scan) {
  const StageGraph& graph = chooser.graph;
  const ScanNests found = nests_of(graph, scan);
  if (!found.simple) return {cells_sketch(chooser, found.nests)};
  return {{.name = "columns through time",
           .parameters = {{"bytes", {64, 128, 256, 512}, kScanColumnBytes},
                          parallel_parameter(is_large_scan(graph, scan))},
           .write = [&graph, nests = found.nests](StepWriter& steps, const Values& values) {
             write_columns(graph, nests, steps, values);
           }}};
}

std::vector<Sketch> scatter_sketches(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.data.empty()) return {};
  const Parameter parallel = parallel_parameter(is_large(graph, id));
  if (schedule::tells_elements_apart(graph, id, stage.data[0])) {
    return {{.name = "rows",
             .parameters = {parallel},
             .write = [id, first = stage.data[0]](StepWriter& steps, const Values& values) {
               if (values.get("parallel", 0) != 0) steps.parallel(id, first);
             }}};
  }
  const AxisId last = stage.data.back();
  const std::optional<int64_t> factor = vector_factor(graph, id, last, kVectorBytes);
  if (!factor || !schedule::tells_elements_apart(graph, id, last)) return {};
  return {{.name = "columns",
           .parameters = {lanes_parameter(graph, last, *factor), parallel},
           .write = [id, data = stage.data](StepWriter& steps, const Values& values) {
             if (values.get("parallel", 0) == 0) return;
             const auto [tiles, lanes] = steps.split(id, data.back(), values.get("lanes", 1));
             std::vector<AxisId> order = {tiles};
             order.insert(order.end(), data.begin(), data.end() - 1);
             order.push_back(lanes);
             steps.reorder(id, order);
             steps.parallel(id, tiles);
             steps.vectorize(id, lanes);
           }}};
}

void bind_scatter(const StageGraph& graph, StepWriter& steps, StageId id, int64_t threads) {
  const Stage& stage = graph[id];
  std::vector<AxisId> apart;
  std::vector<AxisId> serial;
  for (const AxisId axis : stage.data) {
    const bool is_apart = schedule::tells_elements_apart(graph, id, axis);
    (is_apart ? apart : serial).push_back(axis);
  }
  if (apart.empty()) return;
  std::vector<AxisId> order = apart;
  order.insert(order.end(), serial.begin(), serial.end());
  if (order != stage.data) steps.reorder(id, order);
  const AxisId all = steps.fuse(id, apart);
  const auto [block, thread] = steps.split(id, all, threads);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

void bind_elements(const StageGraph& graph, StepWriter& steps, StageId id, int64_t threads) {
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return;
  const AxisId all = steps.fuse(id, columns);
  const auto [block, thread] = steps.split(id, all, threads);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

}  // namespace kiln::autoschedule
