// Takes padding out of a product, so that what is left is a contraction and has tiles.
//
//   sum(if_then_else(inside, X[..], 0) * W[..])  ->  P = if_then_else(..); sum(P[..] * W[..])
//
// Explicit padding before a convolution, as frameworks write it; here only where the sum reads each
// copied element often enough, and only if tiles come of it: otherwise the schedule is as given.
#include "compiler/autoschedule/templates/padded_factors.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/window_sketches.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/apply_steps.h"
#include "compiler/schedule/steps/padded_read.h"

namespace kiln::autoschedule {
namespace {

using language::TensorId;

// Making an element of the copy takes about as long as so many steps of a sum in tiles: 1 to 2
// cycles
// (`copied_row_cycles`), in which a core has begun 2 to 4 vectors of 8 or 16 multiply-adds.
constexpr double kCopySteps = 16;

/// The tensors that the factors of a sum of products are padded reads of.
std::vector<TensorId> padded_tensors(const Stage& stage) {
  const ir::Binary* product = summed_product(stage);
  if (product == nullptr) return {};
  std::vector<TensorId> tensors;
  for (const ir::Expr& factor : {product->a, product->b}) {
    if (const auto padded = find_padded(factor)) tensors.push_back(padded->tensor);
  }
  return tensors;
}

/// Whether the sum reads an element of the copy often enough to pay for it.
bool is_read_often(const StageGraph& graph, StageId id, const std::vector<ir::Expr>& shape) {
  const std::optional<int64_t> work = constant_work(graph, id);
  double elements = 1;
  for (const ir::Expr& extent : shape) {
    const std::optional<int64_t> count = ir::as_const_int(extent);
    if (!work || !count) return true;
    elements *= static_cast<double>(*count);
  }
  return elements * kCopySteps <= static_cast<double>(*work);
}

class PadFactors {
 public:
  PadFactors(const language::Kernel& kernel, const HasTiles& has_tiles)
      : kernel_(kernel), has_tiles_(has_tiles) {}

  language::Schedule run(language::Schedule schedule) const {
    StageGraph graph = schedule::build_stage_graph(kernel_);
    const auto is_padded = [](const Stage& stage) { return !padded_tensors(stage).empty(); };
    if (std::ranges::none_of(graph.stages, is_padded)) return schedule;
    schedule::apply_steps(graph, schedule);
    const std::vector<bool> touched = touched_roots(graph);
    for (const StageId id : graph.order) {
      const StageId whole = graph[id].part_of.value_or(id);
      if (!is_padded(graph[id]) || !is_free(graph, whole) || touched[whole]) continue;
      schedule = with_copies(std::move(schedule), id, whole);
    }
    return schedule;
  }

 private:
  /// With one step for each padded factor of the sum, if tiles come of it.
  language::Schedule with_copies(language::Schedule given, StageId id, StageId whole) const {
    language::Schedule schedule = given;
    while (true) {
      StageGraph graph = schedule::build_stage_graph(kernel_);
      schedule::apply_steps(graph, schedule);
      // A step changes the graph, and the second factor may be padded too: so one at a time.
      const std::vector<TensorId> left = padded_tensors(graph[id]);
      if (left.empty()) return has_tiles_(graph, id) ? schedule : given;
      const auto found = schedule::find_padded_read(graph, whole, left[0]);
      const auto* padded = std::get_if<schedule::PaddedRead>(&found);
      if (padded == nullptr || !is_read_often(graph, id, padded->shape)) return given;
      StepWriter steps(std::move(schedule), graph);
      steps.cache_padded(left[0], whole);
      schedule = std::move(steps).schedule();
    }
  }

  const language::Kernel& kernel_;
  const HasTiles& has_tiles_;
};

}  // namespace

language::Schedule with_padded_stages(const language::Kernel& kernel, language::Schedule given,
                                      const HasTiles& has_tiles) {
  return PadFactors(kernel, has_tiles).run(std::move(given));
}

bool has_vector_tiles(const Chooser& chooser, StageId id) {
  return is_product(chooser.graph, id) || window_sketch(chooser, id, false);
}

}  // namespace kiln::autoschedule
