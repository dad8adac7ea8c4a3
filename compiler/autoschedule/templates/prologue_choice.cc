// Where what precedes a product is computed: by each block that fetches a part of it, or once.
#include "compiler/autoschedule/templates/prologue_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/autoschedule/templates/prologue_cost.h"
#include "compiler/autoschedule/templates/thread_sketches.h"

namespace kiln::autoschedule {

bool PrologueChoice::computes(StageId stage) const {
  return std::ranges::find(computed, stage) != computed.end();
}

std::vector<PrologueChoice> prologue_choices(const std::vector<StageId>& prologues) {
  std::vector<PrologueChoice> choices;
  const size_t count = size_t{1} << prologues.size();
  for (size_t stored = 0; stored < count; ++stored) {
    PrologueChoice choice;
    for (size_t i = 0; i < prologues.size(); ++i)
      ((stored >> i & 1) != 0 ? choice.stored : choice.computed).push_back(prologues[i]);
    choices.push_back(std::move(choice));
  }
  return choices;
}

double stored_cycles(const StageGraph& graph, const PrologueChoice& choice,
                     const GpuMachine& machine) {
  double cycles = 0;
  for (const StageId stage : choice.stored)
    cycles += stored_cycles(graph, stage, machine);
  return cycles;
}

Sketch with_prologues(const Chooser& chooser, const PrologueChoice& choice, Sketch tile) {
  for (const StageId stage : choice.computed)
    tile.name += fmt::format(", {} computed in it", chooser.graph[stage].name);
  std::vector<Sketch> launches;
  for (const StageId stage : choice.stored) {
    tile.name += fmt::format(", {} stored before", chooser.graph[stage].name);
    launches.push_back(thread_sketches(chooser, stage)[0]);
  }
  if (launches.empty()) return tile;
  tile.write = [launches = std::move(launches), write = std::move(tile.write)](
                   StepWriter& steps, const Values& values) {
    for (const Sketch& launch : launches)
      launch.write_preferred(steps);
    write(steps, values);
  };
  return tile;
}

}  // namespace kiln::autoschedule
