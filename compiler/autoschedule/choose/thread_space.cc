// For GPUs: rows that are reduced get a block each, contractions one for each tile, other untouched
// stages one thread an element, and one with steps that bind nothing gets its outermost loop bound,
// since a kernel without threads could not run there.
#include "compiler/autoschedule/choose/thread_space.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/autoschedule/choose/inline_elements.h"
#include "compiler/autoschedule/choose/thread_groups.h"
#include "compiler/autoschedule/choose/thread_tiles.h"
#include "compiler/autoschedule/recognise/inner_reductions.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/block_tiles.h"
#include "compiler/autoschedule/templates/column_threads.h"
#include "compiler/autoschedule/templates/few_rows.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/padded_factors.h"
#include "compiler/autoschedule/templates/row_threads.h"
#include "compiler/autoschedule/templates/scan_threads.h"
#include "compiler/autoschedule/templates/split_sums.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/thread_sketches.h"

namespace kiln::autoschedule {
namespace {

using schedule::Attach;

bool has_bound_loop(const StageGraph& graph, StageId root) {
  for (StageId id = 0; id < graph.stages.size(); ++id) {
    if (root_of(graph, id) != root) continue;
    for (const AxisId leaf : graph[id].loops.leaves) {
      if (graph.axes[leaf].thread != ir::ThreadAxis::None) return true;
    }
  }
  return false;
}

bool is_attach_axis(const StageGraph& graph, AxisId axis) {
  return std::any_of(graph.stages.begin(), graph.stages.end(), [&](const Stage& stage) {
    return stage.is_live && stage.attach.kind == Attach::Kind::At && stage.attach.axis == axis;
  });
}

/// A stage with steps but none that binds: its outermost loop (after that of time, in a scan) goes
/// to the threads, which changes the order of nothing.
void bind_outermost(const StageGraph& graph, StepWriter& steps, StageId id, bool has_time) {
  const Stage& stage = graph[id];
  std::vector<AxisId> leaves = stage.loops.leaves;
  if (has_time) std::erase(leaves, stage.time_axis());
  if (leaves.empty()) return;
  const AxisId leaf = leaves[0];
  const schedule::Axis& axis = graph.axes[leaf];
  const bool is_free = axis.kind == schedule::AxisKind::Data && axis.annotated_by < 0;
  if (!is_free) return;
  if (is_attach_axis(graph, leaf)) {
    steps.bind(id, leaf, "blockIdx.x");
    return;
  }
  const auto [block, thread] = steps.split(id, leaf, 256);
  steps.bind(id, block, "blockIdx.x");
  steps.bind(id, thread, "threadIdx.x");
}

/// What a stage with steps gets on a GPU: nothing is left open.
std::vector<Sketch> touched_sketches(const StageGraph& graph, StageId root) {
  if (has_bound_loop(graph, root) || graph[root].kind == Stage::Kind::Scatter) return {};
  const bool is_scan = graph[root].kind != Stage::Kind::Compute;
  const std::vector<StageId> nests =
      is_scan ? nests_of_scan(graph, root) : std::vector<StageId>{root};
  return {{.name = "as written, its outermost loop bound",
           .parameters = {},
           .write = [&graph, nests, is_scan](StepWriter& steps, const Values&) {
             for (const StageId nest : nests)
               bind_outermost(graph, steps, nest, is_scan);
           }}};
}

/// Stages that the sketches of others schedule.
std::set<StageId> taken_stages(const std::map<StageId, Tiles>& tiles,
                               const std::map<StageId, Group>& groups) {
  std::set<StageId> taken;
  for (const auto& [id, of_stage] : tiles) {
    taken.insert(of_stage.preceding.begin(), of_stage.preceding.end());
    if (of_stage.epilogue) taken.insert(of_stage.epilogue->stage);
  }
  for (const auto& [last, group] : groups)
    taken.insert(group.members.begin(), group.members.end());
  return taken;
}

}  // namespace

OpenSchedule start_for_threads(const language::Kernel& kernel, const language::Schedule& given,
                               const Target& target, const CompileOptions& options) {
  const Machine machine = machine_of(target.arch);
  const auto gains = [&](const StageGraph& graph, StageId id) {
    const Chooser chooser{graph, options, machine};
    return has_block_tiles(graph, id) || is_row_reduction(chooser, id) ||
           is_column_reduction(chooser, id) || is_few_rows_product(chooser, id) ||
           lines_of_thread(graph, id, gpu_machine(target.arch));
  };
  // A factor that is more than an element hides the product, of which a reduction stage would be
  // made.
  language::Schedule padded =
      with_padded_stages(kernel, given, InnerFactors::Computed, has_block_tiles);
  OpenSchedule start = with_inline_elements(
      kernel, {with_reduction_stages(kernel, std::move(padded), gains), {}}, Reads::AtOnePlace);
  return with_split_sums(kernel, std::move(start), target, options, split_for_threads);
}

std::vector<StageSketches> thread_space(const Chooser& chooser, const std::vector<bool>& touched) {
  const StageGraph& graph = chooser.graph;
  std::map<StageId, Tiles> tiles = tiles_of_stages(chooser, touched);
  std::map<StageId, Group> groups = groups_for_threads(chooser, touched, tiles);
  const std::set<StageId> members = taken_stages({}, groups);
  for (auto& [id, of_stage] : tiles)
    if (of_stage.epilogue && members.contains(of_stage.epilogue->stage))
      of_stage =
          tiles_of(chooser, id, std::nullopt, [preceding = of_stage.preceding](StageId each) {
            return std::ranges::find(preceding, each) != preceding.end();
          });
  std::erase_if(tiles, [&](const auto& each) {
    return each.second.sketches.empty() || groups.contains(each.first);
  });
  const std::set<StageId> taken = taken_stages(tiles, groups);
  std::vector<StageSketches> stages;
  for (const StageId id : graph.stage_of_id) {
    if (!has_own_loops(graph, id) || taken.contains(id)) continue;
    std::vector<Sketch> sketches;
    if (const auto group = groups.find(id); group != groups.end()) {
      sketches = std::move(group->second.sketches);
    } else if (const auto of_tile = tiles.find(id); of_tile != tiles.end()) {
      sketches = std::move(of_tile->second.sketches);
    } else {
      sketches = touched[id] ? touched_sketches(graph, id) : thread_sketches(chooser, id);
    }
    if (!sketches.empty()) stages.push_back({id, std::move(sketches)});
  }
  return stages;
}

}  // namespace kiln::autoschedule
