// How many steps of a scan need memory at once: where later stages read only the last ones, a ring
// of as many as the init gives and one more.
//
//   S[t] = S[t - 1] + S[t - 2], of which S[n - 1] is read  ->  3 steps, at t % 3
//
// Storage folding, as Halide's, over time.
#include "compiler/schedule/bounds/scan_window.h"

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/scan_loops.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

/// Whether an index of time, read by `reader`, is always one of the last `window` steps.
bool is_among_last(const StageGraph& graph, StageId scan, const Stage& reader,
                   const ir::Expr& index, int64_t window, const analysis::Facts& sizes) {
  std::vector<analysis::Facts::Range> ranges;
  for (const std::vector<AxisId>* axes : {&reader.data, &reader.reduce}) {
    for (const AxisId id : *axes) {
      const Axis& axis = graph.axes[id];
      if (ir::uses_var(index, axis.value)) {
        ranges.push_back({axis.value, axis.minimum, axis.minimum + axis.extent});
      }
    }
  }
  bool reads = false;
  for_each_read(index, [&](const ir::TensorRead&) { reads = true; });
  if (reads) return false;
  const analysis::Interval bounds = analysis::bounds_of(index, ranges, sizes);
  if (!bounds.min || !bounds.max) return false;
  const ir::Expr& steps = steps_of(graph, scan);
  const auto in_order = [&](const ir::Expr& a, const ir::Expr& b) {
    return analysis::can_prove(ir::less_equal(a, b), sizes);
  };
  return graph[scan].as_scan.is_reverse ? in_order(bounds.max, ir::index(window - 1))
                                        : in_order(steps - window, bounds.min);
}

}  // namespace

std::optional<int64_t> window_of(const StageGraph& graph, StageId scan, uint32_t output,
                                 const analysis::Facts& sizes) {
  if (graph.is_parameter({scan, output})) return std::nullopt;
  // Parts come to their last steps at once.
  if (graph[scan].as_scan.steps_in_part > 0) return std::nullopt;
  const std::optional<int64_t> initial =
      ir::as_const_int(graph.axes[graph[scan].as_scan.time].minimum);
  if (!initial) return std::nullopt;
  const int64_t window = *initial + 1;
  const std::optional<int64_t> steps = ir::as_const_int(steps_of(graph, scan));
  if (steps && *steps <= window) return std::nullopt;
  const auto time = static_cast<size_t>(graph[scan].time_dimension);
  for (const Stage& reader : graph.stages) {
    if (!runs_over_axes(reader) || !reader.is_live) continue;
    bool among_last = true;
    for (const ir::Expr& expr : reading_parts(graph, reader)) {
      for_each_read(expr, [&](const ir::TensorRead& read) {
        if (read.stage != scan || read.output != output) return;
        among_last =
            among_last && is_among_last(graph, scan, reader, read.indices[time], window, sizes);
      });
    }
    if (!among_last) return std::nullopt;
  }
  return window;
}

}  // namespace kiln::schedule
