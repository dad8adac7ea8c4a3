// Finds axes that go on into each other, for blocks of a stage that reads across: an image whose
// channels come first is turned as if its lines were one.
//
//   Y[n, c, h, w] = X[n, h, w, c]    h and w: 3136 columns of 64 rows, not 56 times 56
#include "compiler/autoschedule/templates/across_line.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

/// Whether a variable stands somewhere else than in the index of what is read.
class FindsOutsideReads : public ir::Visitor {
 public:
  FindsOutsideReads(const ir::Expr& expr, const ir::VarRef& var) : var_(var) { (*this)(expr); }
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const ir::TensorRead&) override {}
  void visit(const ir::Var& var) override { found = found || &var == var_.get(); }

  const ir::VarRef& var_;
};

/// Whether an axis and the next one are one axis of each tensor, as the lines of an image and what
/// they consist of.
bool goes_on_into(const StageGraph& graph, StageId id, AxisId axis, AxisId next) {
  const std::vector<AxisId>& data = graph[id].data;
  const auto place = std::ranges::find(data, axis);
  const std::optional<int64_t> length = constant_extent(graph, next);
  if (place == data.end() || place + 1 == data.end() || *(place + 1) != next || !length ||
      !constant_extent(graph, axis))
    return false;
  bool is_one = true;
  for (const ir::Expr& body : schedule::expanded_bodies(graph, id)) {
    for (const AxisId each : {axis, next})
      is_one = is_one && !FindsOutsideReads(body, graph.axes[each].value).found;
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      const std::optional<int64_t> outer = distance_along(graph, read, axis);
      const std::optional<int64_t> inner = distance_along(graph, read, next);
      is_one = is_one && outer && inner && *outer == *inner * *length;
    });
  }
  return is_one;
}

}  // namespace

std::vector<AxisId> line_of(const StageGraph& graph, StageId id, AxisId across) {
  std::vector<AxisId> columns = columns_of(graph[id]);
  std::vector<AxisId> line = {columns.back()};
  columns.pop_back();
  while (!columns.empty() && columns.back() != across &&
         goes_on_into(graph, id, columns.back(), line.front())) {
    line.insert(line.begin(), columns.back());
    columns.pop_back();
  }
  return line;
}

std::vector<AxisId> others_of(const StageGraph& graph, StageId id, AxisId across,
                              const std::vector<AxisId>& line) {
  std::vector<AxisId> others = columns_of(graph[id]);
  std::erase_if(others, [&](AxisId axis) {
    return axis == across || std::ranges::find(line, axis) != line.end();
  });
  return others;
}

AxisId fused(StepWriter& steps, StageId id, const std::vector<AxisId>& line) {
  return line.size() > 1 ? steps.fuse(id, line) : line[0];
}

}  // namespace kiln::autoschedule
