#pragma once

#include <string>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Of the stages in front of factors those that a tile computes where it fetches these, and those
/// that launches of their own store before.
struct PrologueChoice {
  std::vector<StageId> computed;
  std::vector<StageId> stored;

  bool computes(StageId stage) const;
};

/// Each way to divide them, that which computes all of them first.
std::vector<PrologueChoice> prologue_choices(const std::vector<StageId>& prologues);

/// What the launches take.
double stored_cycles(const StageGraph& graph, const PrologueChoice& choice,
                     const GpuMachine& machine);

/// The sketch of a tile with its choice in its name, which writes the launches, too.
Sketch with_prologues(const Chooser& chooser, const PrologueChoice& choice, Sketch tile);

}  // namespace kiln::autoschedule
