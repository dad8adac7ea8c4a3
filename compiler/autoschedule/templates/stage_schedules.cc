// Writes the sketches of stages that are no matrix product: elements, transposes, reductions,
// scatters; and asks for those of products first.
//
//   Y[i, j] = X[j, i]              tiles of 16 x 32, transposed in L1
//   S[j] = sum[i](X[i, j])         columns in vectors, four rows at once, blocks that fit L1
//   S[i] = sum[j](X[i, j])         vectors along j, lanes added at the end of a row
#include "compiler/autoschedule/templates/stage_schedules.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/templates/batch_sketches.h"
#include "compiler/autoschedule/templates/window_sketches.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/graph/scatters.h"

namespace kiln::autoschedule {
namespace {

// Neighbouring rows of memory, each in another page, are read best in pieces of this size: shorter
// ones come before the prefetchers see that they go on.
constexpr int64_t kRunBytes = 4096;
// Rows that are read side by side: while one page begins, others go on, and the sums between them
// stay in registers.
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kMostRowsAtOnce = 8;
// A row of so many elements, and so many columns, are reduced in twice as many lanes, which hides
// how long an addition takes; the horizontal reduction at the end of a row takes longer then.
constexpr int64_t kLongRow = 512;
constexpr int64_t kManyColumns = 256;
// Of a shared loop: enough that eight parts for each of some cores are even.
constexpr int64_t kManyIterations = 64;

/// Whether steps can name an axis of the graph.
bool has_id(const std::vector<uint32_t>& named, uint32_t position) {
  return std::find(named.begin(), named.end(), position) != named.end();
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
    if (!has_id(graph.axis_of_id, innermost) ||
        !is_contiguous(graph, graph[reduction], innermost) ||
        is_strided(graph, graph[reduction], innermost) || has_dependent_extents(graph, reduction) ||
        has_indirect_reads(graph[reduction]) || !may_reassociate(chooser, reduction)) {
      continue;
    }
    const bool is_long = constant_extent(graph, innermost).value_or(0) >= kLongRow;
    const std::optional<int64_t> factor =
        vector_factor(graph, reduction, innermost, is_long ? 2 * kVectorBytes : kVectorBytes);
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

/// Whether a stage only moves elements.
bool is_copy(const Stage& stage) {
  if (stage.bodies.size() != 1) return false;
  const ir::Expr body = schedule::without_casts(stage.bodies[0]);
  return ir::as<ir::TensorRead>(body) != nullptr;
}

/// Tiles that are transposed in L1: read along the rows of the source, an element at a
/// time, and written in vectors. A vector of elements from as many rows would be a gather.
void write_transposed_tiles(const StageGraph& graph, StageId id, AxisId across, StepWriter& steps,
                            const Values& values) {
  const std::vector<AxisId> data = columns_of(graph[id]);
  const auto [tile, axes] = steps.cache_write(id, "local", data.size());
  std::vector<AxisId> order = data;
  order.pop_back();
  std::erase(order, across);
  const auto [rows, row] = steps.split(id, across, values.get("rows", 16));
  const auto [columns, column] = steps.split(id, data.back(), values.get("lanes", 32));
  order.push_back(columns);
  const std::vector<AxisId> outer = order;
  order.insert(order.end(), {rows, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
  steps.compute_at(tile, id, rows);
  const size_t at = static_cast<size_t>(std::ranges::find(data, across) - data.begin());
  steps.reorder(tile, {axes.back(), axes[at]});
  steps.unroll(tile, axes[at]);
}

/// Of a stage without reductions at its top: its elements, or tiles of it where it is read across.
std::vector<Sketch> element_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return {};
  const AxisId last = columns.back();
  const std::optional<int64_t> factor = line_factor(graph, id, last);
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
  const bool is_large_tile = across && constant_extent(graph, *across).value_or(16) >= 16 &&
                             constant_extent(graph, last).value_or(32) >= 32;
  if (may_be_parallel && has_vectors && is_large_tile && is_copy(stage) &&
      id < graph.kernel->definition.stages.size()) {
    Sketch transposed{
        .name = "transposed tiles",
        .parameters = {tile_parameter(graph, "rows", *across, {8, 16, 32}, 16),
                       tile_parameter(graph, "lanes", last, {16, 32, 64}, 32), parallel},
        .write = [&graph, id, across](StepWriter& steps, const Values& values) {
          write_transposed_tiles(graph, id, *across, steps, values);
        }};
    sketches.insert(sketches.begin(), std::move(transposed));
  }
  if (has_vectors && across && inside.empty()) {
    Sketch blocks{.name = "blocks",
                  .parameters = {tile_parameter(graph, "rows", *across, {4, 8, 16, 32, 64}, 16),
                                 lanes_parameter(graph, last, *factor), parallel},
                  .write = [&graph, id, across](StepWriter& steps, const Values& values) {
                    write_blocks(graph, id, *across, steps, values);
                  }};
    // A line of what lies across is read by the next rows too, which must come before it is gone.
    const bool comes_first = may_be_parallel && is_large_tile && !is_copy(stage);
    sketches.insert(comes_first ? sketches.begin() : sketches.end(), std::move(blocks));
  }
  return sketches;
}

/// Along which axis of a reduction the vectors lie; nothing when there are none.
struct ReductionVectors {
  AxisId axis = 0;
  int64_t lanes = 0;
  bool along_data = false;  // which keeps the order of the reduction
  int64_t columns = 0;      // of a block whose sums stay in L1; 0: in registers
};

/// Whether a reduction goes through more than the caches hold, in long runs.
bool exceeds_caches(const StageGraph& graph, StageId id) {
  // 4 MiB of floats: more than the L2 of the machines that were measured (1 and 2 MiB).
  constexpr int64_t kElements = int64_t{1} << 20;
  const Stage& stage = graph[id];
  int64_t reduced = 1;
  for (const AxisId axis : stage.reduce) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    reduced *= std::clamp<int64_t>(extent.value_or(kElements), 1, kElements);
    if (reduced >= kElements) break;
  }
  const int64_t last = constant_extent(graph, columns_of(stage).back()).value_or(kElements);
  constexpr int64_t kManyRows = 64;
  return reduced >= kManyRows && reduced * std::clamp<int64_t>(last, 1, kElements) >= kElements;
}

std::optional<ReductionVectors> vectors_of_reduction(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (has_dependent_extents(graph, id) || has_indirect_reads(stage)) return std::nullopt;
  const std::vector<AxisId> outer = columns_of(stage);
  const AxisId innermost = stage.reduce.back();
  const AxisId last = outer.empty() ? innermost : outer.back();
  const bool along_data = has_vectors_along_data(graph, id);
  const AxisId axis = along_data ? last : innermost;
  const bool is_together =
      is_contiguous(graph, stage, innermost) || is_near(graph, stage, innermost);
  const bool allowed = along_data || (may_reassociate(chooser, id) && is_together);
  const bool is_long = along_data
                           ? constant_extent(graph, axis).value_or(0) >= kManyColumns &&
                                 constant_extent(graph, innermost).value_or(0) >= kManyIterations
                           : constant_extent(graph, axis).value_or(0) >= kLongRow;
  const std::optional<int64_t> factor =
      vector_factor(graph, id, axis, is_long ? 2 * kVectorBytes : kVectorBytes);
  if (!allowed || !factor) return std::nullopt;
  ReductionVectors vectors{axis, *factor, along_data};
  if (along_data && exceeds_caches(graph, id)) {
    vectors.columns = columns_of_block(graph, id, axis).value_or(0);
  }
  return vectors;
}

/// Vectors along data keep sums of several columns in registers; vectors along the reduction keep
/// partial sums of one, which are combined at the end of a row.
void write_reduction(const StageGraph& graph, StageId id,
                     const std::optional<ReductionVectors>& vectors, StepWriter& steps,
                     const Values& values) {
  const Stage& stage = graph[id];
  std::vector<AxisId> outer = columns_of(stage);
  if (vectors) {
    const int64_t factor = values.get("lanes", vectors->lanes);
    AxisId columns = vectors->axis;
    const bool in_blocks = values.get("columns", 0) > factor;
    if (in_blocks) {
      const auto [blocks, column] = steps.split(id, columns, values.get("columns", 0));
      outer.back() = blocks;
      columns = column;
    }
    const auto [tiles, lanes] = steps.split(id, columns, factor);
    if (vectors->along_data) {
      std::vector<AxisId> order = stage.reduce;
      if (in_blocks) order.push_back(tiles);
      if (const int64_t rows = values.get("rows at once", 1); in_blocks && rows > 1) {
        const auto [groups, row] = steps.split(id, order[stage.reduce.size() - 1], rows);
        order[stage.reduce.size() - 1] = groups;
        order.push_back(row);
        steps.unroll(id, row);
      }
      order.push_back(lanes);
      steps.reorder(id, order);
      if (!in_blocks) outer.back() = tiles;
    } else if (const int64_t rows = values.get("rows at once", 1); rows > 1) {
      const auto [groups, row] = steps.split(id, outer.back(), rows);
      outer.back() = groups;
      std::vector<AxisId> order = outer;
      order.insert(order.end(), stage.reduce.begin(), stage.reduce.end() - 1);
      order.insert(order.end(), {tiles, row, lanes});
      steps.reorder(id, order);
      steps.unroll(id, row);
    }
    steps.vectorize(id, lanes);
  }
  if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
}

/// One sketch: which axis has the vectors is decided, since the other would be other bits or
/// slower.
std::vector<Sketch> reduction_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const std::optional<ReductionVectors> vectors = vectors_of_reduction(chooser, id);
  Sketch sketch{.name = "reduction", .parameters = {}, .write = {}};
  if (vectors) sketch.name = vectors->along_data ? "vectors along data" : "vectors reduced";
  // As many partial results as lanes: more or fewer would change the order.
  if (vectors && vectors->along_data) {
    sketch.parameters.push_back(lanes_parameter(graph, vectors->axis, vectors->lanes));
    if (const int64_t columns = vectors->columns; columns > 0) {
      sketch.parameters.push_back({"columns", {0, columns / 2, columns, columns * 2}, columns});
      const int64_t rows = constant_extent(graph, graph[id].reduce.back()).value_or(0);
      const int64_t preferred = rows >= kRowsAtOnce ? kRowsAtOnce : 1;
      sketch.parameters.push_back(
          {"rows at once", {1, 2, kRowsAtOnce, kMostRowsAtOnce}, preferred});
    }
  }
  if (vectors && !vectors->along_data && !columns_of(graph[id]).empty()) {
    // The lanes of a vector that is not full would be added in another order.
    const int64_t steps = constant_extent(graph, vectors->axis).value_or(1);
    const int64_t rows = constant_extent(graph, columns_of(graph[id]).back()).value_or(1);
    const bool is_full = steps % vectors->lanes == 0 && rows % kMostRowsAtOnce == 0;
    const bool gains = rows >= kManyIterations && exceeds_caches(graph, id);
    if (is_full) {
      sketch.parameters.push_back(
          {"rows at once", {1, 2, kRowsAtOnce, kMostRowsAtOnce}, gains ? kRowsAtOnce : 1});
    }
  }
  if (!columns_of(graph[id]).empty()) {
    sketch.parameters.push_back(parallel_parameter(may_be_parallel && is_large(graph, id)));
  }
  sketch.write = [&graph, id, vectors](StepWriter& steps, const Values& values) {
    write_reduction(graph, id, vectors, steps, values);
  };
  return {std::move(sketch)};
}

}  // namespace

std::optional<int64_t> constant_extent(const StageGraph& graph, AxisId axis) {
  return ir::as_const_int(analysis::simplify(graph.axes[axis].extent));
}

int64_t register_lanes(const Chooser& chooser, StageId id) {
  int64_t widest = 1;
  for (const DType type : chooser.graph[id].types)
    widest = std::max<int64_t>(widest, size_of(type));
  return std::max<int64_t>(chooser.vectors.bytes / widest, 1);
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
  while (factor >= 4 && extent && factor > *extent)
    factor /= 2;
  if (factor < 4) return std::nullopt;
  return factor;
}

std::optional<int64_t> line_factor(const StageGraph& graph, StageId id, AxisId line) {
  // From four double registers on, one masked vector at the end of a line is little of it.
  constexpr int64_t kFewVectors = 4;
  const std::optional<int64_t> two = vector_factor(graph, id, line, kVectorBytes);
  const std::optional<int64_t> one = vector_factor(graph, id, line, kVectorBytes / 2);
  const std::optional<int64_t> extent = constant_extent(graph, line);
  const bool is_short = extent && two && *extent < kFewVectors * *two;
  return is_short && *extent % *two > *one ? one : two;
}

std::optional<int64_t> columns_of_block(const StageGraph& graph, StageId id, AxisId axis) {
  // Of columns: what a kernel does cannot depend on the number of threads, so this serves four
  // cores.
  constexpr int64_t kBlocks = 4;
  const std::optional<int64_t> most = vector_factor(graph, id, axis, kRunBytes);
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  if (!most) return most;
  if (!extent) return *most / 2;
  int64_t columns = *most;
  while (columns > 4 && columns * kBlocks > *extent)
    columns /= 2;
  return columns;
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
  const size_t known = graph.axes.size();
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
  const std::optional<Contraction> found = find_contraction(chooser.graph, id);
  // One row shares nothing with others: its columns are sums down columns.
  if (found && constant_extent(chooser.graph, found->row) != 1) {
    std::vector<Sketch> sketches = contraction_sketches(chooser, id, *found, may_be_parallel);
    if (!sketches.empty()) return sketches;
  }
  std::vector<Sketch> sketches = batch_sketches(chooser, id, may_be_parallel);
  if (!sketches.empty()) return sketches;
  sketches = reduction_sketches(chooser, id, may_be_parallel);
  if (std::optional<Sketch> window = window_sketch(chooser, id, may_be_parallel)) {
    sketches.insert(sketches.begin(), *std::move(window));
  }
  return sketches;
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
