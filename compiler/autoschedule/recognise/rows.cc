// Groups stages that read each other row by row, so that one loop over rows can hold them all: the
// largest set, found backwards from the last reader, in which each read is of the reader's own row.
//
//   M[i] = max(X[i, ..]); E[i, j] = exp(X[i, j] - M[i]); Y[i, j] = E[i, j] / sum(E[i, ..])
//
// All of them with i as the row; a stage that reads E[i - 1, j] ends the group.
#include "compiler/autoschedule/recognise/rows.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/side_by_side.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/reads.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

// With fewer rows cores have nothing to share: two for each of a plan for few cores, so that one
// which begins late takes one less.
constexpr int64_t kFewRows = 2 * kFewCores;

/// The stage that a part was taken out of, else the stage itself.
StageId whole_of(const StageGraph& graph, StageId id) {
  return graph[id].part_of ? *graph[id].part_of : id;
}

class Rows {
 public:
  // A stage belongs when all its readers do, and readers come later in the order of the graph.
  Rows(const StageGraph& graph, const RowStages& rows, const std::vector<StageId>& parts,
       Products products, const std::optional<RowPart>& part)
      : graph_(graph),
        last_(rows.last),
        dimensions_(rows.dimensions),
        parts_(parts),
        products_(products),
        part_(part) {
    readers_ = schedule::readers_of_each(graph);
    for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
      if (belongs(*id)) members_.push_back(*id);
    }
    std::ranges::reverse(members_);
  }

  RowStages found() && { return {std::move(members_), last_, dimensions_}; }

 private:
  bool belongs(StageId id) const {
    const Stage& stage = graph_[id];
    const bool may_move = is_free(graph_, id) || std::ranges::find(parts_, id) != parts_.end();
    if (id == last_ || !may_move || graph_.has_parameter(id) || stage.data.size() < dimensions_ ||
        has_dependent_extents(graph_, id) || has_indirect_reads(stage)) {
      return false;
    }
    if (products_ == Products::StayApart && is_product(graph_, id)) return false;
    const std::vector<StageId>& readers = readers_[id];
    return !readers.empty() && std::ranges::all_of(readers, [&](StageId reader) {
      return is_member(whole_of(graph_, reader)) && reads_own_row(id, reader);
    });
  }

  bool is_member(StageId id) const {
    return id == last_ || std::ranges::find(members_, id) != members_.end();
  }

  /// Whether each read is of the row that the reader computes.
  bool reads_own_row(StageId id, StageId reader) const {
    if (graph_[reader].data.size() < dimensions_) return false;
    if (graph_[reader].part_of && !reads_own_row(reader, whole_of(graph_, reader))) return false;
    return std::ranges::all_of(reads_written_out(graph_, reader), [&](const ir::Expr& expr) {
      const ir::TensorRead* read = ir::as<ir::TensorRead>(expr);
      if (read->stage != id) return true;
      for (size_t d = 0; d < dimensions_; ++d) {
        const ir::Expr axis = graph_.axes[graph_[reader].data[d]].value;
        const bool is_part = part_ && reader == last_ && d + 1 == dimensions_;
        if (is_part &&
            !ir::equal_trees(read->indices[d], ir::floordiv(axis, ir::index(part_->size))))
          return false;
        if (!is_part && !(read->indices[d] == axis)) return false;
      }
      return true;
    });
  }

  const StageGraph& graph_;
  const StageId last_;
  const size_t dimensions_;
  const std::vector<StageId>& parts_;
  const Products products_;
  const std::optional<RowPart> part_;
  std::vector<std::vector<StageId>> readers_;
  std::vector<StageId> members_;
};

}  // namespace

RowStages rows_of(const StageGraph& graph, StageId last, size_t dimensions,
                  const std::vector<StageId>& parts, Products products,
                  const std::optional<RowPart>& part) {
  return Rows(graph, {{}, last, dimensions}, parts, products, part).found();
}

bool has_rows(const StageGraph& graph, StageId id, size_t dimensions) {
  const Stage& stage = graph[id];
  return dimensions < stage.data.size() || stage.is_reduction() ||
         !reductions_inside(graph, id).empty();
}

bool has_few_rows(const StageGraph& graph, StageId last, size_t dimensions) {
  int64_t rows = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const auto extent = constant_extent(graph, graph[last].data[d]);
    if (!extent) return false;
    rows = std::min(rows, kFewRows) * std::max<int64_t>(*extent, 0);
  }
  return rows < kFewRows;
}

std::vector<ir::Expr> reads_written_out(const StageGraph& graph, StageId reader) {
  std::vector<ir::Expr> found;
  for (const ir::Expr& part : schedule::expanded_bodies(graph, reader))
    schedule::for_each_read(part,
                            [&](const ir::TensorRead& read) { found.push_back(ir::Expr(&read)); });
  return found;
}

}  // namespace kiln::autoschedule
