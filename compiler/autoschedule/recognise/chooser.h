#pragma once

#include <optional>
#include <string_view>

#include "compiler/autoschedule/recognise/machine.h"
#include "compiler/autoschedule/recognise/structure.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// What sketches need to know. The graph outlives them.
struct Chooser {
  const StageGraph& graph;
  const CompileOptions& options;
  Machine machine = {};        // a CPU
  std::string_view arch = {};  // of a GPU
};

/// Elements of a register, of the widest type of the stage.
int64_t register_lanes(const Chooser& chooser, StageId stage);

std::optional<int64_t> constant_extent(const StageGraph& graph, AxisId axis);

/// Whether a stage, or what is computed inline for it, calls functions like exp, of which each is a
/// chain of operations.
bool has_functions(const StageGraph& graph, StageId stage);

/// Whether the order in which a reduction combines may be changed. That a reducer of the user's own
/// allows it is a promise, which only explicit steps rely on.
bool may_reassociate(const Chooser& chooser, StageId stage);

/// Elements of a vector loop: `bytes` of the widest output, or the largest power of two that fits
/// an extent known to be smaller. Nothing when that is not worth a vector.
std::optional<int64_t> vector_factor(const StageGraph& graph, StageId stage, AxisId axis,
                                     int64_t bytes);
/// The same along axes that are one loop.
std::optional<int64_t> vector_factor(const StageGraph& graph, StageId stage,
                                     const std::vector<AxisId>& line, int64_t bytes);

/// Lanes of two registers, or of one for a short line of which two would leave more than one: what
/// is left goes in several pieces, and masks are made for each.
std::optional<int64_t> line_factor(const StageGraph& graph, StageId stage,
                                   const std::vector<AxisId>& line);

/// Lanes of a stage that reduces nothing, element by element along a line: those of line_factor, or
/// more where its functions are chains that need them and the line is long or a multiple.
std::optional<int64_t> element_factor(const Chooser& chooser, StageId stage,
                                      const std::vector<AxisId>& line);

// What stands for an extent that only a call brings, where ways are compared: so long that the
// start and the end of a loop are little, which is all that depends on it.
constexpr int64_t kAnyExtent = 512;
// A row of so many elements is reduced in twice as many lanes, so that an addition need not wait
// for the one before: that halves the 16 iterations of 32 lanes, 4 cycles each, and adds a level of
// the tree, one addition and what a vector more takes, in which lanes are added up at the end.
constexpr int64_t kLongRow = 512;
// Squares of so many rows and columns at most are turned in registers (codegen/llvm_interleave.cc),
// half of which they fill.
constexpr int64_t kMostLanesOfSquare = 16;
constexpr int64_t kVectorBytes = 128;  // two or four registers, so that latencies overlap

}  // namespace kiln::autoschedule
