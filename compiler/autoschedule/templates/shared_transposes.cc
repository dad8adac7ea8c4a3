// Tiles that are turned in shared memory, after Ruetsch and Micikevicius, "Optimizing Matrix
// Transpose in CUDA", 2009.
//
//   Y[i, j] = X[j, i]
//     ->  blockIdx: tiles of 32 x 32, of 8 x 8 threads:
//           X.shared[j, i] = X[j, i]     128 bits of a row at once
//           Y[i, j] = X.shared[j, i]     128 bits of a row at once, from four rows of the tile
//
// A row is filled 128 bits at a time by eight threads, and read by eight threads that are as many
// rows apart as that has elements: no padding serves both, so the rows are swizzled by that number
// of rows (shared_lines.cc). In instructions, shared loads and stores among them, and registers for
// sm_90, of a tile whose rows lie one bank apart instead, and of this one:
//
//   elements of      8 bits                16 bits              32 bits            64 bits
//   one bank apart   958, 256 + 256, 71    175, 64 + 32, 40     70, 16 + 16, 27    42, 4 + 4, 26
//   swizzled         544, 256 + 16, 72     169, 64 + 8, 32      68, 16 + 4, 32     46, 4 + 2, 28
//
// Each load of 16 bits took two cycles where rows lie one bank apart; all others take one.
#include "compiler/autoschedule/templates/shared_transposes.h"

#include <algorithm>
#include <bit>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/shared_lines.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kSide = 8;             // vectors of a row of a tile, and threads across it
constexpr int64_t kSideOfElements = 32;  // where each moves by itself
constexpr size_t kMostTensors = 2;

struct Turned {
  AxisId across = 0;  // the axis along which elements are read
  AxisId along = 0;   // the one along which they are stored
  std::vector<language::TensorId> tensors;
  int64_t bytes = 1;  // of the widest element
};

/// The axis of the stage that an index is.
std::optional<AxisId> axis_of(const StageGraph& graph, const Stage& stage, const ir::Expr& index) {
  const auto found = std::ranges::find_if(
      stage.data, [&](AxisId axis) { return index == ir::Expr(graph.axes[axis].value); });
  return found == stage.data.end() ? std::nullopt : std::optional(*found);
}

/// Where a read along another axis than the last one moves along the last one too, and all its
/// indices are axes: that axis.
std::optional<AxisId> axis_across(const StageGraph& graph, const Stage& stage,
                                  const ir::TensorRead& read) {
  std::vector<AxisId> axes;
  for (const ir::Expr& index : read.indices) {
    const std::optional<AxisId> axis = axis_of(graph, stage, index);
    if (!axis || std::ranges::find(axes, *axis) != axes.end()) return std::nullopt;
    axes.push_back(*axis);
  }
  const AxisId last = stage.data.back();
  if (axes.empty() || axes.back() == last || std::ranges::find(axes, last) == axes.end())
    return std::nullopt;
  return axes.back();
}

bool is_large(const StageGraph& graph, AxisId axis) {
  return constant_extent(graph, axis).value_or(kSideOfElements) >= kSideOfElements;
}

std::optional<Turned> turned_of(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && !stage.is_reduction() &&
                        stage.time_dimension < 0 && stage.role.cell_of < 0 &&
                        stage.bodies.size() == 1 && stage.data.size() > 1 &&
                        stage.conditions.empty() && reductions_inside(graph, id).empty() &&
                        !has_indirect_reads(stage);
  if (!is_plain) return std::nullopt;
  Turned turned{.across = stage.data.back(),
                .along = stage.data.back(),
                .tensors = {},
                .bytes = size_of(stage.types[0])};
  bool agree = true;
  std::vector<language::TensorId> others;
  std::vector<const ir::TensorRead*> first;  // of each tensor
  schedule::for_each_read(stage.bodies[0], [&](const ir::TensorRead& read) {
    const language::TensorId tensor = {read.stage, read.output};
    const std::optional<AxisId> across = axis_across(graph, stage, read);
    if (!across) {
      others.push_back(tensor);
      return;
    }
    agree = agree && (turned.tensors.empty() || *across == turned.across) &&
            graph[read.stage].kind != Stage::Kind::Scan && !graph[read.stage].is_touched &&
            graph[read.stage].attach.kind == schedule::Attach::Kind::Root;
    turned.across = *across;
    turned.bytes = std::max<int64_t>(turned.bytes, size_of(read.type.element));
    if (std::ranges::find(turned.tensors, tensor) == turned.tensors.end()) {
      turned.tensors.push_back(tensor);
      first.push_back(&read);
    }
    // One tile is of one place.
    agree = agree && std::ranges::all_of(first, [&](const ir::TensorRead* other) {
              return other->stage != read.stage || other->output != read.output ||
                     ir::equal_trees(ir::Expr(other), ir::Expr(&read));
            });
  });
  for (const language::TensorId& tensor : turned.tensors)
    agree = agree && std::ranges::find(others, tensor) == others.end();
  if (!agree || turned.tensors.empty() || turned.tensors.size() > kMostTensors ||
      turned.bytes > kVectorBytesOfThread || !is_large(graph, turned.across) ||
      !is_large(graph, turned.along)) {
    return std::nullopt;
  }
  return turned;
}

/// The dimension of a tensor along which the stage's last axis moves.
size_t dimension_along(const StageGraph& graph, StageId id, const Turned& turned,
                       language::TensorId tensor) {
  size_t dimension = 0;
  schedule::for_each_read(graph[id].bodies[0], [&](const ir::TensorRead& read) {
    if (language::TensorId{read.stage, read.output} != tensor) return;
    const ir::Expr last = graph.axes[turned.along].value;
    dimension = static_cast<size_t>(std::ranges::find(read.indices, last) - read.indices.begin());
  });
  return dimension;
}

/// 128 bits, where rows of both sides are multiples of them.
int64_t lanes_of(const StageGraph& graph, const Turned& turned) {
  const int64_t lanes = kVectorBytesOfThread / turned.bytes;
  const auto is_whole = [&](AxisId axis) {
    const std::optional<int64_t> extent = constant_extent(graph, axis);
    return extent && *extent % lanes == 0;
  };
  return is_whole(turned.across) && is_whole(turned.along) ? lanes : 1;
}

/// Threads across the rows of a tile and along them.
void bind_tile(StepWriter& steps, StageId id, AxisId across, AxisId along, int64_t lanes) {
  const auto [rest, thread] = steps.split(id, across, kSide);
  std::vector<AxisId> order = {thread, along, rest};
  if (lanes > 1) {
    const auto [vectors, lane] = steps.split(id, along, lanes);
    steps.vectorize(id, lane);
    order = {thread, vectors, rest, lane};
  }
  // Threads come first: all of them wait once for the tile.
  steps.reorder(id, order);
  steps.bind(id, order[0], "threadIdx.y");
  steps.bind(id, order[1], "threadIdx.x");
  steps.unroll(id, rest);
}

/// A copied tile: vectors of a row are stored, single elements of a column are read.
SharedLines lines_of(int64_t side, int64_t lanes, int64_t bytes) {
  const auto moving = [](int64_t first, int64_t second, bool is_down) {
    analysis::LinearLayout::Input warp{.name = "lane", .bits = {}};
    for (int64_t bit = 0; bit < 5; ++bit) {
      const bool is_first = (int64_t{1} << bit) < first;
      const int64_t moved = is_first ? second << bit : (int64_t{1} << bit) / first;
      warp.bits.push_back(is_first == is_down ? std::vector{moved, int64_t{0}}
                                              : std::vector{int64_t{0}, moved});
    }
    return warp;
  };
  const int64_t threads = side / lanes;  // along a line
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(side - 1)));
  const std::vector<analysis::LinearLayout::Output> places = {{"line", bits}, {"element", bits}};
  return {
      .lines = side,
      .width = side,
      .element_bytes = bytes,
      .touches = {{analysis::LinearLayout({moving(threads, lanes, false)}, places), lanes * bytes},
                  {analysis::LinearLayout({moving(threads, lanes, true)}, places), bytes}}};
}

void write_tiles(const StageGraph& graph, StageId id, const Turned& turned, StepWriter& steps) {
  const int64_t lanes = lanes_of(graph, turned);
  const int64_t side = lanes > 1 ? kSide * lanes : kSideOfElements;
  std::vector<std::pair<StageId, std::vector<AxisId>>> copies;
  for (const language::TensorId& tensor : turned.tensors)
    copies.push_back(steps.cache_read(tensor, std::vector<StageId>{id}, "shared"));
  std::vector<AxisId> blocks = graph[id].data;
  std::erase_if(blocks, [&](AxisId axis) { return axis == turned.across || axis == turned.along; });
  const auto [rows, row] = steps.split(id, turned.across, side);
  const auto [columns, column] = steps.split(id, turned.along, side);
  blocks.insert(blocks.end(), {rows, columns});
  std::vector<AxisId> order = blocks;
  order.insert(order.end(), {row, column});
  steps.reorder(id, order);
  const AxisId block = steps.fuse(id, blocks);
  steps.bind(id, block, "blockIdx.x");
  bind_tile(steps, id, row, column, lanes);
  for (size_t i = 0; i < copies.size(); ++i) {
    const auto& [copy, axes] = copies[i];
    const language::TensorId tensor = turned.tensors[i];
    const AxisId across = axes[dimension_along(graph, id, turned, tensor)];
    const int64_t bytes = size_of(graph[tensor.stage].types[tensor.output]);
    write_spread(steps, copy, axes[axes.size() - 2], best_spread(lines_of(side, lanes, bytes)),
                 side);
    steps.compute_at(copy, id, block);
    std::vector<AxisId> inner = axes;
    std::erase(inner, across);
    inner.insert(inner.end() - 1, across);
    steps.reorder(copy, inner);
    bind_tile(steps, copy, across, axes.back(), lanes);
  }
}

}  // namespace

std::vector<Sketch> shared_transpose_sketches(const Chooser& chooser, StageId id) {
  const std::optional<Turned> turned = turned_of(chooser.graph, id);
  if (!turned) return {};
  return {{.name = "tiles turned in shared memory",
           .parameters = {},
           .write = [&graph = chooser.graph, id, turned](StepWriter& steps, const Values&) {
             write_tiles(graph, id, *turned, steps);
           }}};
}

}  // namespace kiln::autoschedule
