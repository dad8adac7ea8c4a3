#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compiler/predict/predict.h"
#include "runtime/core/artifact.h"
#include "server/worker/compiler_input.h"

namespace kiln::server {

/// What a call of these sizes is predicted to take by the code of an artifact for a GPU, which was
/// made of `input` under a schedule.
predict::Prediction reading_of(const CompilerInput& input, const language::Schedule& schedule,
                               const Artifact& artifact, std::span<const int64_t> sizes);

/// A report with that as "predicted": seconds, the largest term and each of them, and for what GPU.
std::string with_reading(const std::string& report, const predict::Prediction& prediction,
                         const std::string& arch);

}  // namespace kiln::server
