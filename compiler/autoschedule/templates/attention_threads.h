#pragma once

#include <string_view>
#include <vector>

#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/language/kernel.h"

namespace kiln::autoschedule {

/// The sketches of a kernel that is an attention: blocks of threads that store no score, and the
/// stages one by one, as `stages` have them, the cheapest first. Those given where it is none that
/// threads do.
std::vector<StageSketches> with_threaded_attention(std::vector<StageSketches> stages,
                                                   const language::Kernel& kernel,
                                                   std::string_view arch);

}  // namespace kiln::autoschedule
