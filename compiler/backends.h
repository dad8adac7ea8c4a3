#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// How code is made of lowered loops for one kind of target.
struct Backend {
  TargetKind kind;

  /// The forms of its code that source() gives.
  std::span<const std::string_view> sources;

  /// Throws Unsupported or InvalidArgument ARCH where no code can be made for the target's arch.
  void (*check_arch)(const Target& target);

  /// `strided`: null without code for strides.
  Artifact (*make_artifact)(const ir::Kernel& compact, const ir::Kernel* strided,
                            const Target& target, const CompileOptions& options);

  /// Code that is made of the definition itself, beside that of its loops. Throws nothing of its
  /// own: the report says what there is.
  void (*add_code)(const language::Kernel& kernel, const ir::Kernel& compact, const Target& target,
                   const CompileOptions& options, Artifact& artifact);

  /// One of `sources`, as text; of those but "tile", which is made of the definition.
  std::string (*source)(const ir::Kernel& kernel, const Target& target,
                        const CompileOptions& options, std::string_view what);

  /// Its loops and code line by line, as codegen/aligned_code.h has it.
  std::string (*aligned)(const ir::Kernel& kernel, const Target& target,
                         const CompileOptions& options);

  /// Notes for a report of loops without code: what the target does another way than asked.
  void (*add_notes)(const language::Schedule& schedule, const Target& target,
                    const CompileOptions& options, ir::Kernel& lowered);
};

/// Null for a target whose artifacts are loops.
const Backend* find_backend(const Target& target);

}  // namespace kiln
