#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// Sketches that schedule other stages beside their own: what they read is made by, or what is put
/// around it, and what is made of results that are in registers before they are stored.
struct Tiles {
  std::vector<Sketch> sketches;
  std::vector<StageId> preceding;
  std::optional<Epilogue> epilogue;
};

/// Whether no other stage's sketches schedule a stage in front of a factor.
using MayBeTaken = std::function<bool(StageId)>;

/// Of a contraction, also of few rows, a reduction down columns, or one thread an element where
/// other stages go with it; of others no sketches.
Tiles tiles_of(const Chooser& chooser, StageId id, const std::optional<Epilogue>& epilogue,
               const MayBeTaken& may_be_taken);

/// By their stages. A stage that is made of two results is the epilogue of the first.
std::map<StageId, Tiles> tiles_of_stages(const Chooser& chooser, const std::vector<bool>& touched);

}  // namespace kiln::autoschedule
