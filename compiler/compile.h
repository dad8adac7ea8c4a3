#pragma once

#include <optional>
#include <string>

#include "compiler/language/tables/step.h"
#include "compiler/lower.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// Compiles a kernel. Pure: the result depends on the arguments and the build of the compiler
/// alone.
Artifact compile(const language::Kernel& kernel, const language::Schedule& schedule,
                 const Target& target, const CompileOptions& options);

/// The source a kernel becomes: "lowered", "llvm", "asm" for llvm; "lowered", "cuda", "ptx", "tile"
/// for cuda; "aligned": loops and code line by line, as JSON for programs (codegen/aligned_code.h).
/// Throws InvalidArgument SOURCE listing the kinds of the target.
std::string source_of(const language::Kernel& kernel, const language::Schedule& schedule,
                      const Target& target, const CompileOptions& options, std::string_view what);

/// Changes whenever the compiler could produce other code; part of every artifact key.
std::string compiler_build_id();

}  // namespace kiln
