#pragma once

#include <optional>

#include "compiler/autoschedule/choose/vector_unit.h"
#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/autoschedule/templates/sketch.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// What sketches need to know. The graph outlives them.
struct Chooser {
  const StageGraph& graph;
  const CompileOptions& options;
  VectorUnit vectors = {};
};

/// Elements of a register, of the widest type of the stage.
int64_t register_lanes(const Chooser& chooser, StageId stage);

// For the CPU: each gives at least one sketch, the one to take unmeasured first.

/// A tile of the output in registers: rows unrolled, columns in vectors, and the reduction around
/// it. Nothing when there are too few columns for a vector.
std::vector<Sketch> contraction_sketches(const Chooser& chooser, StageId stage,
                                         const Contraction& contraction, bool may_be_parallel);

/// Elements, a reduction or a contraction: vectors along data axes, or along a contiguous reduction
/// axis where the order of the reduction may change; outer loops on several cores.
std::vector<Sketch> compute_sketches(const Chooser& chooser, StageId stage, bool may_be_parallel);

/// Columns on several cores, each running through time, where they are independent; vectors of
/// columns where they are neighbours in memory.
std::vector<Sketch> scan_sketches(const Chooser& chooser, StageId scan);

/// Axes that are an index by themselves run on several cores and in vectors; the others stay
/// serial.
std::vector<Sketch> scatter_sketches(const Chooser& chooser, StageId stage);

// For CUDA, with so many threads a block.

/// One thread for each value of the axes that are an index by themselves.
void bind_scatter(const StageGraph& graph, StepWriter& steps, StageId stage, int64_t block);

/// One thread an element: the data axes but time as one loop.
void bind_elements(const StageGraph& graph, StepWriter& steps, StageId stage, int64_t block);

// What the above share.

std::optional<int64_t> constant_extent(const StageGraph& graph, AxisId axis);

/// Whether the order in which a reduction combines may be changed. That a reducer of the user's own
/// allows it is a promise, which only explicit steps rely on.
bool may_reassociate(const Chooser& chooser, StageId stage);

/// Elements of a vector loop: `bytes` of the widest output, or the largest power of two that fits
/// an extent known to be smaller. Nothing when that is not worth a vector.
std::optional<int64_t> vector_factor(const StageGraph& graph, StageId stage, AxisId axis,
                                     int64_t bytes);

/// Lanes of two registers, or of one for a short line of which two would leave more than one: what
/// is left goes in several pieces, and masks are made for each.
std::optional<int64_t> line_factor(const StageGraph& graph, StageId stage, AxisId line);

/// How many columns are a block that runs through all rows: kRunBytes, but blocks enough for some
/// cores. Nothing when there are too few columns for vectors.
std::optional<int64_t> columns_of_block(const StageGraph& graph, StageId stage, AxisId axis);

/// "lanes": half of `preferred` to four times it, as far as the axis is so long.
Parameter lanes_parameter(const StageGraph& graph, AxisId axis, int64_t preferred);
/// `values` as far as a known extent of the axis is so large, and `preferred`.
Parameter tile_parameter(const StageGraph& graph, std::string name, AxisId axis,
                         std::vector<int64_t> values, int64_t preferred);
/// "parallel": 1 for several cores.
Parameter parallel_parameter(bool preferred);

/// Marks outer loops until together they have many iterations, as far as one knows.
void parallel_outer(const StageGraph& graph, StepWriter& steps, StageId stage,
                    const std::vector<AxisId>& loops);

constexpr int64_t kVectorBytes = 128;  // two or four registers, so that latencies overlap

}  // namespace kiln::autoschedule
