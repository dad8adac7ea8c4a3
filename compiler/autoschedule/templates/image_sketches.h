#pragma once

#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/templates/filter_panels.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {

/// The stage that the sketches of `stage` schedule too, since it is computed for that alone.
std::optional<StageId> taken_source(const Chooser& chooser, StageId stage);

/// How the filters of a convolution would lie best if their copy cost nothing; nothing where they
/// are best read as they are.
std::optional<FilterPanels> wanted_panels(const Chooser& chooser, StageId stage);

/// Adds those of a contraction that is a convolution of an image to its other `sketches`: blocks of
/// lines, whose part of the image is copied or padded first, and patches of an image laid out side
/// by side. All of them schedule the taken source.
std::vector<Sketch> with_image_sketches(const Chooser& chooser, StageId stage,
                                        std::vector<Sketch> sketches);

}  // namespace kiln::autoschedule
