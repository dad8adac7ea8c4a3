#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/predict/launch_facts.h"
#include "compiler/predict/predict.h"
#include "compiler/tile/sequence.h"

namespace kiln::predict {

/// What a program on tiles is predicted to take on a GPU with sizes of these values. Pure. Copies
/// are taken to go on beside what tensor cores multiply.
Prediction predict_tiles(const tile::Program& program, std::span<const int64_t> sizes,
                         const autoschedule::GpuMachine& machine);

/// Of programs one after the other: the terms of the last one, with the copies before it on top.
/// `facts`: of the last one's machine code, where that was read.
Prediction predict_tiles(const tile::Sequence& sequence, std::span<const int64_t> sizes,
                         const autoschedule::GpuMachine& machine,
                         const std::optional<TileFacts>& facts = std::nullopt);

}  // namespace kiln::predict
