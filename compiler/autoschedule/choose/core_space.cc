// For vector targets: first the steps that change which stages there are (padded copies, reduction
// stages, transposed products, fusion), then a list of sketches for each root stage that no step
// has touched, as the templates have them for its kind.
#include "compiler/autoschedule/choose/core_space.h"

#include <algorithm>

#include "compiler/autoschedule/choose/fusion.h"
#include "compiler/autoschedule/choose/product_chains.h"
#include "compiler/autoschedule/recognise/inner_reductions.h"
#include "compiler/autoschedule/templates/followed_tiles.h"
#include "compiler/autoschedule/templates/image_sketches.h"
#include "compiler/autoschedule/templates/merged_reductions.h"
#include "compiler/autoschedule/templates/padded_factors.h"
#include "compiler/autoschedule/templates/split_sums.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/transposed_products.h"

namespace kiln::autoschedule {
namespace {

std::vector<Sketch> core_sketches(const Chooser& chooser, StageId root) {
  switch (chooser.graph[root].kind) {
    case Stage::Kind::Scan: return scan_sketches(chooser, root);
    case Stage::Kind::Scatter: return scatter_sketches(chooser, root);
    default: return with_image_sketches(chooser, root, compute_sketches(chooser, root, true));
  }
}

/// Stages that the sketches of another one schedule.
std::vector<StageId> taken_sources(const Chooser& chooser, const std::vector<bool>& touched) {
  std::vector<StageId> taken;
  for (const StageId id : chooser.graph.stage_of_id) {
    if (touched[id] || chooser.graph[id].kind != Stage::Kind::Compute) continue;
    if (const auto source = taken_source(chooser, id)) taken.push_back(*source);
  }
  return taken;
}

}  // namespace

OpenSchedule start_for_cores(const language::Kernel& kernel, const language::Schedule& given,
                             const Target& target, const CompileOptions& options) {
  language::Schedule schedule = with_padded_stages(
      kernel, given, InnerFactors::Padded, [&](const StageGraph& graph, StageId id) {
        return has_vector_tiles(Chooser{graph, options}, id);
      });
  const Machine machine = machine_of(target.arch);
  const auto gains = [&](const StageGraph& graph, StageId id) {
    return gains_vectors(graph, id) || split_for_cores({graph, options, machine}, id);
  };
  schedule = with_reduction_stages(kernel, std::move(schedule), gains);
  schedule = with_product_chains(kernel, std::move(schedule), target, options);
  OpenSchedule open = with_transposed_products(kernel, std::move(schedule), target, options);
  open = with_merged_reductions(kernel, std::move(open));
  open = with_split_sums(kernel, std::move(open), target, options, split_for_cores);
  return fuse_stages(kernel, std::move(open), options, machine);
}

std::vector<StageSketches> core_space(const Chooser& chooser, const std::vector<bool>& touched) {
  std::vector<StageSketches> stages;
  const std::vector<StageId> taken = taken_sources(chooser, touched);
  for (const StageId id : chooser.graph.stage_of_id) {
    if (touched[id] || !has_own_loops(chooser.graph, id)) continue;
    if (std::ranges::find(taken, id) != taken.end()) continue;
    std::vector<Sketch> sketches = core_sketches(chooser, id);
    if (!sketches.empty()) stages.push_back({id, std::move(sketches)});
  }
  follow_tiles(chooser, stages);
  return stages;
}

}  // namespace kiln::autoschedule
