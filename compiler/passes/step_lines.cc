// The lines of tensors that a recurrence goes along.
#include "compiler/passes/step_lines.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::passes {

using namespace ir;

constexpr int64_t kVectorBytes = 16;  // that a thread moves at once

std::optional<Line> line_of(const BufferRef& buffer, const std::vector<Expr>& indices,
                            const VarRef& step) {
  const auto moves = [&](const Expr& index) { return uses_var(index, step); };
  if (buffer->scope != Scope::Global || std::ranges::count_if(indices, moves) != 1 ||
      std::ranges::any_of(indices, reads_memory))
    return std::nullopt;
  Line line{buffer, indices, 0, nullptr};
  line.dimension = static_cast<size_t>(std::ranges::find_if(indices, moves) - indices.begin());
  Expr& along = line.indices[line.dimension];
  const std::optional<int64_t> stride = analysis::stride_of(along, step);
  if (!stride || std::abs(*stride) != 1) return std::nullopt;
  line.direction = *stride;
  line.first = analysis::simplify(substitute(along, {{step, index(0)}}));
  along = index(0);
  return line;
}

std::vector<Expr> Line::at(const Expr& step) const {
  std::vector<Expr> place = indices;
  place[dimension] = analysis::simplify(direction > 0 ? step + first : first - step);
  return place;
}

namespace {

bool is_same_line(const Line& a, const Line& b) {
  const auto are_equal = [](const Expr& x, const Expr& y) { return equal_trees(x, y); };
  return a.buffer == b.buffer && a.dimension == b.dimension && a.direction == b.direction &&
         std::ranges::equal(a.indices, b.indices, are_equal);
}

}  // namespace

bool is_same_element(const Line& a, const Line& b) {
  return is_same_line(a, b) && equal_trees(a.first, b.first);
}

int64_t per_vector(const Line& result) {
  return result.is_row() ? kVectorBytes / size_of(result.buffer->type) : 1;
}

void ReadLines::visit(const Load& load) {
  const std::optional<Line> line = line_of(load.buffer, load.indices, step_);
  if (load.buffer == result_.buffer) {
    const bool is_last = line && is_same_line(*line, result_) &&
                         is_const(analysis::simplify(result_.first - line->first), line->direction);
    reads_last_ = reads_last_ || is_last;
    reads_more_ = reads_more_ || !is_last || load.predicate;
  } else if (line && !load.predicate && load.type.lanes == 1 && may_be_held(*line)) {
    const auto is_known = [&](const Line& known) { return is_same_element(known, *line); };
    if (std::ranges::none_of(lines, is_known)) lines.push_back(*line);
  }
  Visitor::visit(load);
}

void ReadLines::visit(const Call& call) {
  // What is chosen may not be there to be loaded.
  reads_more_ = reads_more_ || call.op == Operator::IfThenElse;
  Visitor::visit(call);
}

/// Vectors of a row begin where those of the result do.
bool ReadLines::may_be_held(const Line& line) const {
  if (!result_.is_row()) return true;
  const std::optional<int64_t> further =
      as_const_int(analysis::simplify(line.first - result_.first));
  return line.is_row() && line.direction > 0 && further && *further % per_vector(result_) == 0 &&
         size_of(line.buffer->type) == size_of(result_.buffer->type);
}

}  // namespace kiln::passes
