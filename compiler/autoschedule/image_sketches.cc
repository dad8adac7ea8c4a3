#include "compiler/autoschedule/image_sketches.h"

#include "compiler/autoschedule/convolution.h"

namespace kiln::autoschedule {
namespace {

/// The same with the steps of another stage in front, which is computed first and whole.
Sketch after(const Sketch& first, Sketch sketch) {
  sketch.write = [first, write = sketch.write](StepWriter& steps, const Values& values) {
    const std::vector<int64_t> preferred = first.preferred();
    first.write(steps, Values(first.parameters, preferred));
    write(steps, values);
  };
  return sketch;
}

}  // namespace

std::optional<StageId> taken_source(const Chooser& chooser, StageId id) {
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution || !convolution->image.is_computed_for) return std::nullopt;
  return convolution->image.source.stage;
}

std::vector<Sketch> with_image_sketches(const Chooser& chooser, StageId id,
                                        std::vector<Sketch> sketches) {
  const StageGraph& graph = chooser.graph;
  const std::optional<Convolution> convolution = find_convolution(chooser, id);
  if (!convolution) return sketches;
  const bool parallel = is_large(graph, id);
  std::vector<Sketch> whole = std::move(sketches);
  bool patches_first = false;
  if (may_have_patches(graph, *convolution)) {
    patches_first = patches_cycles(*convolution) < lines_cycles(*convolution);
    whole.insert(patches_first ? whole.begin() : whole.end(),
                 patches_sketch(graph, *convolution, parallel));
  }
  if (convolution->image.is_computed_for) {
    const std::vector<Sketch> source =
        compute_sketches(chooser, convolution->image.source.stage, /*may_be_parallel=*/true);
    if (!source.empty()) {
      for (Sketch& sketch : whole)
        sketch = after(source[0], std::move(sketch));
    }
  }
  whole.insert(patches_first ? whole.begin() + 1 : whole.begin(),
               lines_sketch(graph, *convolution, parallel));
  return whole;
}

}  // namespace kiln::autoschedule
