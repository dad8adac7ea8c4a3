#pragma once

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/predict/nest.h"

namespace kiln::predict {

/// Cycles for which operations keep a core busy: the ports of multiply-adds, and all vector ports.
struct Busy {
  double multiply_adds = 0;
  double all = 0;
};
Busy busy_cycles(const Operations& operations, const autoschedule::Machine& machine);

}  // namespace kiln::predict
