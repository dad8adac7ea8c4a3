#pragma once

#include <optional>

#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/autoschedule/templates/tile_cost.h"

namespace kiln::autoschedule {

/// A reduction of all rows of some tensors with all columns of others.
struct Pairs {
  AxisId row = 0;
  AxisId column = 0;
  ContractionSize size;  // all extents are known
  std::vector<ir::Expr> bodies;
  ElementWork work;  // of the bodies, for a vector
  double busy = 0;   // cycles of it
};

/// A way to compute it, and how many cycles a core is predicted to take for one of a batch.
struct PairSketch {
  Sketch sketch;
  double cycles = 0;
};

/// Nothing where a tensor has elements of pairs, or sizes are not known.
std::optional<Pairs> pairs_of(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
