// A block of threads for each row: reductions along it are divided among the threads, which read
// neighbours at the same time, and what reads them follows in the same launch.
//
//   S[i] = sum(X[i, ..])                  k in steps of 128 threads, one block for each i
//   M[i] = max(X[i, ..]); S[i] = sum(exp(X[i, ..] - M[i])); Y[i, j] = exp(X[i, j] - M[i]) / S[i]
//                                         M and S in Y's loop over blocks: one launch
//   M[n, g] = mean(X[n, g*8 .. g*8 + 7, ..]); Y[n, c, x] = X[n, c, x] - M[n, c / 8]
//                                         one block for each n and c / 8
//
// How many threads there are depends on no size of a call, since that is the order of the sums;
// row_line.cc says it, and what the threads keep of the row.
#include "compiler/autoschedule/templates/row_threads.h"

#include <algorithm>
#include <tuple>

#include "compiler/analysis/affine.h"
#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// What so few threads reduce, one does as soon.
constexpr int64_t kShortRow = 32;
constexpr int64_t kThreadsOfShortRows = 128;

/// Whether what an index says for one value of the data axes, along the reduction, ends before it
/// begins for the next: windows that slide read the same again.
bool is_apart(const StageGraph& graph, const Stage& stage, const ir::Expr& index) {
  int64_t length = 1;
  for (const AxisId axis : stage.reduce) {
    const auto stride = analysis::stride_of(index, graph.axes[axis].value);
    if (!stride) return false;
    if (*stride != 0)
      length += std::abs(*stride) * (constant_extent(graph, axis).value_or(1 << 20) - 1);
  }
  return length == 1 || std::ranges::all_of(stage.data, [&](AxisId axis) {
           const auto stride = analysis::stride_of(index, graph.axes[axis].value);
           return stride && (*stride == 0 || std::abs(*stride) >= length || is_unit(graph, axis));
         });
}

/// Whether the stage reads rows that lie along the reduction, another one for each of its elements:
/// a vector that it also reads, as in a product with a matrix, is read again for each.
bool reads_rows(const StageGraph& graph, const Stage& stage) {
  const auto is_of_rows = [&](const ir::TensorRead& read) {
    return is_contiguous_in(graph, read, stage.reduce.back()) &&
           std::ranges::all_of(stage.data,
                               [&](AxisId axis) {
                                 return is_unit(graph, axis) || is_used_in(graph, read, axis);
                               }) &&
           std::ranges::all_of(
               read.indices, [&](const ir::Expr& index) { return is_apart(graph, stage, index); });
  };
  for (const ir::Expr& body : stage.bodies) {
    bool found = false;
    schedule::for_each_read(body,
                            [&](const ir::TensorRead& read) { found = found || is_of_rows(read); });
    if (!found) return false;
  }
  return true;
}

}  // namespace

bool is_row_reduction(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.kind != Stage::Kind::Compute || !stage.is_reduction() || stage.time_dimension >= 0 ||
      !may_reassociate(chooser, id) || has_dependent_extents(graph, id) ||
      has_indirect_reads(stage) || !reductions_inside(graph, id).empty()) {
    return false;
  }
  return constant_extent_of(graph, line_of(graph, id, 0)).value_or(kShortRow + 1) > kShortRow &&
         !has_vectors_along_data(graph, id) && reads_rows(graph, stage);
}

namespace {

/// Elements that are computed where they are read.
bool is_elementwise(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  return stage.kind == Stage::Kind::Compute && !stage.is_reduction() && stage.bodies.size() == 1 &&
         stage.time_dimension < 0 && reductions_inside(graph, id).empty();
}

/// Reductions that were taken out of expressions.
std::vector<StageId> reduction_stages(const StageGraph& graph) {
  std::vector<StageId> found;
  for (StageId id = graph.kernel->definition.stages.size(); id < graph.stages.size(); ++id) {
    const Stage& stage = graph[id];
    const bool is_free = stage.is_live && !stage.is_touched && !stage.part_of &&
                         stage.attach.kind == schedule::Attach::Kind::Root;
    if (is_free && stage.is_reduction()) found.push_back(id);
  }
  return found;
}

/// Whether so few elements are combined that one thread does it in passing.
bool is_short_reduction(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  if (stage.kind != Stage::Kind::Compute || !stage.is_reduction() || stage.time_dimension >= 0 ||
      has_dependent_extents(graph, id) || has_indirect_reads(stage) ||
      !reductions_inside(graph, id).empty()) {
    return false;
  }
  int64_t length = 1;
  for (const AxisId axis : stage.reduce)
    length *= std::min(constant_extent(graph, axis).value_or(kShortRow + 1), kShortRow + 1);
  return length <= kShortRow;
}

/// The stages that are rows of the first dimensions of `last`; nothing where one of them is more
/// than a number of its row, or no reduction can be divided, or is short.
std::optional<RowThreads> rows_of_dimensions(const Chooser& chooser, StageId last,
                                             size_t dimensions, bool are_short,
                                             const std::optional<RowPart>& part = std::nullopt) {
  RowThreads rows{.last = last,
                  .reductions = {},
                  .inlined = {},
                  .dimensions = dimensions,
                  .are_short = are_short};
  for (const StageId id : rows_of(chooser.graph, last, dimensions, reduction_stages(chooser.graph),
                                  Products::StayApart, part)
                              .members) {
    if (is_elementwise(chooser.graph, id)) {
      rows.inlined.push_back(id);
    } else if (has_no_line(chooser.graph, id, dimensions) &&
               (are_short ? is_short_reduction(chooser.graph, id)
                          : is_row_reduction(chooser, id))) {
      rows.reductions.push_back(id);
    } else {
      return std::nullopt;
    }
  }
  if (rows.reductions.empty()) return std::nullopt;
  rows.line.part = part;
  if (!are_short) {
    rows.line =
        row_line_of(chooser.graph, {{}, last, dimensions}, part, rows.reductions, rows.inlined);
  }
  return rows;
}

/// Parts of a dimension of which `last` reads what was computed for each, as for the channels of a
/// group. Elements of a row lie in order only where it is not the last one.
std::optional<RowThreads> rows_of_parts(const Chooser& chooser, StageId last) {
  const StageGraph& graph = chooser.graph;
  const std::vector<AxisId>& data = graph[last].data;
  std::optional<RowThreads> found;
  if (data.size() < 2) return found;
  for (const ir::Expr& expr : reads_written_out(graph, last)) {
    const ir::TensorRead& read = *ir::as<ir::TensorRead>(expr);
    const size_t dimensions = std::min(data.size() - 1, read.indices.size());
    for (size_t d = 0; !found && d < dimensions; ++d) {
      const ir::Binary* quotient = ir::as<ir::Binary>(read.indices[d]);
      if (quotient == nullptr || quotient->op != ir::Operator::FloorDiv) continue;
      const auto size = ir::as_const_int(quotient->b);
      const auto extent = constant_extent(graph, data[d]);
      const bool is_part = size && extent && *size > 1 && *extent % *size == 0 &&
                           quotient->a == ir::Expr(graph.axes[data[d]].value);
      if (!is_part) continue;
      found = rows_of_dimensions(chooser, last, d + 1, false, RowPart{*size});
      if (!found) found = rows_of_dimensions(chooser, last, d + 1, true, RowPart{*size});
    }
  }
  return found;
}

/// Whether some read along the line of a stage is of memory.
bool reads_memory_along(const StageGraph& graph, const RowThreads& rows, StageId id) {
  const auto contains = [](const std::vector<StageId>& stages, StageId stage) {
    return std::ranges::find(stages, stage) != stages.end();
  };
  const auto is_of_memory = [&](const ir::TensorRead& read) {
    if (!is_contiguous_in(graph, read, line_axis(graph[id]))) return false;
    if (contains(rows.line.computed_once, read.stage)) return false;
    if (contains(rows.inlined, read.stage)) return reads_memory_along(graph, rows, read.stage);
    return std::ranges::none_of(rows.line.kept, [&](const RowLine::Kept& kept) {
      return kept.tensor == language::TensorId{read.stage, read.output};
    });
  };
  bool found = false;
  for (const ir::Expr& body : graph[id].bodies) {
    schedule::for_each_read(
        body, [&](const ir::TensorRead& read) { found = found || is_of_memory(read); });
  }
  return found;
}

/// Cuts axes, as one loop, into what the threads of a block do together, and binds them.
void divide_line(StepWriter& steps, StageId id, std::vector<AxisId> axes, const RowLine& line,
                 bool moves) {
  std::optional<AxisId> lane;
  if (line.crosses_axes) axes = {steps.fuse(id, axes)};
  if (line.lanes > 1) std::tie(axes.back(), lane) = steps.split(id, axes.back(), line.lanes);
  const auto [rest, thread] = steps.split(id, steps.fuse(id, axes), line.threads);
  steps.bind(id, thread, "threadIdx.x");
  // Registers have no index.
  if (line.is_kept()) steps.unroll(id, rest);
  if (!lane) return;
  if (moves) {
    steps.vectorize(id, *lane);
  } else {
    steps.unroll(id, *lane);
  }
}

/// The copies that threads keep, and what they compute once.
void keep_line(const StageGraph& graph, StepWriter& steps, const RowThreads& rows, AxisId row) {
  for (const RowLine::Kept& kept : rows.line.kept) {
    const auto [copy, axes] = steps.cache_read(kept.tensor, kept.readers, "warp");
    steps.compute_at(copy, rows.last, row);
    const auto from = axes.begin() + static_cast<long>(kept.from);
    divide_line(steps, copy, {from, axes.end()}, rows.line, true);
  }
  for (const StageId id : rows.line.computed_once) {
    steps.set_scope(id, "warp");
    steps.compute_at(id, rows.last, row);
    divide_line(steps, id, line_of(graph, id, rows.dimensions), rows.line,
                reads_memory_along(graph, rows, id));
  }
}

void inline_all(StepWriter& steps, const RowThreads& rows) {
  const std::vector<StageId>& once = rows.line.computed_once;
  for (const StageId id : rows.inlined) {
    if (std::ranges::find(once, id) == once.end()) steps.compute_inline(id);
  }
}

}  // namespace

std::optional<RowThreads> row_threads_of(const Chooser& chooser, StageId last) {
  const Stage& stage = chooser.graph[last];
  if (is_row_reduction(chooser, last)) {
    // With what of its row it needs first, or alone.
    const size_t dimensions = stage.data.size();
    RowThreads rows =
        rows_of_dimensions(chooser, last, dimensions, false)
            .value_or(RowThreads{
                .last = last, .reductions = {}, .inlined = {}, .dimensions = dimensions});
    rows.line = row_line_of(chooser.graph, {{}, last, dimensions}, std::nullopt, rows.reductions,
                            rows.inlined);
    return rows;
  }
  if (!is_elementwise(chooser.graph, last)) return std::nullopt;
  for (size_t dimensions = stage.data.size(); dimensions > 0; --dimensions) {
    for (const bool are_short : {false, true}) {
      if (const auto rows = rows_of_dimensions(chooser, last, dimensions, are_short)) return rows;
    }
  }
  return rows_of_parts(chooser, last);
}

void bind_rows(const StageGraph& graph, StepWriter& steps, const RowThreads& rows) {
  const std::vector<AxisId>& data = graph[rows.last].data;
  const RowLine& line = rows.line;
  std::vector<AxisId> axes(data.begin(), data.begin() + static_cast<long>(rows.dimensions));
  std::vector<AxisId> own_line = line_of(graph, rows.last, rows.dimensions);
  if (line.part) {
    AxisId inside = 0;
    std::tie(axes.back(), inside) = steps.split(rows.last, axes.back(), line.part->size);
    own_line.insert(own_line.begin(), inside);
  }
  if (rows.are_short) {
    inline_all(steps, rows);
    const AxisId row = steps.fuse(rows.last, axes);
    const auto [block, thread] = steps.split(rows.last, row, kThreadsOfShortRows);
    steps.bind(rows.last, block, "blockIdx.x");
    steps.bind(rows.last, thread, "threadIdx.x");
    for (const StageId id : rows.reductions)
      steps.compute_at(id, rows.last, thread);
    return;
  }
  if (rows.dimensions > 0) {
    const AxisId row = steps.fuse(rows.last, axes);
    steps.bind(rows.last, row, "blockIdx.x");
    keep_line(graph, steps, rows, row);
    for (const StageId id : rows.reductions)
      steps.compute_at(id, rows.last, row);
  }
  inline_all(steps, rows);
  const auto divide = [&](StageId id) {
    divide_line(steps, id, line_of(graph, id, rows.dimensions), line,
                reads_memory_along(graph, rows, id));
  };
  for (const StageId id : rows.reductions)
    divide(id);
  if (graph[rows.last].is_reduction()) {
    divide(rows.last);
  } else if (!has_no_line(graph, rows.last, rows.dimensions)) {
    divide_line(steps, rows.last, own_line, line, true);
  }
}

}  // namespace kiln::autoschedule
