#pragma once

#include <cstddef>

#include "compiler/ir/kernel.h"

namespace kiln::ir {

/// Whether two trees are the same but for the identity of what they bind: loop variables and
/// allocated buffers of one stand where those of the other do. Anything bound outside must be the
/// same node. Names do not count.
bool equal_trees(const Expr& a, const Expr& b);
bool equal_trees(const Stmt& a, const Stmt& b);

/// As above; sizes, strides and parameters are bound by the kernel. Notes do not count, the name
/// does.
bool equal_kernels(const Kernel& a, const Kernel& b);

/// Equal for expressions that equal_trees() says are equal. Differs between runs of the program.
size_t hash_of(const Expr& expr);

}  // namespace kiln::ir
