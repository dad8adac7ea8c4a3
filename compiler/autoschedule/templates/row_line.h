#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/rows.h"

namespace kiln::autoschedule {

/// How the threads of a block share a row: each has some neighbours, then those a block further on.
struct RowLine {
  int64_t threads = 128;
  int64_t lanes = 1;          // neighbours of a thread, which move at once
  bool crosses_axes = false;  // they may be of two lines of the last axis

  /// What its threads hold in registers from the first time that it is needed to the last.
  struct Kept {
    language::TensorId tensor;
    std::vector<StageId> readers;
    size_t from = 0;  // the first dimension of the tensor that lies along the row
  };
  std::vector<Kept> kept;
  std::vector<StageId> computed_once;  // elements that several stages of the row read
  std::optional<RowPart> part;         // of the last dimension that says which row
  bool is_kept() const { return !kept.empty() || !computed_once.empty(); }
};

/// The line of `rows`, or of parts of the last of their dimensions: `reductions` along it (the last
/// stage may be one), and elements that are computed where they are read.
RowLine row_line_of(const StageGraph& graph, const RowStages& rows,
                    const std::optional<RowPart>& part, const std::vector<StageId>& reductions,
                    const std::vector<StageId>& inlined);

/// The axes of a stage that are its line as one loop: those of a reduction, where their parts are
/// told apart by numbers that are known, else its last; of elements those behind the row's.
std::vector<AxisId> line_of(const StageGraph& graph, StageId stage, size_t dimensions);

/// The innermost axis of it, if a stage has a line.
AxisId line_axis(const Stage& stage);

}  // namespace kiln::autoschedule
