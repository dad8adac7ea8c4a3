#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/language/kernel.h"

namespace kiln::autoschedule {

/// The stages of a kernel one by one.
using StageSpace = std::function<std::vector<StageSketches>()>;

/// Whether a kernel is an attention of which no score is stored, so that nobody asks what its
/// stages would be one by one.
bool is_unstored_attention(const language::Kernel& kernel, std::string_view arch);

/// The sketches of a kernel: of an attention blocks of threads that store no score, the cheapest
/// first, and the stages one by one where they are an answer, too; of any other the stages.
std::vector<StageSketches> threaded_attention(const language::Kernel& kernel,
                                              const StageGraph& graph, std::string_view arch,
                                              const StageSpace& stages);

}  // namespace kiln::autoschedule
