// For GPUs: rows that are reduced get a block each, contractions one for each tile, other untouched
// stages one thread an element, and one with steps that bind nothing gets its outermost loop bound,
// since a kernel without threads could not run there.
#include "compiler/autoschedule/choose/thread_space.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/autoschedule/choose/inline_elements.h"
#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/recognise/inner_reductions.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/across_threads.h"
#include "compiler/autoschedule/templates/block_tiles.h"
#include "compiler/autoschedule/templates/column_threads.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/few_rows.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/matrix_tiles.h"
#include "compiler/autoschedule/templates/padded_factors.h"
#include "compiler/autoschedule/templates/row_threads.h"
#include "compiler/autoschedule/templates/shared_transposes.h"
#include "compiler/autoschedule/templates/split_rows.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/reads.h"

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

/// The inits of a scan and what stands directly in its time loop.
std::vector<StageId> nests_of_scan(const StageGraph& graph, StageId scan) {
  std::vector<StageId> nests;
  for (const StageId id : graph.stage_of_id) {
    const Stage& stage = graph[id];
    const bool is_init = stage.role.is_init && stage.role.init_of == scan;
    const bool in_time = stage.attach.kind == Attach::Kind::At && stage.attach.stage == scan;
    if (stage.is_live && (is_init || in_time)) nests.push_back(id);
  }
  return nests;
}

/// Threads of a block.
const Parameter kBlock = {"block", {32, 64, 128, 256, 512, 1024}, 256};

/// Threads of a block that runs columns through time, which are mostly few: so many that there are
/// as many blocks as multiprocessors.
int64_t block_of_columns(const Chooser& chooser, StageId nest) {
  const std::optional<int64_t> columns =
      constant_extent_of(chooser.graph, columns_of(chooser.graph[nest]));
  if (!columns) return kBlock.preferred;
  const int64_t multiprocessors = gpu_machine(chooser.arch).multiprocessors;
  int64_t threads = kBlock.preferred;
  while (threads > ir::kWarp && *columns / threads < multiprocessors)
    threads /= 2;
  return threads;
}

/// Sketches that schedule other stages beside their own: what is put around what they read, and
/// what is made of results that are in registers before they are stored.
struct Tiles {
  std::vector<Sketch> sketches;
  std::vector<StageId> paddings;
  std::optional<Epilogue> epilogue;
};

std::vector<StageId> in_list(std::optional<StageId> stage) {
  return stage ? std::vector<StageId>{*stage} : std::vector<StageId>{};
}

/// Stages that put something around what only this one reads.
std::vector<StageId> paddings_for(const StageGraph& graph, StageId id) {
  std::vector<StageId> found;
  for (const language::TensorId input : schedule::direct_inputs(graph, graph[id]))
    if (is_padding_for(graph, input.stage, id)) found.push_back(input.stage);
  return found;
}

/// One thread an element, as of windows that slide.
Tiles element_tiles(const Chooser& chooser, StageId id, const std::optional<Epilogue>& epilogue) {
  const StageGraph& graph = chooser.graph;
  const bool is_plain =
      is_open(graph, id) && reductions_inside(graph, id).empty() && !is_row_reduction(chooser, id);
  if (!is_plain) return {};
  Tiles tiles{.paddings = paddings_for(graph, id)};
  if (graph[id].is_reduction()) tiles.epilogue = epilogue;
  const auto lines = lines_of_thread(graph, id, gpu_machine(chooser.arch));
  if (tiles.paddings.empty() && !tiles.epilogue && !lines) return {};
  tiles.sketches = {{.name = "threads",
                     .parameters = {kBlock},
                     .write = [&graph, id, lines, paddings = tiles.paddings,
                               epilogue = tiles.epilogue](StepWriter& steps, const Values& values) {
                       for (const StageId padding : paddings)
                         steps.compute_inline(padding);
                       bind_results(graph, steps, id, epilogue, lines, values.get("block", 256));
                     }}};
  return tiles;
}

/// Of a contraction, also of few rows, a reduction down columns, or one thread an element where
/// other stages go with it; of others no sketches.
Tiles tiles_of(const Chooser& chooser, StageId id, const std::optional<Epilogue>& epilogue) {
  // Either all of a stage's sketches keep the order of its sum, or none does.
  std::vector<Sketch> matrices = matrix_tile_sketches(chooser, id, epilogue);
  if (!matrices.empty())
    return {std::move(matrices), in_list(padding_of_matrix_tiles(chooser, id)), epilogue};
  std::vector<Sketch> blocks = block_tile_sketches(chooser, id, epilogue);
  if (!blocks.empty())
    return {std::move(blocks), in_list(padding_of_block_tiles(chooser.graph, id)), epilogue};
  std::vector<Sketch> columns = column_thread_sketches(chooser, id, epilogue);
  if (!columns.empty()) return {std::move(columns), {}, epilogue};
  std::vector<Sketch> few = few_rows_sketches(chooser, id, epilogue);
  if (!few.empty()) return {std::move(few), {}, epilogue};
  return element_tiles(chooser, id, epilogue);
}

/// By their stages. A stage that is made of two results is the epilogue of the first.
std::map<StageId, Tiles> tiles_of_stages(const Chooser& chooser, const std::vector<bool>& touched) {
  std::map<StageId, Tiles> found;
  std::set<StageId> taken;
  for (const StageId id : chooser.graph.stage_of_id) {
    if (touched[id] || chooser.graph[id].kind != Stage::Kind::Compute) continue;
    std::optional<Epilogue> epilogue = epilogue_of(chooser.graph, id);
    if (epilogue && (touched[epilogue->stage] || taken.contains(epilogue->stage)))
      epilogue = std::nullopt;
    Tiles tiles = tiles_of(chooser, id, epilogue);
    if (tiles.sketches.empty()) continue;
    if (tiles.epilogue) taken.insert(tiles.epilogue->stage);
    found.emplace(id, std::move(tiles));
  }
  return found;
}

/// A transpose in tiles; else one thread an element, or for some neighbours, or of a scatter one
/// for each of what cannot meet.
std::vector<Sketch> thread_sketches(const Chooser& chooser, StageId root) {
  const StageGraph& graph = chooser.graph;
  std::vector<Sketch> transposes = shared_transpose_sketches(chooser, root);
  if (!transposes.empty()) return transposes;
  if (graph[root].kind == Stage::Kind::Scatter) {
    return {{.name = "threads",
             .parameters = {kBlock},
             .write = [&graph, root](StepWriter& steps, const Values& values) {
               bind_scatter(graph, steps, root, values.get("block", 256));
             }}};
  }
  const std::vector<StageId> nests = graph[root].kind == Stage::Kind::Scan
                                         ? nests_of_scan(graph, root)
                                         : std::vector<StageId>{root};
  const int64_t lanes = lanes_of_thread(graph, root, gpu_machine(chooser.arch));
  std::vector<Parameter> parameters = {kBlock};
  if (graph[root].kind == Stage::Kind::Scan && !nests.empty())
    parameters[0].preferred = block_of_columns(chooser, nests.back());
  if (lanes > 1) parameters.push_back({"lanes", {1, lanes}, lanes});
  return {{.name = "threads",
           .parameters = std::move(parameters),
           .write = [&graph, nests](StepWriter& steps, const Values& values) {
             for (const StageId nest : nests)
               bind_elements(graph, steps, nest, values.get("block", 256), values.get("lanes", 1));
           }}};
}

/// A stage whose loops others go into, which then are no stages by themselves.
struct Group {
  std::vector<Sketch> sketches;
  std::vector<StageId> members;  // without the stage itself
};

/// Rows that a block has for itself, or lines across them of which a thread has one each.
std::optional<Group> group_of(const Chooser& chooser, StageId last) {
  const StageGraph& graph = chooser.graph;
  if (const auto rows = row_threads_of(chooser, last)) {
    return Group{
        {{.name = "a block a row",
          .parameters = {},
          .write = [&graph, rows = *rows](StepWriter& steps,
                                          const Values&) { bind_rows(graph, steps, rows); }}},
        joined({rows->reductions, rows->inlined})};
  }
  if (const auto lines = across_threads_of(chooser, last)) {
    return Group{{{.name = "a thread a line",
                   .parameters = {kBlock},
                   .write =
                       [&graph, lines = *lines](StepWriter& steps, const Values& values) {
                         bind_across(graph, steps, lines, values.get("block", 256));
                       }}},
                 joined({lines->reductions, lines->inlined})};
  }
  return std::nullopt;
}

/// By the stage that has the loop. Later stages take first what they read; epilogues of tiles have
/// no rows.
std::map<StageId, Group> groups_for_threads(const Chooser& chooser,
                                            const std::vector<bool>& touched,
                                            const std::map<StageId, Tiles>& tiles) {
  const StageGraph& graph = chooser.graph;
  std::map<StageId, Group> found;
  std::set<StageId> taken;
  for (const auto& [id, of_stage] : tiles)
    if (of_stage.epilogue) taken.insert(of_stage.epilogue->stage);
  for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
    const Stage& stage = graph[*id];
    const bool is_root = stage.is_live && stage.kind == Stage::Kind::Compute &&
                         stage.attach.kind == Attach::Kind::Root && !stage.part_of &&
                         !stage.role.is_init && stage.role.base_of < 0 && stage.role.cell_of < 0;
    if (!is_root || touched[*id] || taken.contains(*id)) continue;
    std::optional<Group> group = group_of(chooser, *id);
    if (!group) continue;
    taken.insert(group->members.begin(), group->members.end());
    found.emplace(*id, *std::move(group));
  }
  return found;
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
    taken.insert(of_stage.paddings.begin(), of_stage.paddings.end());
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
           is_column_reduction(chooser, id);
  };
  // A padded factor hides the product, of which a reduction stage would be made.
  language::Schedule padded = with_padded_stages(kernel, given, has_block_tiles);
  OpenSchedule start = with_inline_elements(
      kernel, {with_reduction_stages(kernel, std::move(padded), gains), {}}, Reads::AtOnePlace);
  return with_split_rows(kernel, std::move(start), target, options);
}

std::vector<StageSketches> thread_space(const Chooser& chooser, const std::vector<bool>& touched) {
  const StageGraph& graph = chooser.graph;
  std::map<StageId, Tiles> tiles = tiles_of_stages(chooser, touched);
  std::map<StageId, Group> groups = groups_for_threads(chooser, touched, tiles);
  const std::set<StageId> members = taken_stages({}, groups);
  for (auto& [id, of_stage] : tiles)
    if (of_stage.epilogue && members.contains(of_stage.epilogue->stage))
      of_stage = tiles_of(chooser, id, std::nullopt);
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
