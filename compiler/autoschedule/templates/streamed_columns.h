#pragma once

#include <vector>

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/product_cost.h"

namespace kiln::autoschedule {

/// Of more rows the sums that come and go cost more than columns that come in pieces.
inline constexpr int64_t kMostStreamedRows = 64;
// With 32 registers, where it is not worth it but for what no cache holds.
inline constexpr int64_t kMostRowsFromMemory = 16;

/// Plans of a product whose columns are read once, in the order in which they lie in memory.
std::vector<ProductPlan> streamed_plans(const Product& product, const PlanLimits& limits,
                                        const Machine& machine);

ProductCycles streamed_cycles(const Product& product, const ProductPlan& plan,
                              const Machine& machine);

/// Some steps of the sum for all columns of a block, before the next: the sums of the block lie in
/// a buffer in the order in which tiles take them. "steps at once": of a tile, written out;
/// "columns of a block"; "rows in order": the row factor is copied first.
void write_streamed_columns(const StageGraph& graph, const Tiling& tiling, StepWriter& steps,
                            const Values& values);

}  // namespace kiln::autoschedule
