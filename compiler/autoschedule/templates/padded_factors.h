#pragma once

#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// Adds cache_padded for factors of products that are padded inside of the product, where that
/// makes a product of the sum that has tiles:
///
///   C[f, y] = sum[c, r](if_then_else(inside, X[c, y + r - 1], 0) * W[f, c, r])
///
/// Stages that have steps are left as they are.
language::Schedule with_padded_stages(const language::Kernel& kernel, language::Schedule given,
                                      const CompileOptions& options);

}  // namespace kiln::autoschedule
