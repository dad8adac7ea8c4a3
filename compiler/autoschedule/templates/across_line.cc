// Finds axes that go on into each other, for blocks of a stage that reads across: an image whose
// channels come first is turned as if its lines were one.
//
//   Y[n, c, h, w] = X[n, h, w, c]    h and w: 3136 columns of 64 rows, not 56 times 56
#include "compiler/autoschedule/templates/across_line.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/joined_axes.h"

namespace kiln::autoschedule {

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

}  // namespace kiln::autoschedule
