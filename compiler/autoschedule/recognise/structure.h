#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::autoschedule {

using schedule::AxisId;
using schedule::root_of;
using schedule::Stage;
using schedule::StageGraph;
using schedule::StageId;

/// By stage, whether steps name it as a root, or anything that stands in its loops.
std::vector<bool> touched_roots(const StageGraph& graph);

/// Whether a stage at the root has loops of its own that can be scheduled.
bool has_own_loops(const StageGraph& graph, StageId stage);

/// Whether a stage has all elements of its shape. Its sums may have fewer terms than their axes, as
/// the last part of one does.
bool computes_all(const Stage& stage);

/// Whether no step says how a stage with loops of its own runs.
bool is_open(const StageGraph& graph, StageId stage);

/// Whether the compiler is free to choose where a stage is computed: an open one of the definition.
bool is_free(const StageGraph& graph, StageId stage);

/// Iterations of all loops of a stage, at one step of a scan; nothing when a size is not a
/// constant.
std::optional<int64_t> constant_work(const StageGraph& graph, StageId stage);

/// Whether the axis has one value.
bool is_unit(const StageGraph& graph, AxisId axis);

/// Whether all data axes but the first so many have one value.
bool has_no_line(const StageGraph& graph, StageId stage, size_t dimensions);

/// The data axes that are loops: all but time, which is one step inside a scan.
std::vector<AxisId> columns_of(const Stage& stage);

/// Whether the last dimension is time: then neighbours in memory are not computed together.
bool has_time_last(const Stage& stage);

/// The reductions inside of the expressions of a stage, which are stages without an id: steps reach
/// them by their reduction axes.
std::vector<StageId> reductions_inside(const StageGraph& graph, StageId stage);

/// Whether a reduction inside of the stage's expressions is another for each value of the axis.
bool is_used_inside(const StageGraph& graph, StageId stage, AxisId axis);

/// Whether the extent of a reduction axis depends on another axis or on data.
bool has_dependent_extents(const StageGraph& graph, StageId stage);

/// Whether the stage is the reduction of one value and no more: of extents and at places that do
/// not depend on data, everywhere, outside of scans.
bool is_plain_reduction(const StageGraph& graph, StageId stage);
/// The same of one value or several, as a reducer of one's own has.
bool is_plain_reduction_of_values(const StageGraph& graph, StageId stage);

/// Whether an index of a read depends on data, as in a gather.
bool has_indirect_reads(const Stage& stage);
/// And on data that is other data for each value of the axis: T[I[i], j] along i, but not along j,
/// where neighbours lie side by side as ever.
bool has_indirect_reads_along(const StageGraph& graph, const Stage& stage, AxisId axis);

/// Whether neighbouring values of the axis are neighbours in memory: the last index of the read
/// moves by one with it, and no other index moves.
bool is_contiguous_in(const StageGraph& graph, const ir::TensorRead& read, AxisId axis);
bool is_used_in(const StageGraph& graph, const ir::TensorRead& read, AxisId axis);

/// Elements from what is read at one value of the axis to what is read at the next; nothing where
/// that is no constant.
std::optional<int64_t> distance_along(const StageGraph& graph, const ir::TensorRead& read,
                                      AxisId axis);

/// Whether some read of a stage is contiguous along the axis.
bool is_contiguous(const StageGraph& graph, const Stage& stage, AxisId axis);

/// Whether some read of a stage moves along the axis by more than one element.
bool is_strided(const StageGraph& graph, const Stage& stage, AxisId axis);

/// Whether all reads of a stage that move along the axis do so by a few elements, forwards: a
/// vector of them comes from few lines.
bool is_near(const StageGraph& graph, const Stage& stage, AxisId axis);

/// Whether a reduction has its vectors along its last data axis (but time). Where neighbours along
/// that and along the reduction are neighbours in memory, as in a window that slides, data axes are
/// the longer ones, and keep the order of the reduction.
bool has_vectors_along_data(const StageGraph& graph, StageId stage);

/// The product that a stage sums up; null where it does something else.
const ir::Binary* summed_product(const Stage& stage);

/// What a factor is of its element: that, whatever its type becomes, or anything that is computed
/// of it alone, as max(a[..], 0).
enum class FactorForm : uint8_t { Element, Computed };

/// The two elements whose products a stage sums, where that is all it does.
struct Factors {
  const ir::TensorRead* a = nullptr;
  const ir::TensorRead* b = nullptr;
};
std::optional<Factors> find_factors(const StageGraph& graph, StageId stage,
                                    FactorForm form = FactorForm::Element);

/// sum(a[..] * b[..]) where `column`, the last data axis (but time), is in one factor and `row`
/// only in the other.
struct Contraction {
  AxisId row = 0;
  AxisId column = 0;
  const ir::TensorRead* row_factor = nullptr;
  const ir::TensorRead* column_factor = nullptr;
};
std::optional<Contraction> find_contraction(const StageGraph& graph, StageId stage,
                                            FactorForm form = FactorForm::Element);

/// Whether each column of a scan, in its states and its cell, depends on itself only, and all of
/// them have one shape.
bool has_independent_columns(const StageGraph& graph, StageId scan);

}  // namespace kiln::autoschedule
