#pragma once

#include <span>
#include <string_view>

#include "compiler/ir/kernel.h"

namespace kiln::testing {

/// A mistake a pass could make, put into the kernel after that pass. A kernel in which it has no
/// place comes back as it was.
struct Mutant {
  std::string_view name;
  std::string_view after;  // a pass as pass_names() calls it
  ir::Kernel (*apply)(ir::Kernel);
  TargetKind target = TargetKind::Llvm;
};

/// What the comparison of schedules must find, each one of them.
std::span<const Mutant> mutants();

}  // namespace kiln::testing
