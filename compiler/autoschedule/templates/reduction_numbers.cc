// How much of a reduction is taken at once: lanes, columns of a block, rows side by side. By what
// is in registers and caches, and how a core reads memory.
#include "compiler/autoschedule/templates/reduction_numbers.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/autoschedule/templates/transfers.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// Neighbouring rows of memory, each in another page, are read best in pieces of a page: in shorter
// ones prefetchers have not seen yet that they go on, and beyond it they do not look.
constexpr auto kRunBytes = static_cast<int64_t>(Transfers::kPageBytes);
constexpr int64_t kShortRowBytes = kRunBytes / 2;
// Vectors of a row that is read by itself, whose sums are in L1: one would wait for its store.
constexpr int64_t kVectorsOfRow = 4;
// Rows that are read side by side: while one page begins, others go on, and the sums between them
// stay in registers.
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kMostRowsAtOnce = 8;
// Down columns a vector of sums is loaded and stored once for as many rows. From L3, which is
// faster than the ports of L1 with four, 16 gain an eighth (512 x 2048 and 768 x 3072 on Zen 4); of
// rows that are few the rest is too much of the work.
constexpr int64_t kRowsFromNear = 16;
constexpr int64_t kFewestGroups = 4;
// In eighths of L3, whose other cores have a part.
constexpr int64_t kNearEighths = 3;
// Of a row from memory, where comparing takes registers too: maxima of the rows of 4096 x 4096, 4
// at once, take 3.6 ms on a Zen 3 with 2 or 4, and 5.6 with 8, which its registers do not hold.
constexpr int64_t kVectorsOfExtremes = 2;
// Steps of a reduction, or rows, from which on what stands around the loop over them is little: a
// tile of it begins and ends in about as long as 8 additions take.
constexpr int64_t kManyIterations = 64;

/// Iterations of all data axes but the last.
int64_t tasks_beside(const StageGraph& graph, StageId id) {
  std::vector<AxisId> others = columns_of(graph[id]);
  others.pop_back();
  return constant_extent_of(graph, others).value_or(1);
}

/// Whether a reduction goes through more than the caches hold, in long runs.
bool exceeds_caches(const Chooser& chooser, StageId id) {
  constexpr int64_t kOfL2 = 2;  // so many times: nothing of it is there when it is read again
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const int64_t most = kOfL2 * chooser.machine.l2_bytes / size_of(stage.types[0]);
  int64_t reduced = 1;
  for (const AxisId axis : stage.reduce) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    reduced *= std::clamp<int64_t>(extent.value_or(most), 1, most);
    if (reduced >= most) break;
  }
  const int64_t last = constant_extent(graph, columns_of(stage).back()).value_or(most);
  const int64_t each = reduced * std::clamp<int64_t>(last, 1, most);
  if (reduced < kManyIterations || each >= most) return reduced >= kManyIterations;
  // Of several, none of which stays in L2 while its columns are read piece by piece, or all of
  // which come from memory.
  constexpr int64_t kSeveral = 4;
  if (tasks_beside(graph, id) < kSeveral) return false;
  const int64_t bytes = each * size_of(stage.types[0]);
  return bytes > chooser.machine.l2_bytes ||
         (bytes > chooser.machine.l1_bytes && !is_in_l3(chooser, id));
}

/// Of floats, which takes a second instruction for what is no number.
bool is_extreme_of_floats(const Stage& stage) {
  const auto* reduce = ir::as<ir::Reduce>(stage.bodies[0]);
  return is_float(stage.types[0]) && reduce != nullptr &&
         (reduce->how.combiner == language::Combiner::Min ||
          reduce->how.combiner == language::Combiner::Max);
}

/// What is no number is found by a comparison, which without masks is a register as well.
bool compares_in_registers(const Chooser& chooser, StageId id) {
  return is_extreme_of_floats(chooser.graph[id]) && !chooser.machine.has_masks();
}

/// Whether the results of so many rows side by side take half of the registers at most; the rest is
/// for what is loaded.
bool may_hold_rows(const Chooser& chooser, StageId id, int64_t lanes, int64_t rows) {
  const ir::VectorUnit& vectors = chooser.machine.vectors;
  const int64_t each = ceil_div(lanes * size_of(chooser.graph[id].types[0]), vectors.bytes);
  return rows * each * (compares_in_registers(chooser, id) ? 2 : 1) <= vectors.registers / 2;
}

/// Whether what is reduced down its columns is in L3, and has rows enough. Of those that compare,
/// 16 take longer than 4: maxima of 512 x 2048 125 us and 103 on a Zen 3.
bool gains_by_many_rows(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const auto extent = [&](AxisId axis) { return constant_extent(graph, axis).value_or(0); };
  const int64_t rows = extent(stage.reduce.back());
  return stage.reduce.size() == 1 && rows >= kFewestGroups * kRowsFromNear &&
         is_in_l3(chooser, id) && !compares_in_registers(chooser, id);
}

/// Whether rows from memory are so short that they are read best one after the other: of 16 side by
/// side none goes on long enough for prefetchers, and each begins a page too late. Sums down 256
/// columns of 96 MiB take 3.7 ms so and 7.2 ms 16 rows at a time, of 130 columns 3.4 and 8.5 (Zen
/// 4), of 512 columns 3.9 and 4.3.
bool passes_rows_in_order(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  if (!has_rows_side_by_side(graph, id)) return false;
  const AxisId last = columns_of(graph[id]).back();
  const std::optional<int64_t> columns = constant_extent(graph, last);
  return columns && *columns * size_of(graph[id].types[0]) <= kShortRowBytes &&
         columns_of_block(chooser, id, last).value_or(0) >= *columns && !is_in_l3(chooser, id);
}

/// Of so many rows that lie in memory, or are compared, how many are reduced side by side.
int64_t rows_from_memory(const Chooser& chooser, StageId id, int64_t rows) {
  const int64_t down = chooser.machine.memory_rows.down;
  const bool is_near = is_in_l3(chooser, id) && !chooser.machine.has_masks();
  if (rows >= kFewestGroups * down && !is_near) return down;
  return rows >= kRowsAtOnce ? kRowsAtOnce : 1;
}

/// Columns whose sums are in registers while the rows pass, so many that one addition need not wait
/// for the one before; each tile of them is a loop over all rows. Cores have a tile each.
int64_t lanes_down_columns(const Chooser& chooser, StageId id, AxisId axis, int64_t otherwise,
                           bool is_shared) {
  constexpr int64_t kMostRagged = 9;
  const StageGraph& graph = chooser.graph;
  const Machine& machine = chooser.machine;
  const std::optional<int64_t> columns = constant_extent(graph, axis);
  const std::optional<int64_t> rows = constant_extent_of(graph, graph[id].reduce);
  // Of a window or the like nothing waits.
  if (!columns || !rows || *rows < kManyIterations) return otherwise;
  const int64_t each = machine.vectors.bytes / size_of(graph[id].types[0]);
  int64_t best = otherwise;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t vectors = 1; vectors <= machine.vectors.registers / 2; vectors *= 2) {
    const int64_t lanes = vectors * each;
    const int64_t tiles = ceil_div(*columns, lanes);
    if (is_shared && vectors > 1 && tiles * tasks_beside(graph, id) < machine.cores) break;
    // All columns as one tile whose last vector is not full: LLVM spills where these are many.
    const bool is_ragged = tiles == 1 && *columns % each != 0;
    if (is_ragged && *columns > kMostRagged * each) break;
    const auto in_tile = static_cast<double>(std::min(vectors, ceil_div(*columns, each)));
    const double step =
        std::max({in_tile / machine.operations, machine.latency, in_tile / machine.loads}) +
        machine.loop_cycles;
    const double tile =
        static_cast<double>(*rows) * step + machine.tile_cycles + machine.element_cycles * in_tile;
    const double all = static_cast<double>(tiles) * tile;
    if (all > least) continue;
    least = all;
    best = lanes;
    if (tiles == 1) break;
  }
  return std::min(best, *columns);
}

/// Rows side by side, of so many, with which a core loads all the time while a vector of sums waits
/// for the one before.
int64_t rows_that_hide_additions(const Chooser& chooser, StageId id, int64_t lanes, int64_t rows) {
  const Machine& machine = chooser.machine;
  const Stage& stage = chooser.graph[id];
  const auto* reduce = ir::as<ir::Reduce>(stage.bodies[0]);
  if (reduce == nullptr || ir::as<ir::TensorRead>(reduce->sources[0]) == nullptr) return 1;
  const double chain = machine.latency * (is_extreme_of_floats(stage) ? 2 : 1);
  const double loads = static_cast<double>(lanes * size_of(stage.types[0])) /
                       static_cast<double>(machine.vectors.bytes) / machine.loads;
  int64_t at_once = 1;
  while (at_once < kRowsAtOnce && 2 * at_once <= rows &&
         may_hold_rows(chooser, id, lanes, 2 * at_once) &&
         static_cast<double>(at_once) * loads < chain)
    at_once *= 2;
  return at_once;
}

}  // namespace

bool has_rows_side_by_side(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  bool are_near = true;
  for (const ir::Expr& body : stage.bodies) {
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      if (!is_used_in(graph, read, columns_of(stage).back())) return;
      const std::optional<int64_t> apart = distance_along(graph, read, stage.reduce.back());
      are_near =
          are_near && apart && std::abs(*apart) * size_of(read.type.element) <= 2 * kRunBytes;
    });
  }
  return are_near;
}

bool is_in_l3(const Chooser& chooser, StageId id) {
  const std::optional<int64_t> elements = constant_work(chooser.graph, id);
  const int64_t bytes = size_of(chooser.graph[id].types[0]);
  return elements && *elements > 0 &&
         *elements <= chooser.machine.l3_bytes * kNearEighths / 8 / bytes;
}

std::optional<ReductionVectors> vectors_of_reduction(const Chooser& chooser, StageId id,
                                                     bool is_shared) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (has_dependent_extents(graph, id)) return std::nullopt;
  const std::vector<AxisId> outer = columns_of(stage);
  const AxisId innermost = stage.reduce.back();
  const AxisId last = outer.empty() ? innermost : outer.back();
  const bool along_data = has_vectors_along_data(graph, id);
  const AxisId axis = along_data ? last : innermost;
  if (has_indirect_reads_along(graph, stage, axis)) return std::nullopt;
  const bool is_together =
      is_contiguous(graph, stage, innermost) || is_near(graph, stage, innermost);
  const bool allowed = along_data || (may_reassociate(chooser, id) && is_together);
  const bool in_blocks = along_data && exceeds_caches(chooser, id);
  const int64_t extent = constant_extent(graph, axis).value_or(0);
  const bool is_long = extent >= kLongRow && (in_blocks || !along_data);
  int64_t bytes = is_long ? 2 * kVectorBytes : kVectorBytes;
  const int64_t vector_bytes = chooser.machine.vectors.bytes;
  if (in_blocks && passes_rows_in_order(chooser, id)) {
    bytes = kVectorsOfRow * vector_bytes;
  } else if (in_blocks && !gains_by_many_rows(chooser, id)) {
    bytes = std::min(bytes, chooser.machine.memory_rows.down_vectors * vector_bytes);
  } else if (!along_data && !outer.empty() && compares_in_registers(chooser, id) &&
             constant_extent(graph, last).value_or(0) >= kManyIterations &&
             exceeds_caches(chooser, id) && !is_in_l3(chooser, id)) {
    bytes = kVectorsOfExtremes * vector_bytes;
  }
  const std::optional<int64_t> factor = vector_factor(graph, id, axis, bytes);
  if (!allowed || !factor) return std::nullopt;
  ReductionVectors vectors{axis, *factor, along_data};
  if (along_data && !in_blocks)
    vectors.lanes = lanes_down_columns(chooser, id, axis, *factor, is_shared);
  if (in_blocks) vectors.columns = columns_of_block(chooser, id, axis).value_or(0);
  return vectors;
}

Parameter rows_down_parameter(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const int64_t rows = constant_extent(graph, graph[id].reduce.back()).value_or(0);
  const int64_t at_once = passes_rows_in_order(chooser, id) ? 1
                          : gains_by_many_rows(chooser, id) ? kRowsFromNear
                                                            : rows_from_memory(chooser, id, rows);
  return {"rows at once", {1, 2, kRowsAtOnce, kMostRowsAtOnce, kRowsFromNear}, at_once};
}

std::optional<Parameter> rows_along_parameter(const Chooser& chooser, StageId id,
                                              const ReductionVectors& vectors, int64_t tasks) {
  const StageGraph& graph = chooser.graph;
  const int64_t steps = constant_extent(graph, vectors.axis).value_or(1);
  const int64_t rows = constant_extent(graph, columns_of(graph[id]).back()).value_or(1);
  if (steps % vectors.lanes != 0 || rows % kMostRowsAtOnce != 0) return std::nullopt;
  // From far, rows are read best side by side. Where registers hold one alone, from memory only:
  // on a Zen 3 sums of 2048 x 1024 take 147 us so, 111 one by one, of 4096 x 4096 2.9 and 4.3 ms.
  const bool is_far =
      rows >= kManyIterations && exceeds_caches(chooser, id) &&
      (may_hold_rows(chooser, id, vectors.lanes, kRowsAtOnce) || !is_in_l3(chooser, id));
  const int64_t far = chooser.machine.memory_rows.along;
  const int64_t at_once = is_far
                              ? (rows >= far * tasks ? far : 1)
                              : rows_that_hide_additions(chooser, id, vectors.lanes, rows / tasks);
  return Parameter{"rows at once", {1, 2, kRowsAtOnce, kMostRowsAtOnce}, at_once};
}

std::optional<int64_t> columns_of_block(const Chooser& chooser, StageId id, AxisId axis) {
  // Of columns: what a kernel does cannot depend on the number of threads, so this serves all that
  // it is planned for.
  const StageGraph& graph = chooser.graph;
  const int64_t least = chooser.machine.vectors.bytes / 4;
  const std::optional<int64_t> most = vector_factor(graph, id, axis, kRunBytes);
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  if (!most) return most;
  if (!extent) return *most / 2;
  int64_t columns = *most;
  // The whole of a short row, not the most of it and a rest.
  if (columns < *extent && 2 * columns * size_of(graph[id].types[0]) <= kRunBytes) columns *= 2;
  const int64_t tasks = tasks_beside(graph, id);
  const auto are_few = [&](int64_t cores) {
    return std::min(columns, *extent) * cores > *extent * tasks;
  };
  while ((columns > 4 && are_few(kFewCores)) || (columns > least && are_few(chooser.machine.cores)))
    columns /= 2;
  return columns;
}

}  // namespace kiln::autoschedule
