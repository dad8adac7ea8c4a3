#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln {

/// definition + steps -> loops: applies the steps, checks that they can be followed, infers the
/// region each stage must compute, and builds the nests with their guards. Indices are per
/// dimension.
///
/// Every access is proved in bounds or preceded by a Check. Throws InvalidArgument or Unsupported
/// in the user's names, with the step's source line as location.
ir::Kernel build_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                       const Target& target, const CompileOptions& options);

}  // namespace kiln
