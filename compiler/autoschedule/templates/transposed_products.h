#pragma once

#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/language/tables/step.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// Has products computed in an order of their loops that vectors like better, of which the result
/// is a transposed copy:
///
///   C[i, j, b] = sum[k](A[b, i, k] * B[b, k, j])  ->  for each b in the order [b, i, j], where
///     the products are large: of small ones, vectors along b have all factors in L1 and L2
///   C[i, j] = sum[k](A[k, i] * B[k, j]), few j    ->  in the order [j, i] (few_columns.h)
OpenSchedule with_transposed_products(const language::Kernel& kernel, language::Schedule given,
                                      const Target& target, const CompileOptions& options);

}  // namespace kiln::autoschedule
