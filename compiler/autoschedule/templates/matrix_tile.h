#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/prologue_choice.h"
#include "compiler/autoschedule/templates/shared_lines.h"
#include "compiler/autoschedule/templates/step_writer.h"
#include "compiler/ir/matrix_unit.h"

namespace kiln::autoschedule {

/// What is copied of a factor before it is fetched.
enum class Packing : uint8_t {
  None,
  SideLast,  // with its side last, along what is fetched: filters whose channels do not lie so
  Lines,     // as it lies, in rows of whole lines of its panel: rows that begin anywhere
};

/// How a contraction is cut for warps that multiply by matrix instructions.
struct MatrixTile {
  StageId stage = 0;
  Contraction contraction;
  ir::MatrixUnit unit;
  DType type = DType::Float16;  // of a factor; the other has as many bits
  Sides sides;                  // of the batch a block has one value of each axis
  std::vector<AxisId> sum;      // the reduction, in the order in which it is one loop
  /// All axes of a side are one loop, and so are those of the sum; else there is one of each, and
  /// what is read is a box of its tensor.
  bool is_joined = false;
  std::optional<StageId> padding;         // computed where a factor is fetched, and nowhere else
  PrologueChoice prologues = {};          // in front of the factors
  std::optional<Epilogue> epilogue = {};  // computed with the results, which are stored nowhere
  Packing row_packing = Packing::None;
  Packing column_packing = Packing::None;
  int64_t warps_down = 2;
  int64_t warps_across = 2;
  int64_t rows = 4;  // products of a warp along each side
  int64_t columns = 8;
  int64_t steps = 0;   // of the sum at once
  int64_t stages = 1;  // memories of the factors

  int64_t block_rows() const { return warps_down * rows * ir::kMatrixRows; }
  int64_t block_columns() const { return warps_across * columns * ir::kMatrixColumns; }
  int64_t warps() const { return warps_down * warps_across; }
  int64_t lanes() const { return kVectorBytesOfThread / size_of(type); }  // fetched at once
};

/// A factor as it lies in shared memory: lines along the sum, or along its side of the tile.
struct Panel {
  bool is_along_sum = false;
  int64_t width = 0;  // of a line
  int64_t lines = 0;
  int64_t lanes = 1;              // that a thread fetches at once
  bool is_computed = false;       // of what is fetched, so that hardware cannot copy it
  bool has_turned_bytes = false;  // analysis/matrix_product.h
  Spread spread;                  // over the banks

  int64_t bytes(DType type) const { return lines * (width + spread.padding) * size_of(type); }
};

Panel panel_of(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows);

/// About how many cycles the product takes with its sum in so many parts, each of which has tiles
/// of its own; of unknown sizes, for one tile of the smallest.
double matrix_cycles(const StageGraph& graph, const MatrixTile& tile, const GpuMachine& machine,
                     int64_t parts = 1);

void write_matrix_tile(const StageGraph& graph, const MatrixTile& tile, StepWriter& steps);

}  // namespace kiln::autoschedule
