#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/language/tables/step.h"
#include "compiler/lower.h"
#include "runtime/core/arguments.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// How an artifact of loops is interpreted: its arch.
constexpr std::string_view kCheckedLoops = "checked";
constexpr std::string_view kLoopsWithoutNan = "check-nan";

/// An artifact for the interpreter: the loops of a kernel as text, before any pass that makes them
/// fast. Buffers are called after the numbers of their stages, since the text serves everybody who
/// defined the same; user_name() gives the caller's names back.
Artifact compile_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                       const Target& target, const CompileOptions& options);

/// The stage whose number the name of a buffer begins with.
std::optional<size_t> stage_of_buffer(std::string_view buffer);

/// "C.local" for "stage3.local".
std::string user_name(std::string_view buffer, const KernelNames& names);

}  // namespace kiln
