// Which template a stage has on a GPU that is more than its elements: of those that serve the one
// that is predicted to take the fewest cycles, and of sizes that are not known the first.
#include "compiler/autoschedule/choose/thread_tiles.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "compiler/autoschedule/choose/thread_groups.h"
#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/recognise/inner_reductions.h"
#include "compiler/autoschedule/templates/block_tiles.h"
#include "compiler/autoschedule/templates/column_block.h"
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

/// What a template has for a stage. All its sketches keep the order of the stage's sum, or none
/// does.
struct Offer {
  Tiles tiles;
  std::function<double()> cycles;  // of the fastest of them, of a stage whose sizes are known
};

/// Those that serve.
std::vector<Offer> offers_for(const Chooser& chooser, StageId id,
                              const std::optional<Epilogue>& epilogue,
                              const MayBeTaken& may_be_taken) {
  const StageGraph& graph = chooser.graph;
  const auto free_of = [&](std::vector<StageId> prologues) {
    std::erase_if(prologues, [&](StageId prologue) { return !may_be_taken(prologue); });
    return prologues;
  };
  const std::vector<StageId> of_matrices = free_of(prologues_of_matrix_tiles(chooser, id));
  const std::vector<StageId> of_blocks = free_of(prologues_of_block_tiles(graph, id));
  std::vector<Offer> offers;
  offers.push_back(
      {{matrix_tile_sketches(chooser, id, epilogue, of_matrices),
        joined({of_matrices, in_list(padding_of_matrix_tiles(chooser, id))}), epilogue},
       [&chooser, id] { return matrix_tile_cycles(chooser, id)(1); }});
  offers.push_back({{block_tile_sketches(chooser, id, epilogue, of_blocks),
                     joined({of_blocks, in_list(padding_of_block_tiles(graph, id))}), epilogue},
                    [&chooser, id] { return whole_tile_cycles(chooser, id); }});
  offers.push_back({{column_thread_sketches(chooser, id, epilogue), {}, epilogue},
                    [&chooser, id] { return column_cycles(chooser, id); }});
  offers.push_back({{few_rows_sketches(chooser, id, epilogue), {}, epilogue},
                    [&chooser, id] { return few_rows_cycles(chooser, id); }});
  std::erase_if(offers, [](const Offer& offer) { return offer.tiles.sketches.empty(); });
  return offers;
}

}  // namespace

Tiles tiles_of(const Chooser& chooser, StageId id, const std::optional<Epilogue>& epilogue,
               const MayBeTaken& may_be_taken) {
  std::vector<Offer> offers = offers_for(chooser, id, epilogue, may_be_taken);
  if (offers.empty()) return element_tiles(chooser, id, epilogue);
  const Stage& stage = chooser.graph[id];
  const bool is_known =
      constant_extent_of(chooser.graph, joined({stage.data, stage.reduce})).has_value();
  if (offers.size() == 1 || !is_known) return std::move(offers[0].tiles);
  return std::move(std::ranges::min_element(offers, {}, [](const Offer& offer) {
                     return offer.cycles();
                   })->tiles);
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
