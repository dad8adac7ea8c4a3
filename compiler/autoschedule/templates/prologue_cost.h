#pragma once

#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/autoschedule/templates/gpu_machine.h"

namespace kiln::autoschedule {

/// What a thread does for an element of a prologue, beside that it loads one element and stores
/// one.
struct PrologueWork {
  double instructions = 0;
  double multiply_adds = 0;  // of these
  double other_loads = 0;  // of what else it is made of, which a vector of elements has one each of
  double bytes = 0;        // of what is another one for each element
};
PrologueWork prologue_work(const StageGraph& graph, StageId prologue);

/// What a launch takes that stores all of it.
double stored_cycles(const StageGraph& graph, StageId prologue, const GpuMachine& machine);

}  // namespace kiln::autoschedule
