#pragma once

#include <cstdint>
#include <span>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/kernel.h"
#include "compiler/predict/predict.h"
#include "compiler/tile_code.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// What a call of a kernel for a GPU is predicted to take with sizes of these values, its machine
/// code read: which unit multiplies, how many instructions and accesses of the stack a product
/// takes, how many blocks run at once. Pure.
///
/// `loops` are what the CUDA C of the artifact was made of, for compact arguments.
predict::Prediction prediction_of_code(const ir::Kernel& loops, const Artifact& artifact,
                                       const autoschedule::GpuMachine& machine,
                                       std::span<const int64_t> sizes);

/// The same of a call that runs code made of tiles: how many instructions and accesses of the stack
/// its products take, and how many blocks run at once.
predict::Prediction prediction_of_tile_code(const TileCode& tiles, const std::string& arch,
                                            const autoschedule::GpuMachine& machine,
                                            std::span<const int64_t> sizes);

}  // namespace kiln
