// Rows that are fewer than multiprocessors, and long:
//
//   S = sum[i, j](X[i, j]), 8192 x 4096
//     ->  S.rf[p] = sum[i, j](X[p * 8 + i, j]) in 1024 blocks; S = sum[p](S.rf[p])
#include "compiler/autoschedule/templates/split_rows.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/row_threads.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Of each multiprocessor, so that they hide what others wait for; a few may be missing.
constexpr int64_t kBlocks = 8;
// Elements of a part that are worth a block.
constexpr int64_t kLeastPart = 4096;
constexpr int64_t kFewestParts = 4;
// A row that is in one block stays in its registers. It is split where one multiprocessor alone
// takes longer for it than so many launches.
constexpr double kWorthLaunches = 4;

/// Bytes of all that lies along a row.
double bytes_of_row(const StageGraph& graph, const Stage& stage, int64_t elements) {
  double bytes = 0;
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    if (is_contiguous_in(graph, read, stage.reduce.back()))
      bytes += static_cast<double>(elements * size_of(read.type.element));
  });
  return bytes;
}

}  // namespace

std::optional<SumSplit> split_of_rows(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (!is_row_reduction(chooser, id)) return std::nullopt;
  const auto rows = constant_extent_of(graph, stage.data);
  const auto elements = constant_extent_of(graph, stage.reduce);
  const GpuMachine machine = gpu_machine(chooser.arch);
  const int64_t multiprocessors = machine.multiprocessors;
  if (!rows || !elements || *rows >= multiprocessors) return std::nullopt;
  const double launches = kWorthLaunches * kLaunchSeconds * machine.gigahertz * 1e9;
  if (bytes_of_row(graph, stage, *elements) / machine.l2_bytes < launches) return std::nullopt;
  const auto axis =
      std::ranges::find_if(stage.reduce, [&](AxisId each) { return !is_unit(graph, each); });
  const int64_t extent = *constant_extent(graph, *axis);
  const int64_t most = std::min(kBlocks * multiprocessors / *rows, *elements / kLeastPart);
  const int64_t parts = equal_parts(extent, most);
  if (parts < kFewestParts || parts == extent) return std::nullopt;
  return SumSplit{*axis, extent / parts, stage.data.size()};
}

}  // namespace kiln::autoschedule
