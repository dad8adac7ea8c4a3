#pragma once

#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// Has large products that lie side by side computed one after the other, as products are:
///
///   C[i, j, b] = sum[k](A[b, i, k] * B[b, k, j])
///
/// is computed for each b in the order [b, i, j], and C is a transposed copy. Small ones stay as
/// they are: vectors along b have all of their factors in L1 and L2.
OpenSchedule with_transposed_products(const language::Kernel& kernel, language::Schedule given,
                                      const Target& target, const CompileOptions& options);

}  // namespace kiln::autoschedule
