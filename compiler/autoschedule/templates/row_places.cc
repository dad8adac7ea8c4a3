// Compares where the stages of a row read a tensor, each in its own axes: those that say which row
// become the same variables, and those along it are counted from the first element.
#include "compiler/autoschedule/templates/row_places.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

struct LineAxis {
  ir::VarRef var;
  int64_t extent = 1;
};

/// How far each axis of a line moves along the dimensions of a tensor.
using Strides = std::vector<std::vector<int64_t>>;

/// Nothing where an axis does not move the same at each step.
std::optional<Strides> strides_of(const std::vector<ir::Expr>& indices,
                                  const std::vector<LineAxis>& line) {
  Strides strides;
  for (const ir::Expr& index : indices) {
    std::vector<int64_t>& of_index = strides.emplace_back();
    for (const LineAxis& axis : line) {
      const auto stride = analysis::stride_of(index, axis.var);
      if (!stride || *stride < 0) return std::nullopt;
      of_index.push_back(axis.extent > 1 ? *stride : 0);
    }
  }
  return strides;
}

/// Whether the box that a line covers has no element that is not of it.
bool fills_a_box(const Strides& strides, const std::vector<LineAxis>& line) {
  int64_t length = 1;
  for (const LineAxis& axis : line)
    length *= axis.extent;
  int64_t box = 1;
  for (const std::vector<int64_t>& of_index : strides) {
    int64_t extent = 1;
    for (size_t i = 0; i < line.size(); ++i)
      extent += of_index[i] * (line[i].extent - 1);
    if (extent > length) return false;
    box *= extent;
  }
  return box == length;
}

/// Whether the elements of a line are neighbours in memory, in its order.
bool are_neighbours(const Strides& strides, const std::vector<LineAxis>& line,
                    const std::vector<ir::Expr>& shape, size_t from) {
  int64_t step = 1;
  for (size_t i = line.size(); i-- > 0;) {
    int64_t distance = 0;
    for (size_t d = from; d < strides.size(); ++d) {
      const auto extent = d == from ? std::optional<int64_t>(1) : ir::as_const_int(shape[d]);
      if (!extent) return false;
      distance = distance * *extent + strides[d][i];
    }
    if (line[i].extent > 1 && distance != step) return false;
    step *= line[i].extent;
  }
  return true;
}

}  // namespace

bool RowPlace::is_same(const RowPlace& other) const {
  return from == other.from &&
         std::ranges::equal(first, other.first, [](const ir::Expr& a, const ir::Expr& b) {
           return ir::is_const(analysis::simplify(a - b), 0);
         });
}

RowPlaces::RowPlaces(const StageGraph& graph, StageId last, size_t dimensions,
                     const std::optional<RowPart>& part)
    : graph_(graph), last_(last), part_(part), inside_(ir::Var::make("inside")) {
  for (size_t d = 0; d < dimensions; ++d)
    rows_.push_back(ir::Var::make("row"));
}

std::optional<RowPlace> RowPlaces::place_of(StageId reader, const ir::TensorRead& read) const {
  const Stage& stage = graph_[reader];
  std::vector<LineAxis> line;
  ir::Substitution values;
  for (size_t d = 0; d < rows_.size(); ++d)
    values[graph_.axes[stage.data[d]].value] = rows_[d];
  if (part_ && reader == last_) {
    values[graph_.axes[stage.data[rows_.size() - 1]].value] =
        rows_.back() * part_->size + ir::Expr(inside_);
    line.push_back({inside_, part_->size});
  }
  const std::vector<AxisId> own =
      stage.is_reduction()
          ? stage.reduce
          : std::vector<AxisId>(stage.data.begin() + static_cast<long>(rows_.size()),
                                stage.data.end());
  for (const AxisId axis : own) {
    const auto extent = constant_extent(graph_, axis);
    if (!extent || *extent < 1 || !ir::is_const(graph_.axes[axis].minimum, 0)) return std::nullopt;
    line.push_back({graph_.axes[axis].value, *extent});
  }
  analysis::Facts facts;
  for (const ir::VarRef& row : rows_)
    facts.push_range(row, ir::index(0), nullptr);
  ir::Substitution zeros;
  for (const LineAxis& axis : line) {
    facts.push_range(axis.var, ir::index(0), ir::index(axis.extent));
    zeros[axis.var] = ir::index(0);
  }
  std::vector<ir::Expr> indices;
  for (const ir::Expr& index : read.indices)
    indices.push_back(analysis::simplify(ir::substitute(index, values), facts));
  const auto strides = strides_of(indices, line);
  if (!strides) return std::nullopt;
  const auto moves = [](const std::vector<int64_t>& of_index) {
    return std::ranges::any_of(of_index, [](int64_t stride) { return stride != 0; });
  };
  RowPlace place{
      .first = {},
      .from = static_cast<size_t>(std::ranges::find_if(*strides, moves) - strides->begin())};
  for (const ir::Expr& index : indices)
    place.first.push_back(analysis::simplify(ir::substitute(index, zeros)));
  const std::vector<ir::Expr>& shape = graph_[read.stage].shapes[read.output];
  const bool is_of_row = place.from < indices.size() && ir::is_const(place.first.back(), 0) &&
                         fills_a_box(*strides, line) &&
                         are_neighbours(*strides, line, shape, place.from);
  return is_of_row ? std::optional(place) : std::nullopt;
}

}  // namespace kiln::autoschedule
