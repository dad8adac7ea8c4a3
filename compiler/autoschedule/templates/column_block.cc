// What a block has of a reduction down columns, and what that costs: the slowest of memory, of
// what the busiest multiprocessor gets through L2, of its multiply-adds, and of waiting for loads.
//
// A block has 32 columns of float32 and 64 rows of threads. Where that would be fewer blocks than
// multiprocessors a block has fewer columns and more rows: 32 bytes of a row, which is what comes
// from memory at once, are the least.
#include "compiler/autoschedule/templates/column_block.h"

#include <cmath>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kThreads = 512;      // of a block
constexpr int64_t kMostVectors = 8;    // of a row: 128 bytes
constexpr int64_t kFewestVectors = 2;  // 32 bytes
constexpr int64_t kRowsOfThread = 8;   // so that sums in shared memory are little of the work
constexpr int64_t kSharedOfBlock = 32 << 10;

double whole(double amount, double part) { return std::ceil(amount / part); }

/// Of the widest element that lies along the columns.
int64_t element_bytes(const StageGraph& graph, const Stage& stage) {
  int64_t bytes = size_of(stage.types[0]);
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    if (is_used_in(graph, read, stage.data.back()))
      bytes = std::max<int64_t>(bytes, size_of(read.type.element));
  });
  return bytes;
}

/// Results that do not lie side by side; what is not known is taken for one.
int64_t others_of(const StageGraph& graph, const Stage& stage, const ColumnBlock& block) {
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t others = 1;
  for (size_t d = 0; d + 1 < stage.data.size(); ++d)
    if (!block.is_few(stage.data[d]))
      others *=
          std::clamp<int64_t>(constant_extent(graph, stage.data[d]).value_or(1), 1, kMost / others);
  return others;
}

/// Elements along a reduction axis where the longest is in so many parts; nothing where the call
/// brings them.
std::optional<int64_t> part_length(const StageGraph& graph, const Stage& stage, AxisId axis,
                                   int64_t parts) {
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  return extent && axis == longest_axis(graph, stage.reduce) ? *extent / parts : extent;
}

/// The axis that rows of threads divide: the longest, and one that a call brings may be longer.
AxisId divided_axis(const StageGraph& graph, const Stage& stage, int64_t parts) {
  constexpr int64_t kUnknown = int64_t{1} << 40;
  return *std::ranges::max_element(stage.reduce, {}, [&](AxisId axis) {
    return part_length(graph, stage, axis, parts).value_or(kUnknown);
  });
}

}  // namespace

std::vector<AxisId> few_of_columns(const StageGraph& graph, const Stage& stage) {
  std::vector<AxisId> few = stage.data;
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    if (!is_used_in(graph, read, stage.data.back())) return;
    std::erase_if(few, [&](AxisId axis) { return is_used_in(graph, read, axis); });
  });
  return few;
}

ColumnBlock column_block_of(const Chooser& chooser, StageId id, int64_t parts) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  ColumnBlock block{.divided = divided_axis(graph, stage, parts),
                    .few = few_of_columns(graph, stage)};
  const std::optional<int64_t> length = constant_extent(graph, stage.data.back());
  block.lanes = std::max<int64_t>(kVectorBytesOfThread / element_bytes(graph, stage), 1);
  if (!length || *length % block.lanes != 0) block.lanes = 1;
  block.vectors = block.lanes > 1 ? kMostVectors : ir::kWarp;
  if (length) block.vectors = std::clamp<int64_t>(*length / block.lanes, 1, block.vectors);
  const int64_t others = others_of(graph, stage, block) * parts;
  const int64_t multiprocessors = gpu_machine(chooser.arch).multiprocessors;
  // A few multiprocessors may have nothing to do.
  while (length && block.lanes > 1 && block.vectors > kFewestVectors &&
         *length / (block.vectors * block.lanes) * others < multiprocessors * 3 / 4)
    block.vectors /= 2;
  // A thread has a result in the end.
  const int64_t few = constant_extent_of(graph, block.few).value_or(1);
  while (block.vectors > 1 && few * block.vectors * block.lanes > kThreads)
    block.vectors /= 2;
  block.rows = kThreads / block.vectors;
  const int64_t rows =
      part_length(graph, stage, block.divided, parts).value_or(kThreads * kRowsOfThread);
  while (block.rows > kRowsOfThread && rows < block.rows * kRowsOfThread)
    block.rows /= 2;
  const int64_t bytes_of_row = few * block.vectors * block.lanes * size_of(stage.types[0]);
  while (block.rows > 1 && block.rows * bytes_of_row > kSharedOfBlock)
    block.rows /= 2;
  return block;
}

double column_cycles(const Chooser& chooser, StageId id, int64_t parts) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const GpuMachine machine = gpu_machine(chooser.arch);
  const ColumnBlock block = column_block_of(chooser, id, parts);
  const auto multiprocessors = static_cast<double>(machine.multiprocessors);
  const auto bytes = static_cast<double>(element_bytes(graph, stage));
  const auto columns = static_cast<double>(constant_extent(graph, stage.data.back()).value_or(1));
  const auto others = static_cast<double>(others_of(graph, stage, block) * parts);
  const auto few = static_cast<double>(constant_extent_of(graph, block.few).value_or(1));
  const double rows = static_cast<double>(constant_extent_of(graph, stage.reduce).value_or(1)) /
                      static_cast<double>(parts);
  const auto columns_of_block = static_cast<double>(block.vectors * block.lanes);
  const double turns = whole(whole(columns, columns_of_block) * others, multiprocessors);
  const double elements = rows * columns_of_block;  // of a block
  const ir::GpuArch arch = ir::gpu_arch(chooser.arch);
  const auto at_once =
      static_cast<double>(std::clamp<int64_t>(arch.threads / block.threads(), 1, arch.blocks));
  // And once for the sums of the threads, in shared memory.
  const double under_way = loads_under_way(turns * static_cast<double>(block.threads()));
  const double waits = kLoadCycles *
                       (whole(whole(rows, static_cast<double>(block.rows)), under_way) + 1) *
                       whole(turns, at_once);
  return std::max({waits, turns * elements * bytes / machine.l2_bytes,
                   turns * elements * few / static_cast<double>(machine.float_lanes),
                   rows * columns * others * bytes / (machine.memory_bytes * multiprocessors)});
}

double element_cycles(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const GpuMachine machine = gpu_machine(chooser.arch);
  const auto threads = static_cast<double>(constant_extent_of(graph, stage.data).value_or(1));
  const auto rows = static_cast<double>(constant_extent_of(graph, stage.reduce).value_or(1));
  const auto multiprocessors = static_cast<double>(machine.multiprocessors);
  const auto at_once = static_cast<double>(ir::gpu_arch(chooser.arch).threads);
  const double under_way = loads_under_way(threads / multiprocessors);
  const double waits =
      kLoadCycles * whole(rows, under_way) * whole(threads, multiprocessors * at_once);
  const double bytes = threads * rows * static_cast<double>(element_bytes(graph, stage));
  return std::max(waits, bytes / (machine.memory_bytes * multiprocessors));
}

}  // namespace kiln::autoschedule
