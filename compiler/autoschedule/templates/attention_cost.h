#pragma once

#include <optional>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/tile/thread_attention.h"

namespace kiln::autoschedule {

/// Cycles of the busiest multiprocessor, with blocks that store no score; nothing where such a
/// block does not fit the architecture.
std::optional<double> attention_cycles(const tile::ThreadedWork& work,
                                       const tile::ThreadBlock& block, const tile::HeadParts& parts,
                                       const GpuMachine& machine, const ir::GpuArch& arch);

/// Of launches that store the scores, each as good as it can be.
double stored_attention_cycles(const tile::ThreadedWork& work, const GpuMachine& machine);

}  // namespace kiln::autoschedule
