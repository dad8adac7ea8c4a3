#pragma once

#include <string>

#include "compiler/language/decode.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// What to compile for. A value; there is no current target.
struct Target {
  TargetKind kind = TargetKind::Llvm;
  std::string arch;  // a CPU name ("znver5"), or "sm_90"
};

/// "llvm" (or its alias "cpu") and "cuda". Throws InvalidArgument TARGET listing the known ones.
TargetKind target_from_name(std::string_view name);
std::string_view name_of(TargetKind kind);

/// What a compile may cost at most. Passing one is ResourceExhausted with both numbers.
struct CompileLimits {
  language::Limits language;
  int64_t unrolled_iterations = 4096;  // of one loop, and of a nest of them
  int64_t statements = 200'000;        // of a kernel in any pass
  int64_t code = 80'000;               // of a kernel for a CPU: about so many instructions
};

struct CompileOptions {
  bool automatic = true;  // stages without a step are scheduled automatically
  bool strict = false;    // no reassociation, ever
  bool fast = false;      // float scans and reductions may be reassociated
  bool reproducible = true;
  CompileLimits limits;
};

}  // namespace kiln
