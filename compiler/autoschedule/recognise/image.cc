// Measures how a window moves over an image: the index of the dimension that the lines of the
// result step through is a line times a stride, plus axes of the reduction.
//
//   X[n, c, 2*y + r, x + s], r < 3     stride 2, reach 2, images n, channels in line_elements
#include "compiler/autoschedule/recognise/image.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/prologue.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

std::optional<int64_t> constant(const ir::Expr& expr) {
  return ir::as_const_int(analysis::simplify(expr));
}

/// The data axis of the lines: the last one before the columns that moves the column factor alone.
std::optional<AxisId> line_of(const StageGraph& graph, StageId id, const Contraction& contraction) {
  const std::vector<AxisId> data = columns_of(graph[id]);
  for (auto axis = data.rbegin() + 1; axis != data.rend(); ++axis) {
    if (is_used_in(graph, *contraction.column_factor, *axis) &&
        !is_used_in(graph, *contraction.row_factor, *axis)) {
      return *axis;
    }
  }
  return std::nullopt;
}

/// Stride and reach of the window in the dimension that has this index.
bool measure_window(const StageGraph& graph, const Stage& stage, const ir::Expr& index,
                    Image& image) {
  const ir::VarRef& line = graph.axes[image.line].value;
  const auto stride = constant(ir::substitute(index, {{line, ir::Expr(line) + 1}}) - index);
  ir::Substitution first;
  ir::Substitution last;
  for (const AxisId axis : stage.reduce) {
    const schedule::Axis& reduced = graph.axes[axis];
    first[reduced.value] = reduced.minimum;
    last[reduced.value] = reduced.minimum + (reduced.extent - 1);
  }
  const auto reach = constant(ir::substitute(index, last) - ir::substitute(index, first));
  if (!stride || !reach || *stride < 1 || *reach < 0) return false;
  image.stride = *stride;
  image.reach = *reach;
  return true;
}

bool is_constant(const ir::Expr& expr) {
  return ir::as<ir::IntImm>(expr) != nullptr || ir::as<ir::FloatImm>(expr) != nullptr;
}

}  // namespace

std::optional<Padded> find_padded(const ir::Expr& expr) {
  const ir::Expr inner = schedule::without_casts(expr);
  const ir::Call* choice = ir::as<ir::Call>(inner);
  const bool chooses = choice != nullptr && (choice->op == language::Operator::IfThenElse ||
                                             choice->op == language::Operator::Select);
  if (!chooses) return std::nullopt;
  for (size_t i = 1; i < 3; ++i) {
    const ir::Expr branch = schedule::without_casts(choice->args[i]);
    if (const ir::TensorRead* read = ir::as<ir::TensorRead>(branch))
      return Padded{{read->stage, read->output}, choice->args[3 - i]};
  }
  return std::nullopt;
}

bool is_padding_for(const StageGraph& graph, StageId source, StageId reader) {
  if (!is_computed_for(graph, source, reader)) return false;
  const std::optional<Padded> padded = find_padded(graph[source].bodies[0]);
  return padded && is_constant(schedule::without_casts(padded->around));
}

std::optional<Image> find_image(const StageGraph& graph, StageId id,
                                const Contraction& contraction) {
  const Stage& stage = graph[id];
  const ir::TensorRead& read = *contraction.column_factor;
  const std::optional<AxisId> line = line_of(graph, id, contraction);
  const bool is_other = contraction.row_factor->stage != read.stage;
  if (!line || !is_other || stage.role.cell_of >= 0 || stage.part_of ||
      graph[read.stage].role.cell_of >= 0) {
    return std::nullopt;
  }
  Image image{.line = *line, .source = {read.stage, read.output}, .line_elements = 1};
  const std::vector<ir::Expr>& shape = graph[read.stage].shapes[read.output];
  bool has_window = false;
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const ir::Expr& index = read.indices[d];
    const auto is_own = [&](AxisId axis) { return ir::uses_var(index, graph.axes[axis].value); };
    if (is_own(*line)) {
      if (has_window || !measure_window(graph, stage, index, image)) return std::nullopt;
      has_window = true;
      continue;
    }
    const std::optional<int64_t> extent = constant(shape[d]);
    if (!extent || *extent < 1) return std::nullopt;
    const bool is_of_batch = !is_own(contraction.column) && std::ranges::any_of(stage.data, is_own);
    // 2^30 bounds the product of two: sizes past it are all alike to a cost.
    int64_t& count = is_of_batch ? image.images : image.line_elements;
    count = std::min(count, int64_t{1} << 30) * std::min(*extent, int64_t{1} << 30);
  }
  const std::optional<int64_t> lines = constant_extent(graph, *line);
  if (!has_window || !lines || *lines < 2) return std::nullopt;
  image.lines = *lines;
  image.is_computed_for = is_computed_for(graph, read.stage, id);
  return image;
}

}  // namespace kiln::autoschedule
