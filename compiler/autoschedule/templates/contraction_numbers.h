#pragma once

#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/product_cost.h"

namespace kiln::autoschedule {

/// A contraction in numbers; those that are not known are 0. What an instruction adds at once
/// counts as one step, and as one element: it is as large as an element of the sum.
struct Numbers {
  ContractionSize size;
  int64_t panels = 0;  // elements of the column factor, of one of a batch
  int64_t batch = 1;   // products; at least so many where not all extents are known
};

/// `parallel`: the tiles of rows are what cores share.
Numbers numbers_of(const Chooser& chooser, const Tiling& tiling, bool parallel);

/// The same with a middling number for each size that is not known, and how the factors lie.
Product product_of(const Chooser& chooser, const Tiling& tiling, const Numbers& numbers,
                   bool parallel);

/// What products that are added in such groups take beside others; steps are not divided.
void count_group(ContractionSize& size, const ProductGroup& group, const Machine& machine);

/// How many products there are of these axes; at least so many where not all extents are known.
int64_t products_along(const StageGraph& graph, const std::vector<AxisId>& axes);

/// "rows" of a tile.
Parameter rows_parameter(const StageGraph& graph, AxisId row, int64_t preferred);
/// "lanes" of a tile: one to four registers, or eight.
Parameter columns_parameter(const StageGraph& graph, AxisId column, int64_t register_lanes,
                            int64_t preferred);

}  // namespace kiln::autoschedule
