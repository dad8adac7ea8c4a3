// Which template a stage has on a GPU that is more than its elements: the first that serves.
#include "compiler/autoschedule/choose/thread_tiles.h"

#include <set>

#include "compiler/autoschedule/choose/thread_groups.h"
#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/recognise/inner_reductions.h"
#include "compiler/autoschedule/templates/block_tiles.h"
#include "compiler/autoschedule/templates/column_threads.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/few_rows.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/matrix_forms.h"
#include "compiler/autoschedule/templates/matrix_tiles.h"
#include "compiler/autoschedule/templates/row_threads.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

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
  Tiles tiles{.preceding = paddings_for(graph, id)};
  if (graph[id].is_reduction()) tiles.epilogue = epilogue;
  const auto lines = lines_of_thread(graph, id, gpu_machine(chooser.arch));
  if (tiles.preceding.empty() && !tiles.epilogue && !lines) return {};
  tiles.sketches = {{.name = "threads",
                     .parameters = {block_parameter()},
                     .write = [&graph, id, lines, paddings = tiles.preceding,
                               epilogue = tiles.epilogue](StepWriter& steps, const Values& values) {
                       for (const StageId padding : paddings)
                         steps.compute_inline(padding);
                       bind_results(graph, steps, id, epilogue, lines, values.get("block", 256));
                     }}};
  return tiles;
}

}  // namespace

Tiles tiles_of(const Chooser& chooser, StageId id, const std::optional<Epilogue>& epilogue,
               const MayBeTaken& may_be_taken) {
  // Either all of a stage's sketches keep the order of its sum, or none does.
  const auto free_of = [&](std::vector<StageId> prologues) {
    std::erase_if(prologues, [&](StageId prologue) { return !may_be_taken(prologue); });
    return prologues;
  };
  const std::vector<StageId> of_matrices = free_of(prologues_of_matrix_tiles(chooser, id));
  std::vector<Sketch> matrices = matrix_tile_sketches(chooser, id, epilogue, of_matrices);
  if (!matrices.empty()) {
    return {std::move(matrices),
            joined({of_matrices, in_list(padding_of_matrix_tiles(chooser, id))}), epilogue};
  }
  const std::vector<StageId> of_blocks = free_of(prologues_of_block_tiles(chooser.graph, id));
  std::vector<Sketch> blocks = block_tile_sketches(chooser, id, epilogue, of_blocks);
  if (!blocks.empty()) {
    return {std::move(blocks),
            joined({of_blocks, in_list(padding_of_block_tiles(chooser.graph, id))}), epilogue};
  }
  std::vector<Sketch> columns = column_thread_sketches(chooser, id, epilogue);
  if (!columns.empty()) return {std::move(columns), {}, epilogue};
  std::vector<Sketch> few = few_rows_sketches(chooser, id, epilogue);
  if (!few.empty()) return {std::move(few), {}, epilogue};
  return element_tiles(chooser, id, epilogue);
}

std::map<StageId, Tiles> tiles_of_stages(const Chooser& chooser, const std::vector<bool>& touched) {
  std::map<StageId, Tiles> found;
  std::set<StageId> taken;
  for (const StageId id : chooser.graph.stage_of_id) {
    if (touched[id] || chooser.graph[id].kind != Stage::Kind::Compute) continue;
    std::optional<Epilogue> epilogue = epilogue_of(chooser.graph, id);
    if (epilogue && (touched[epilogue->stage] || taken.contains(epilogue->stage)))
      epilogue = std::nullopt;
    // What is computed with other results, or of whole rows, stays there.
    const auto may_be_taken = [&](StageId prologue) {
      return !touched[prologue] && !taken.contains(prologue) && !found.contains(prologue) &&
             !has_group(chooser, prologue);
    };
    Tiles tiles = tiles_of(chooser, id, epilogue, may_be_taken);
    if (tiles.sketches.empty()) continue;
    if (tiles.epilogue) taken.insert(tiles.epilogue->stage);
    found.emplace(id, std::move(tiles));
  }
  return found;
}

}  // namespace kiln::autoschedule
