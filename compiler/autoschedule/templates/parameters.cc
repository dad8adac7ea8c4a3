// The values that a parameter of a sketch may have: those around the preferred one that the extent
// of the axis, where it is known, has room for.
#include "compiler/autoschedule/templates/parameters.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/tile_cost.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// Of a shared loop: with as many a core of a plan for few nobody waits for the last one.
constexpr int64_t kManyIterations = kManyTasks * kFewCores;

}  // namespace

Parameter lanes_parameter(const StageGraph& graph, const std::vector<AxisId>& line,
                          int64_t preferred) {
  constexpr int64_t kFewest = 4;
  const int64_t extent = constant_extent_of(graph, line).value_or(preferred * 4);
  Parameter lanes{.name = "lanes", .values = {}, .preferred = preferred};
  // Those of all columns may be an odd number.
  for (const int64_t value : {preferred / 2, preferred, preferred * 2, preferred * 4}) {
    if (value == preferred || (value >= kFewest && value <= extent)) lanes.values.push_back(value);
  }
  return lanes;
}

Parameter tile_parameter(const StageGraph& graph, std::string name, AxisId axis,
                         std::vector<int64_t> values, int64_t preferred) {
  const std::optional<int64_t> extent = constant_extent(graph, axis);
  std::erase_if(values, [&](int64_t value) {
    return extent && value != preferred && value > std::max<int64_t>(*extent, 1);
  });
  return {std::move(name), std::move(values), preferred};
}

Parameter block_parameter() { return {"block", {32, 64, 128, 256, 512, 1024}, 256}; }

Parameter parallel_parameter(bool preferred) { return {"parallel", {0, 1}, preferred ? 1 : 0}; }

void parallel_outer(const StageGraph& graph, StepWriter& steps, StageId stage,
                    const std::vector<AxisId>& loops) {
  int64_t iterations = 1;
  const size_t known = graph.axes.size();
  for (const AxisId loop : loops) {
    if (iterations >= kManyIterations) return;
    const std::optional<int64_t> extent =
        loop < known ? constant_extent(graph, loop) : std::nullopt;
    if (extent == 1) continue;
    steps.parallel(stage, loop);
    iterations = std::min(kManyIterations, extent.value_or(kManyIterations)) * iterations;
  }
}

}  // namespace kiln::autoschedule
