#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// Stages of which an element of the first `dimensions` dimensions is a row; the last of them has
/// the loops over rows that the others are computed in.
struct RowStages {
  std::vector<StageId> members;  // without the last, in the order of the graph
  StageId last;
  size_t dimensions;
};

/// Rows of which each is a part of the last of their dimensions, in the stage that reads them last:
/// `size` channels of an image are a group of its own in a group norm.
///
///   Y[n, c, x] = X[n, c, x] - M[n, c / 8]    rows of dimensions n and c / 8, lines c % 8 and x
struct RowPart {
  int64_t size;
};

/// Whether products belong to rows. Row by row they have no tiles, in blocks of rows they do.
enum class Products : uint8_t { StayApart, Belong };

/// The stages that can be computed in the loops over rows of `last`: free ones, and `parts`, which
/// the schedule has taken out of expressions for that.
RowStages rows_of(const StageGraph& graph, StageId last, size_t dimensions,
                  const std::vector<StageId>& parts = {}, Products products = Products::StayApart,
                  const std::optional<RowPart>& part = std::nullopt);

/// Whether rows of a stage are rows: what is left of it has loops of its own.
bool has_rows(const StageGraph& graph, StageId id, size_t dimensions);

/// Whether there are too few rows for several cores, for all one knows.
bool has_few_rows(const StageGraph& graph, StageId last, size_t dimensions);

/// What a stage reads, with all that is inline written out.
std::vector<ir::Expr> reads_written_out(const StageGraph& graph, StageId reader);

}  // namespace kiln::autoschedule
