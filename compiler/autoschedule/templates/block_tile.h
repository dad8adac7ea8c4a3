#pragma once

#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/block_tile_cost.h"
#include "compiler/autoschedule/templates/prologue_choice.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// Neighbouring sums of a thread: 128 bits of float32.
constexpr int64_t kGroup = 4;

/// How a contraction is cut for blocks of kThreadsOfSide x kThreadsOfSide threads.
struct BlockTile {
  StageId stage = 0;
  Contraction contraction;
  std::vector<AxisId> batch;  // data axes of which a block has one value
  /// All axes of a side are one loop, and so are those of the sum; else a side is one axis.
  bool is_joined = false;
  Sides sides;
  int64_t window = 1;              // products of all reduction axes but the first, unless joined
  int64_t steps = 0;               // of the sum at once, or of its first axis
  ThreadTile own = {4, 4};         // of a thread
  std::optional<StageId> padding;  // computed where a factor is fetched, and nowhere else
  PrologueChoice prologues = {};   // in front of the factors
  std::optional<Epilogue> epilogue = {};  // computed with the results, which are stored nowhere
};

/// Elements of a factor that a thread may fetch at once: of one that is computed meanwhile, those
/// that all it is made of lie side by side for.
int64_t most_lanes(const StageGraph& graph, const BlockTile& tile, const ir::TensorRead& read);

/// What is not known makes 0 of the rows, columns or steps.
BlockProduct product_of(const StageGraph& graph, const BlockTile& tile);

void write_block_tile(const StageGraph& graph, const BlockTile& tile, StepWriter& steps);

}  // namespace kiln::autoschedule
