// Reductions of so few results that one core would have all the work:
//
//   S = sum[i, j](X[i, j]), 4096 x 4096
//     ->  S.rf[p] = sum[i, j](X[p * 64 + i, j]) for 64 parts, which cores share; S =
//     sum[p](S.rf[p])
#include <algorithm>

#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/split_sums.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// For as many cores as a plan may have, a few more or less.
constexpr int64_t kParts = 64;
// Bytes of a part, at least: from L2 about what it takes to wake a core and to wait for it.
constexpr int64_t kLeastBytes = 128 * 1024;
// The parts have to be added; of fewer two cores gain nothing.
constexpr int64_t kFewestParts = 4;
// With as many results cores share these, and what reads them may be in their loop.
constexpr int64_t kTasksOfCores = 8;
// What an extent that is not known is taken for.
constexpr int64_t kOpenExtent = 512;
// Beyond that no step splits an axis.
constexpr int64_t kMostLength = int64_t{1} << 30;
// Vectors of columns that a core has at least, a line of memory or two.
constexpr int64_t kColumns = 4;

/// Bytes that are read for one element of the sum, each read by itself. What is computed of nothing
/// counts as what it is.
int64_t bytes_of_step(const StageGraph& graph, StageId id) {
  int64_t bytes = 0;
  for (const ir::Expr& part : schedule::expanded_bodies(graph, id))
    schedule::for_each_read(
        part, [&](const ir::TensorRead& read) { bytes += size_of(read.type.element); });
  return std::max<int64_t>(bytes, size_of(graph[id].types[0]));
}

/// Results that one core computes at a time: two tiles of a product, vectors of columns, a row.
int64_t results_of_task(const Chooser& chooser, StageId id) {
  const int64_t lanes = register_lanes(chooser, id);
  if (is_product(chooser.graph, id)) return lanes * chooser.machine.vectors.registers;
  return has_vectors_along_data(chooser.graph, id) ? kColumns * lanes : 1;
}

/// The largest number of equal parts that is no more than `most`, where it is at least half of it;
/// else the last part is shorter.
int64_t parts_of(int64_t extent, int64_t most) {
  most = std::min(extent, most);
  for (int64_t parts = most; 2 * parts > most; --parts)
    if (extent % parts == 0) return parts;
  return most;
}

bool is_read_along(const StageGraph& graph, const Stage& stage, AxisId axis) {
  bool found = false;
  for (const ir::Expr& part : schedule::reading_parts(graph, stage))
    schedule::for_each_read(
        part, [&](const ir::TensorRead& read) { found = found || is_used_in(graph, read, axis); });
  return found;
}

/// Of sizes that a call brings: parts of so many elements, however many there are. What is read
/// along the axis has more bytes than the results of its parts, by far.
std::optional<SumSplit> split_of_open_sizes(const StageGraph& graph, const Stage& stage,
                                            int64_t bytes_of_step) {
  std::optional<SumSplit> found;
  int64_t inside = 1;
  for (auto axis = stage.reduce.rbegin(); axis != stage.reduce.rend(); ++axis) {
    const int64_t part = ceil_div(kLeastBytes, bytes_of_step * inside);
    const std::optional<int64_t> extent = constant_extent(graph, *axis);
    if (!extent && is_read_along(graph, stage, *axis)) found = SumSplit{*axis, part, 0};
    const int64_t length = std::clamp<int64_t>(extent.value_or(kOpenExtent), 1, kLeastBytes);
    inside = std::min(inside * length, kLeastBytes);
    if (inside * bytes_of_step >= kLeastBytes && found) break;
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
  const int64_t at_once = std::min(*results, results_of_task(chooser, id));
  const int64_t tasks = ceil_div(*results, at_once);
  if (tasks >= kTasksOfCores || (tasks > 1 && is_product(graph, id))) return std::nullopt;
  const int64_t bytes = bytes_of_step(graph, id) * at_once;
  const std::optional<int64_t> steps = constant_extent_of(graph, stage.reduce);
  if (!steps) {
    const bool is_one_vector =
        *results == 1 || (at_once > 1 && *results <= register_lanes(chooser, id));
    return is_one_vector && !is_product(graph, id) ? split_of_open_sizes(graph, stage, bytes)
                                                   : std::nullopt;
  }
  const int64_t most = std::min(kParts / tasks, *steps / ceil_div(kLeastBytes, bytes));
  if (most < kFewestParts) return std::nullopt;
  int64_t parts = kFewestParts - 1;
  std::optional<SumSplit> found;
  for (const AxisId axis : stage.reduce) {
    const int64_t extent = *constant_extent(graph, axis);
    const int64_t of_axis = parts_of(extent, most);
    if (of_axis <= parts || extent > of_axis * kMostLength) continue;
    const int64_t length = ceil_div(extent, of_axis);
    parts = of_axis;
    found = {axis, length, 0};
  }
  return found;
}

}  // namespace kiln::autoschedule
