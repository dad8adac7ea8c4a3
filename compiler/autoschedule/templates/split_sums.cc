// Sums that have fewer results than a device has to do at once, in two loops, or on a GPU launches:
//
//   C[i, j] = sum[k < 4096](A[i, k] * B[k, j]), 32 x 4096
//     ->  C.rf[p, i, j] = sum[k < 512](A[i, p * 512 + k] * B[p * 512 + k, j]) in eight times as
//         many blocks; C[i, j] = sum[p < 8](C.rf[p, i, j])
//
// Known as split-K of products. Which parts are predicted to gain is said by the template that
// would have the sum as a whole.
#include "compiler/autoschedule/templates/split_sums.h"

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/column_threads.h"
#include "compiler/autoschedule/templates/few_rows.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/split_products.h"
#include "compiler/autoschedule/templates/split_rows.h"
#include "compiler/autoschedule/templates/step_writer.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMostParts = 4096;  // more than any GPU has blocks for

/// The launch that adds the parts up, and their way through L2 or memory.
double cycles_of_adding(int64_t parts, double result_bytes, const GpuMachine& machine) {
  const double bytes = static_cast<double>(parts) * result_bytes;
  const bool stay = bytes <= static_cast<double>(machine.l2_size);
  const double rate = (stay ? machine.l2_bytes : machine.memory_bytes) *
                      static_cast<double>(machine.multiprocessors);
  return kLaunchSeconds * machine.gigahertz * 1e9 + kLoadCycles + 2 * bytes / rate;
}

}  // namespace

std::optional<SumSplit> split_for_threads(const Chooser& chooser, StageId id) {
  if (!may_reassociate(chooser, id)) return std::nullopt;
  if (const auto rows = split_of_rows(chooser, id)) return rows;
  if (!is_plain_reduction(chooser.graph, id)) return std::nullopt;
  if (const auto product = split_of_product(chooser, id)) return product;
  if (const auto columns = split_of_columns(chooser, id)) return columns;
  return split_of_few_rows(chooser, id);
}

LengthOfParts equal_lengths(int64_t least, int64_t lanes) {
  return [=](int64_t extent, int64_t parts) -> std::optional<int64_t> {
    const int64_t length = extent / parts;
    const bool is_whole = extent % parts == 0 && (extent % lanes != 0 || length % lanes == 0);
    return is_whole && length >= least ? std::optional(length) : std::nullopt;
  };
}

LengthOfParts lengths_in_steps(int64_t least, int64_t steps) {
  return [=](int64_t extent, int64_t parts) -> std::optional<int64_t> {
    const int64_t length = ceil_div(extent, parts * steps) * steps;
    return length >= least && length < extent ? std::optional(length) : std::nullopt;
  };
}

int64_t equal_parts(int64_t extent, int64_t most) {
  for (int64_t parts = std::min(extent, most); parts > 1; --parts)
    if (extent % parts == 0) return parts;
  return 1;
}

std::optional<SumSplit> best_split(const Chooser& chooser, StageId id, AxisId axis,
                                   const LengthOfParts& length_of, const CyclesOfParts& cycles) {
  const StageGraph& graph = chooser.graph;
  const GpuMachine machine = gpu_machine(chooser.arch);
  const int64_t extent = *constant_extent(graph, axis);
  const auto result_bytes =
      static_cast<double>(*constant_extent_of(graph, graph[id].data) * size_of(graph[id].types[0]));
  int64_t best = extent;
  double shortest = cycles(1);
  for (int64_t most = 2; most <= std::min(extent, kMostParts); ++most) {
    const std::optional<int64_t> length = length_of(extent, most);
    if (!length) continue;
    const int64_t parts = ceil_div(extent, *length);
    const double time = cycles(parts) + cycles_of_adding(parts, result_bytes, machine);
    if (time >= shortest) continue;
    best = *length;
    shortest = time;
  }
  if (best == extent) return std::nullopt;
  return SumSplit{axis, best, 0};
}

OpenSchedule with_split_sums(const language::Kernel& kernel, OpenSchedule given,
                             const Target& target, const CompileOptions& options,
                             const ChooseSplit& choose) {
  const StageGraph graph = graph_of(kernel, given);
  const StageGraph seen = schedule::written_out(graph);
  const std::vector<bool> touched = touched_roots(graph);
  const Chooser chooser{seen, options, machine_of(target.arch), target.arch};
  StepWriter steps(std::move(given.schedule), graph);
  for (const StageId id : graph.stage_of_id) {
    if (touched[id] || !is_open(seen, id)) continue;
    const auto split = choose(chooser, id);
    if (!split) continue;
    const AxisId part = steps.split(id, split->axis, split->length).first;
    const StageId parts = steps.rfactor(id, part, split->place).first;
    given.open.insert(given.open.end(), {id, parts});
  }
  given.schedule = std::move(steps).schedule();
  return given;
}

}  // namespace kiln::autoschedule
