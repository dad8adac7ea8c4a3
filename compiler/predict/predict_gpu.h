#pragma once

#include <cstdint>
#include <span>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/kernel.h"
#include "compiler/predict/launch_facts.h"
#include "compiler/predict/predict.h"

namespace kiln::predict {

/// What a kernel of a GPU is predicted to take with sizes of these values: all its launches, one
/// after the other. Pure. Cycles are those of a multiprocessor.
///
/// The loops are those that code is generated from (the last of passes). `facts`, of each launch in
/// their order, or none: without them products of 16-bit floats are taken for ordinary
/// multiply-adds, whether or not tensor cores do them.
Prediction predict_gpu(const ir::Kernel& kernel, std::span<const int64_t> sizes,
                       const autoschedule::GpuMachine& machine, const ir::GpuArch& arch,
                       std::span<const LaunchFacts> facts = {});

}  // namespace kiln::predict
