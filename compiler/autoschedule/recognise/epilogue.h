#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/sides.h"

namespace kiln::autoschedule {

/// What is made of each element of another stage, and is all that reads it.
struct Epilogue {
  StageId stage = 0;
  std::vector<AxisId> axes;  // those that stand for the other stage's data, in its order
};

/// Axes of the stage's data as those of the epilogue that stand for them; without one they are its
/// own.
std::vector<AxisId> axes_for(const StageGraph& graph, StageId stage,
                             const std::optional<Epilogue>& epilogue,
                             const std::vector<AxisId>& axes);

/// Of a stage that no step names, and of which one reader is left that none names either; nothing
/// where that reads another element than its own, or along another last axis.
std::optional<Epilogue> epilogue_of(const StageGraph& graph, StageId stage);

}  // namespace kiln::autoschedule
