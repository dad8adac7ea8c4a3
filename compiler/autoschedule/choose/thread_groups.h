#pragma once

#include <map>
#include <vector>

#include "compiler/autoschedule/choose/thread_tiles.h"
#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/templates/sketch.h"

namespace kiln::autoschedule {

/// A stage whose loops others go into, which then are no stages by themselves.
struct Group {
  std::vector<Sketch> sketches;
  std::vector<StageId> members;  // without the stage itself
};

/// Rows that a block has for itself, or lines across them of which a thread has one each, by the
/// stage that has the loop. Later stages take first what they read; epilogues of tiles have none.
std::map<StageId, Group> groups_for_threads(const Chooser& chooser,
                                            const std::vector<bool>& touched,
                                            const std::map<StageId, Tiles>& tiles);

/// Whether a stage would have others in its loop.
bool has_group(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
