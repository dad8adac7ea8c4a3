// Orders the sketches of a convolution by what they cost, cheapest first: which is taken
// unmeasured. Those of a plain contraction follow them. Padding that only the convolution reads is
// scheduled here too: in its blocks where a sketch places it, else whole, before.
#include "compiler/autoschedule/templates/image_sketches.h"

#include <algorithm>

#include "compiler/autoschedule/templates/convolution.h"
#include "compiler/autoschedule/templates/stage_cycles.h"

namespace kiln::autoschedule {
namespace {

struct Costed {
  double cycles = 0;
  bool needs_source = false;  // computed whole, before
  bool adds_groups = false;
  Sketch sketch;
};

/// The same with the steps of another stage in front, which is computed first and whole.
Sketch after(const Sketch& first, Sketch sketch) {
  sketch.write = [first, write = sketch.write](StepWriter& steps, const Values& values) {
    first.write_preferred(steps);
    write(steps, values);
  };
  return sketch;
}

/// The sketches of its own, the cheapest first: those that place what the window slides over
/// themselves, and those that need it whole.
std::vector<Costed> ways_of(const StageGraph& graph, const Convolution& convolution,
                            bool parallel) {
  std::vector<Costed> ways = {
      {.cycles = lines_cycles(convolution), .sketch = lines_sketch(graph, convolution, parallel)}};
  if (may_have_channels(graph, convolution)) {
    const bool copies_filters = !channels_of_panels(graph, convolution).has_value();
    ways.push_back({.cycles = channels_cycles(convolution, copies_filters),
                    .sketch = channels_sketch(graph, convolution, parallel)});
  }
  if (may_have_pixels(graph, convolution)) {
    ways.push_back({.cycles = pixels_cycles(convolution),
                    .needs_source = true,
                    .sketch = pixels_sketch(graph, convolution, parallel)});
  }
  if (may_have_patches(graph, convolution)) {
    ways.push_back({.cycles = patches_cycles(convolution),
                    .needs_source = needs_padding_first(graph, convolution),
                    .adds_groups = convolution.patch_group.products > 1,
                    .sketch = patches_sketch(graph, convolution, parallel)});
  }
  std::ranges::stable_sort(ways, {}, &Costed::cycles);
  return ways;
}

/// Pairs of floats give other bits than floats one by one, so they are the only way or none. Those
/// of integers are one of the ways.
void keep_one_order(const StageGraph& graph, StageId id, Convolution convolution, bool parallel,
                    std::vector<Costed>& ways, std::vector<Sketch>& others) {
  const bool adds_pairs = convolution.patch_group.products > 1 && is_float(graph[id].types[0]);
  if (!adds_pairs) return;
  if (ways[0].adds_groups) {
    ways.resize(1);
    others.clear();
  } else {
    convolution.patch_group = {};
    ways = ways_of(graph, convolution, parallel);
  }
}

}  // namespace

std::optional<StageId> taken_source(const Chooser& chooser, StageId id) {
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution || !convolution->image.is_computed_for) return std::nullopt;
  return convolution->image.source.stage;
}

std::optional<FilterPanels> wanted_panels(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution || !may_have_channels(graph, *convolution)) return std::nullopt;
  double others = lines_cycles(*convolution);
  if (may_have_pixels(graph, *convolution)) others = std::min(others, pixels_cycles(*convolution));
  if (may_have_patches(graph, *convolution))
    others = std::min(others, patches_cycles(*convolution));
  if (channels_cycles(*convolution, /*copies_filters=*/false) > others) return std::nullopt;
  return filter_panels(graph, *convolution, channels_of_vectors(*convolution));
}

std::vector<Sketch> with_image_sketches(const Chooser& chooser, StageId id,
                                        std::vector<Sketch> sketches) {
  const StageGraph& graph = chooser.graph;
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution) return sketches;
  const bool parallel = is_worth_sharing(chooser, id);
  std::vector<Costed> costed = ways_of(graph, *convolution, parallel);
  keep_one_order(graph, id, *convolution, parallel, costed, sketches);
  for (Sketch& sketch : sketches)
    costed.push_back({.needs_source = true, .sketch = std::move(sketch)});

  std::optional<Sketch> source;
  if (convolution->image.is_computed_for) {
    std::vector<Sketch> first =
        compute_sketches(chooser, convolution->image.source.stage, /*may_be_parallel=*/true);
    if (!first.empty()) source = std::move(first[0]);
  }
  std::vector<Sketch> all;
  for (Costed& each : costed) {
    const bool has_source_first = each.needs_source && source;
    all.push_back(has_source_first ? after(*source, std::move(each.sketch))
                                   : std::move(each.sketch));
  }
  return all;
}

}  // namespace kiln::autoschedule
