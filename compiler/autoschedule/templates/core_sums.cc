// Reductions of so few results that one core would have all the work:
//
//   S = sum[i, j](X[i, j]), 4096 x 4096
//     ->  S.rf[p] = sum[i, j](X[p * 64 + i, j]), 64 of them, by all cores
//         S = sum[p](S.rf[p])
//
// Where all of it is predicted to take longer than waking other cores (stage_cycles.h).
#include <algorithm>

#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/reduction_numbers.h"
#include "compiler/autoschedule/templates/split_sums.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/autoschedule/templates/transfers.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// A plan for more cores has the same parts, since they are the order of the sum: so many that those
// which the last core has to itself do not count, and one for each of 64 cores.
constexpr int64_t kMostParts = kManyTasks * kFewCores;
// One for each core of a plan for few.
constexpr int64_t kFewestParts = kFewCores;
// With as many results cores share these, and what reads them may be in their loop.
constexpr int64_t kTasksOfCores = kBlockTasks * kFewCores;
// Beyond that no step splits an axis.
constexpr int64_t kMostLength = int64_t{1} << 30;

/// What a part takes at least: half of what it takes to wake a core, so that nobody waits longer
/// than that for the last one; and all of it where cores have several results to share as it is.
double least_cycles(const Machine& machine, int64_t tasks) {
  return machine.wake_cycles / (tasks > 1 ? 1 : 2);
}

/// Bytes that are read for one element of the sum, each read by itself. What is computed of nothing
/// counts as what it is.
int64_t bytes_of_step(const StageGraph& graph, StageId id) {
  int64_t bytes = 0;
  for (const ir::Expr& read : reads_written_out(graph, id))
    bytes += size_of(read->type.element);
  return std::max<int64_t>(bytes, size_of(graph[id].types[0]));
}

/// Whether rows are added up that come from memory, so short that it is better to share these than
/// their columns, of which each core would read a piece of every row. Sums down 96 MiB of 1000
/// columns take 3.7 ms in parts of rows and 6.5 ms by columns (one core of a Zen 4), of 2048
/// columns 4.2 and 4.1.
bool reads_short_rows(const Chooser& chooser, StageId id) {
  constexpr int64_t kMostBytes = 2 * Transfers::kPageBytes;
  const StageGraph& graph = chooser.graph;
  const std::optional<int64_t> columns = constant_extent(graph, columns_of(graph[id]).back());
  return columns && *columns > 0 && *columns * size_of(graph[id].types[0]) < kMostBytes &&
         has_rows_side_by_side(graph, id) && !is_in_l3(chooser, id);
}

/// Equal parts, no more than `most`, or so many of which the last is shorter, where equal ones
/// would be half as many.
int64_t parts_of(int64_t extent, int64_t most) {
  const int64_t equal = equal_parts(extent, most);
  return 2 * equal > most ? equal : std::min(extent, most);
}

bool is_read_along(const StageGraph& graph, StageId id, AxisId axis) {
  return std::ranges::any_of(reads_written_out(graph, id), [&](const ir::Expr& read) {
    return is_used_in(graph, *ir::as<ir::TensorRead>(read), axis);
  });
}

/// Of sizes that a call brings: parts of so many elements, however many there are, that come from
/// L2. What is read along the axis has more bytes than the results of its parts, by far.
std::optional<SumSplit> split_of_open_sizes(const Chooser& chooser, StageId id,
                                            int64_t bytes_of_step) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const Machine& machine = chooser.machine;
  const auto least = static_cast<int64_t>(least_cycles(machine, 1) * machine.from_l2);
  std::optional<SumSplit> found;
  int64_t inside = 1;
  for (auto axis = stage.reduce.rbegin(); axis != stage.reduce.rend(); ++axis) {
    const int64_t part = ceil_div(least, bytes_of_step * inside);
    const std::optional<int64_t> extent = constant_extent(graph, *axis);
    if (!extent && is_read_along(graph, id, *axis)) found = SumSplit{*axis, part, 0};
    const int64_t length = std::clamp<int64_t>(extent.value_or(kAnyExtent), 1, least);
    inside = std::min(inside * length, least);
    if (inside * bytes_of_step >= least && found) break;
  }
  return found;
}

}  // namespace

std::optional<SumSplit> split_for_cores(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (!is_plain_reduction(graph, id) || !may_reassociate(chooser, id)) return std::nullopt;
  const std::optional<int64_t> results = constant_extent_of(graph, stage.data);
  if (results.value_or(0) <= 0) return std::nullopt;
  const int64_t lanes = register_lanes(chooser, id);
  const bool is_matrix = is_product(graph, id);
  const bool has_columns = has_vectors_along_data(graph, id);
  const Machine& machine = chooser.machine;
  // What one core computes at a time: two tiles of a product, as many vectors of columns as one
  // addition takes cycles, so that none waits for the one before, or a row of them, or a sum.
  const int64_t columns =
      has_columns ? constant_extent(graph, columns_of(stage).back()).value_or(1) : 1;
  const bool is_one_row = *results == columns;  // of a product, whose tiles it would be
  const bool is_in_rows =
      has_columns && (!is_matrix || is_one_row) && reads_short_rows(chooser, id);
  const int64_t of_task = is_in_rows    ? columns
                          : is_matrix   ? lanes * machine.vectors.registers
                          : has_columns ? static_cast<int64_t>(machine.latency) * lanes
                                        : 1;
  const int64_t at_once = std::min(*results, of_task);
  const int64_t tasks = ceil_div(*results, at_once);
  if (tasks >= kTasksOfCores || (tasks > 1 && is_matrix)) return std::nullopt;
  const int64_t bytes = bytes_of_step(graph, id) * at_once;
  const std::optional<int64_t> steps = constant_extent_of(graph, stage.reduce);
  if (!steps) {
    const bool is_one_vector = *results == 1 || (has_columns && *results <= lanes);
    if (is_matrix || !is_one_vector) return std::nullopt;
    return split_of_open_sizes(chooser, id, bytes);
  }
  // Of tensors whose sizes a call brings, what is read comes from L2.
  const double from_l2 =
      static_cast<double>(*steps * bytes) * static_cast<double>(tasks) / machine.from_l2;
  const double cycles = stage_cycles(chooser, id).value_or(from_l2);
  // A core that has to be woken ends its first part sooner than one core would end all of them.
  constexpr double kOthers = 1 - 1.0 / static_cast<double>(kFewestParts);
  if (cycles * kOthers < machine.wake_cycles) return std::nullopt;
  const double each = cycles / static_cast<double>(tasks);
  const auto long_enough = static_cast<int64_t>(each / least_cycles(machine, tasks));
  const int64_t wanted = tasks > 1 ? long_enough : std::max(long_enough, kFewestParts);
  const int64_t most = std::min({kMostParts / tasks, wanted, *steps});
  if (most < kFewestParts) return std::nullopt;
  int64_t parts = kFewestParts - 1;
  std::optional<SumSplit> found;
  for (const AxisId axis : stage.reduce) {
    const int64_t extent = *constant_extent(graph, axis);
    const int64_t of_axis = parts_of(extent, most);
    if (of_axis <= parts || extent > of_axis * kMostLength) continue;
    parts = of_axis;
    const int64_t length = ceil_div(extent, parts);
    // Parts that are not equal end where a vector does, but the last: 77 dot products of 6817
    // bfloat16 take 49 us so and 95 in parts of 107 (Zen 4).
    const bool is_along = axis == stage.reduce.back() && !has_columns;
    const bool is_ragged = is_along && extent % parts != 0;
    found = {axis, is_ragged ? ceil_div(length, lanes) * lanes : length, 0};
  }
  return found;
}

}  // namespace kiln::autoschedule
