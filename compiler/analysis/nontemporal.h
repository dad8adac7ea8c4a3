#pragma once

#include "compiler/ir/kernel.h"

namespace kiln::analysis {

/// Whether a parameter that is stored to alone is one for non-temporal stores: a condition over the
/// sizes of the kernel, simplified. Its rows share no lines, and neither it nor what is read for it
/// would be found in a cache by who reads it next.
ir::Expr is_nontemporal(const ir::Kernel& kernel, const ir::Buffer& output);

/// Whether all tensors of a kernel, whose sizes are known, have place in an L3 that is near.
bool stay_near(const ir::Kernel& kernel);

/// Whether it may be, for some sizes.
bool may_be_nontemporal(const ir::Kernel& kernel, const ir::Buffer& output);

}  // namespace kiln::analysis
