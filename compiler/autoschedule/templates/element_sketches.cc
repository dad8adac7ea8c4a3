// Sketches of stages that reduce nothing: vectors along the last axis, and where what is read lies
// along another one, tiles or blocks of both.
//
//   Y[i, j] = X[i, j] + Z[j, i]    blocks of 16 x 64, for which squares of Z are turned in
//   registers
//
// Elements of 1 and 2 bytes are turned in L1, one by one, or gathered while their lines are there.
#include <algorithm>

#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/schedule/graph/places_of_tensor.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// A row of so many elements is reduced in twice as many lanes, which hides how long an addition
// takes; the horizontal reduction at the end of a row takes longer then.
constexpr int64_t kLongRow = 512;

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

/// How many iterations loops have together, `most` where that is not known or more.
int64_t iterations_of(const StageGraph& graph, const std::vector<AxisId>& loops, int64_t most) {
  int64_t count = 1;
  for (const AxisId loop : loops) {
    const int64_t extent = constant_extent(graph, loop).value_or(most);
    count = std::min(count * std::min(extent, most), most);
  }
  return count;
}

/// What cores share of a stage whose rows, of the axes `rows`, are `tiles` each: the rows, and
/// where these are fewer than cores may be, but long, parts of them as well. A single row is what a
/// tensor of one dimension is.
std::vector<AxisId> shared_loops(const StageGraph& graph, StageId id, std::vector<AxisId> rows,
                                 AxisId tiles, int64_t elements_of_tile, StepWriter& steps) {
  constexpr int64_t kFewRows = 64;
  constexpr int64_t kElementsOfPart = 16 * 1024;
  const int64_t count = iterations_of(graph, rows, kFewRows);
  const int64_t length = constant_extent(graph, columns_of(graph[id]).back()).value_or(0);
  if (count == 1) {
    rows.push_back(tiles);
  } else if (count < kFewRows && length >= 2 * kElementsOfPart) {
    rows.push_back(steps.split(id, tiles, kElementsOfPart / elements_of_tile).first);
  }
  return rows;
}

void write_elements(const StageGraph& graph, StageId id, const std::vector<InnerVectors>& inside,
                    StepWriter& steps, const Values& values) {
  const bool is_shared = values.get("parallel", 0) != 0;
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
    if (is_shared) {
      const int64_t elements = factor * std::max<int64_t>(values.get("unroll", 1), 1);
      outer = shared_loops(graph, id, std::move(outer), tiles, elements, steps);
    }
  } else {
    outer.push_back(last);
  }
  if (is_shared) parallel_outer(graph, steps, id, outer);
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
  const auto [tile, axes] = steps.cache_write(id, "local");
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

/// Tensors that a stage reads along `across` where its last axis steps over rows, and which blocks
/// can have in their own order; none where one of them cannot be.
std::vector<const ir::TensorRead*> turned_reads(const StageGraph& graph, StageId id,
                                                AxisId across) {
  const Stage& stage = graph[id];
  const AxisId last = columns_of(stage).back();
  std::vector<const ir::TensorRead*> found;
  bool are_turnable = true;
  for (const ir::Expr& body : stage.bodies) {
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      const std::optional<int64_t> distance = distance_along(graph, read, last);
      if (distance && (*distance == 0 || *distance == 1)) return;
      constexpr int kLeastBytes = 4;
      const int bytes = size_of(read.type.element);
      const bool is_turnable = is_contiguous_in(graph, read, across) &&
                               is_used_in(graph, read, last) && bytes >= kLeastBytes &&
                               bytes == size_of(stage.types[0]) &&
                               read.stage < graph.kernel->definition.stages.size() &&
                               graph[read.stage].attach.kind == schedule::Attach::Kind::Root;
      const schedule::TensorId tensor{read.stage, read.output};
      are_turnable =
          are_turnable && is_turnable && schedule::places_of_tensor(graph, id, tensor).is_one();
      const bool is_known = std::ranges::any_of(found, [&](const ir::TensorRead* other) {
        return schedule::TensorId{other->stage, other->output} == tensor;
      });
      if (!is_known) found.push_back(&read);
    });
  }
  if (!are_turnable) found.clear();
  return found;
}

/// Blocks of rows and columns, for which what lies across is copied in their own order: vectors
/// along its rows, as many as they have lanes, are squares that are turned in registers
/// (codegen/llvm_interleave.cc). Down the rows first, whose lines go on.
void write_turned_blocks(const StageGraph& graph, StageId id, AxisId across,
                         const std::vector<const ir::TensorRead*>& reads, int64_t lanes,
                         StepWriter& steps, const Values& values) {
  std::vector<AxisId> outer = columns_of(graph[id]);
  const AxisId last = outer.back();
  outer.pop_back();
  std::erase(outer, across);
  const std::vector<AxisId> others = outer;
  const auto [rows, row] = steps.split(id, across, values.get("rows", lanes));
  const auto [columns, column] = steps.split(id, last, values.get("lanes", lanes));
  outer.push_back(columns);
  std::vector<AxisId> order = outer;
  order.insert(order.end(), {rows, row, column});
  steps.reorder(id, order);
  steps.vectorize(id, column);
  if (values.get("parallel", 0) != 0) {
    parallel_outer(graph, steps, id, outer);
    // Few tiles side by side are few parts for many cores.
    constexpr int64_t kFewTiles = 32;
    const int64_t tiles =
        constant_extent(graph, last).value_or(kFewTiles) / values.get("lanes", lanes);
    if (others.empty() && tiles < kFewTiles) steps.parallel(id, rows);
  }
  for (const ir::TensorRead* read : reads) {
    std::vector<AxisId> layout;
    for (const AxisId axis : others)
      if (is_used_in(graph, *read, axis)) layout.push_back(axis);
    layout.insert(layout.end(), {columns, rows, row, column});
    const auto [copy, axes] = steps.cache_read({read->stage, read->output}, id, layout, "local");
    steps.compute_at(copy, id, rows);
    const auto [lines, of_line] = steps.split(copy, axes[axes.size() - 2], lanes);
    const auto [squares, turned] = steps.split(copy, axes.back(), lanes);
    steps.reorder(copy, {lines, squares, turned, of_line});
    steps.unroll(copy, turned);
    steps.vectorize(copy, of_line);
  }
}

/// Registers side by side of a block. With two of them, a large transpose, whose stores go past the
/// caches, takes 3.5 ms on a Zen 5 (4096 x 4096), with four 4.0; one of 1024 x 1024, which stays in
/// L3, 107 and 84 us, and sums of three such tensors 81 and 64.
int64_t registers_of_block(const StageGraph& graph, StageId id) {
  int64_t bytes = size_of(graph[id].types[0]);
  for (const AxisId axis : columns_of(graph[id]))
    bytes *= std::clamp<int64_t>(constant_extent(graph, axis).value_or(1), 1, int64_t{1} << 16);
  return is_copy(graph[id]) && bytes >= ir::kNontemporalBytes ? 2 : 4;
}

}  // namespace

std::vector<Sketch> element_sketches(const Chooser& chooser, StageId id, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (columns.empty()) return {};
  const AxisId last = columns.back();
  const std::optional<int64_t> factor = element_factor(chooser, id, last);
  // A reduction for each element stands in the innermost loop, and has the vectors.
  const bool has_vectors = factor && !has_indirect_reads(stage) && !has_time_last(stage) &&
                           !is_used_inside(graph, id, last);
  Sketch elements{.name = "elements", .parameters = {}, .write = {}};
  if (has_vectors) {
    elements.parameters = {lanes_parameter(graph, last, *factor), {"unroll", {1, 2, 4}, 1}};
  }
  const Parameter parallel = parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id));
  elements.parameters.push_back(parallel);
  const std::vector<InnerVectors> inside = vectors_inside(chooser, id);
  elements.write = [&graph, id, inside](StepWriter& steps, const Values& values) {
    write_elements(graph, id, inside, steps, values);
  };
  std::vector<Sketch> sketches = {std::move(elements)};
  const std::optional<AxisId> across = axis_across(graph, id);
  const bool is_large_tile = across && constant_extent(graph, *across).value_or(16) >= 16 &&
                             constant_extent(graph, last).value_or(32) >= 32;
  const bool may_be_tiles = may_be_parallel && has_vectors && is_large_tile &&
                            id < graph.kernel->definition.stages.size();
  std::vector<const ir::TensorRead*> turned;
  if (may_be_tiles && inside.empty()) turned = turned_reads(graph, id, *across);
  const int64_t lanes = register_lanes(chooser, id);
  if (may_be_tiles && is_copy(stage)) {
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
  if (!turned.empty()) {
    Sketch squares{
        .name = "turned blocks",
        .parameters = {tile_parameter(graph, "rows", *across, {lanes, 2 * lanes}, lanes),
                       tile_parameter(graph, "lanes", last, {2 * lanes, 4 * lanes},
                                      registers_of_block(graph, id) * lanes),
                       parallel},
        .write = [&graph, id, across, turned, lanes](StepWriter& steps, const Values& values) {
          write_turned_blocks(graph, id, *across, turned, lanes, steps, values);
        }};
    sketches.insert(sketches.begin(), std::move(squares));
  }
  return sketches;
}

}  // namespace kiln::autoschedule
