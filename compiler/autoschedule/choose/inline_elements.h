#pragma once

#include <cstdint>

#include "compiler/autoschedule/templates/open_schedule.h"

namespace kiln::autoschedule {

/// How often what reads a stage may name its element: once, or, where a compiler finds what is the
/// same, as often as it likes.
enum class Reads : uint8_t { Once, AtOnePlace };

/// `given` with stages computed inside of the one stage that reads them, where that reads another
/// element in each iteration, so that nothing is computed twice. Only stages that no step names
/// move, to stages that none names.
OpenSchedule with_inline_elements(const language::Kernel& kernel, OpenSchedule given, Reads reads);

}  // namespace kiln::autoschedule
