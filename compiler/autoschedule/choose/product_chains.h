#pragma once

#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// `given` with steps that compute products, and what is between them, for a block of rows at a
/// time, where that is predicted to be faster; for stages without steps of known sizes on a CPU:
///
///   S = Q K^T; P = softmax(S); O = P V     S and P for 32 rows of O, in its loop over blocks
///
/// What passes from product to product stays in a cache, and has no place for all rows.
language::Schedule with_product_chains(const language::Kernel& kernel, language::Schedule given,
                                       const Target& target, const CompileOptions& options);

/// Seconds that are predicted to be saved by that, if all products of the kernel are in one such
/// loop; else 0.
double saved_by_product_chain(const language::Kernel& kernel, const Target& target,
                              const CompileOptions& options);

}  // namespace kiln::autoschedule
