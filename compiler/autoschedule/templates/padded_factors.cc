// Takes padding, and what else is computed of a factor, out of a product, so that what is left is a
// contraction of elements and has tiles.
//
//   sum(if_then_else(inside, X[..], 0) * W[..])  ->  P = if_then_else(..); sum(P[..] * W[..])
//   sum(float32(max(A[..], 0)) * float32(B[..]))  ->  R = max(A[..], 0); sum(float32(R[..]) * ..)
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

/// The tensor that most of a computed factor is made of, which has as many dimensions as any in it;
/// nothing where the factor is an element, whatever its type becomes.
std::optional<TensorId> computed_tensor(const ir::Expr& factor) {
  ir::Expr inner = schedule::without_casts(factor);
  if (const auto* call = ir::as<ir::Call>(inner); call && call->op == language::Operator::Tf32)
    inner = schedule::without_casts(call->args[0]);
  if (ir::as<ir::TensorRead>(inner) != nullptr) return std::nullopt;
  const ir::TensorRead* most = nullptr;
  schedule::for_each_read(inner, [&](const ir::TensorRead& read) {
    if (most == nullptr || read.indices.size() > most->indices.size()) most = &read;
  });
  return most == nullptr ? std::nullopt : std::optional(TensorId{most->stage, most->output});
}

/// The tensors that the factors of a sum of products are made of, where they are no elements.
std::vector<TensorId> tensors_inside(const Stage& stage, InnerFactors factors) {
  const ir::Binary* product = summed_product(stage);
  if (product == nullptr) return {};
  std::vector<TensorId> tensors;
  for (const ir::Expr& factor : {product->a, product->b}) {
    if (const auto padded = find_padded(factor)) {
      tensors.push_back(padded->tensor);
    } else if (factors == InnerFactors::Computed) {
      if (const auto computed = computed_tensor(factor)) tensors.push_back(*computed);
    }
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
  PadFactors(const language::Kernel& kernel, InnerFactors factors, const HasTiles& has_tiles)
      : kernel_(kernel), factors_(factors), has_tiles_(has_tiles) {}

  language::Schedule run(language::Schedule schedule) const {
    StageGraph graph = schedule::build_stage_graph(kernel_);
    const auto is_padded = [&](const Stage& stage) {
      return !tensors_inside(stage, factors_).empty();
    };
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
      const std::vector<TensorId> left = tensors_inside(graph[id], factors_);
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
  const InnerFactors factors_;
  const HasTiles& has_tiles_;
};

}  // namespace

language::Schedule with_padded_stages(const language::Kernel& kernel, language::Schedule given,
                                      InnerFactors factors, const HasTiles& has_tiles) {
  return PadFactors(kernel, factors, has_tiles).run(std::move(given));
}

bool has_vector_tiles(const Chooser& chooser, StageId id) {
  return is_product(chooser.graph, id) || window_sketch(chooser, id, false);
}

}  // namespace kiln::autoschedule
