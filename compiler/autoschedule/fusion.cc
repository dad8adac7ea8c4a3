#include "compiler/autoschedule/fusion.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/batch_sketches.h"
#include "compiler/autoschedule/short_rows.h"
#include "compiler/autoschedule/stage_schedules.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/reads.h"

namespace kiln::autoschedule {
namespace {

// With fewer rows the cores had nothing to share.
constexpr int64_t kFewRows = 8;

/// The reads of a stage in another one.
std::vector<const ir::TensorRead*> reads_of(const StageGraph& graph, StageId id, StageId reader) {
  std::vector<const ir::TensorRead*> found;
  for (const ir::Expr& part : schedule::reading_parts(graph, graph[reader])) {
    schedule::for_each_read(part, [&](const ir::TensorRead& read) {
      if (read.stage == id) found.push_back(&read);
    });
  }
  return found;
}

/// Whether one stage reads an element once, at most.
bool is_read_once(const StageGraph& graph, StageId id) {
  const std::vector<StageId> readers = schedule::readers_of(graph, id);
  if (readers.size() != 1) return false;
  const Stage& reader = graph[readers[0]];
  const std::vector<const ir::TensorRead*> reads = reads_of(graph, id, readers[0]);
  if (reader.kind != Stage::Kind::Compute || reads.size() != 1) return false;
  // Each loop of the reader moves to another element.
  std::vector<AxisId> own;
  for (const ir::Expr& index : reads[0]->indices) {
    for (const std::vector<AxisId>* axes : {&reader.data, &reader.reduce}) {
      for (const AxisId axis : *axes) {
        if (index == ir::Expr(graph.axes[axis].value)) own.push_back(axis);
      }
    }
  }
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  return own.size() == reader.data.size() + reader.reduce.size();
}

/// Elements that can be computed where they are read, as long as nothing is computed twice.
bool can_be_inline(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  if (!is_free(graph, id) || is_argument(graph, id) || stage.is_reduction() ||
      stage.bodies.size() != 1 || !reductions_inside(graph, id).empty() ||
      !is_read_once(graph, id)) {
    return false;
  }
  const StageId reader = schedule::readers_of(graph, id)[0];
  return !graph[reader].is_touched && graph[reader].cell_of < 0 && !graph[reader].is_init;
}

/// The stage that a part was taken out of, else the stage itself.
StageId whole_of(const StageGraph& graph, StageId id) {
  return graph[id].part_of ? *graph[id].part_of : id;
}

/// Stages computed in the loops over rows of the last of them.
class Rows {
 public:
  Rows(const StageGraph& graph, StageId last, size_t dimensions)
      : graph_(graph), last_(last), dimensions_(dimensions) {
    for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
      if (belongs(*id)) members_.push_back(*id);
    }
    std::ranges::reverse(members_);
  }

  /// Without the last, in the order of the graph.
  const std::vector<StageId>& members() const { return members_; }

 private:
  bool belongs(StageId id) const {
    const Stage& stage = graph_[id];
    if (id == last_ || !is_free(graph_, id) || is_argument(graph_, id) ||
        stage.data.size() < dimensions_ || is_product(graph_, id) ||
        has_dependent_extents(graph_, id) || has_indirect_reads(stage)) {
      return false;
    }
    const std::vector<StageId> readers = schedule::readers_of(graph_, id);
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
    return std::ranges::all_of(reads_of(graph_, id, reader), [&](const ir::TensorRead* read) {
      for (size_t d = 0; d < dimensions_; ++d) {
        const AxisId axis = graph_[reader].data[d];
        if (!(read->indices[d] == ir::Expr(graph_.axes[axis].value))) return false;
      }
      return true;
    });
  }

  const StageGraph& graph_;
  const StageId last_;
  const size_t dimensions_;
  std::vector<StageId> members_;
};

bool has_few_rows(const StageGraph& graph, StageId last, size_t dimensions) {
  int64_t rows = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    const auto extent =
        ir::as_const_int(analysis::simplify(graph.axes[graph[last].data[d]].extent));
    if (!extent) return false;
    rows = std::min(rows, kFewRows) * std::max<int64_t>(*extent, 0);
  }
  return rows < kFewRows;
}

/// Whether rows of a stage are rows: what is left of it has loops of its own.
bool has_rows(const StageGraph& graph, StageId id, size_t dimensions) {
  const Stage& stage = graph[id];
  return dimensions < stage.data.size() || stage.is_reduction() ||
         !reductions_inside(graph, id).empty();
}

class Fusion {
 public:
  Fusion(const language::Kernel& kernel, const CompileOptions& options, VectorUnit vectors)
      : kernel_(kernel), options_(options), vectors_(vectors) {}

  OpenSchedule run(OpenSchedule given) {
    add_inline_stages(given);
    const StageGraph graph = graph_of(kernel_, given);
    StepWriter steps(std::move(given.schedule), graph);
    const Chooser chooser{graph, options_, vectors_};
    std::vector<bool> done(graph.stages.size(), false);
    for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
      if (!is_free(graph, *id) || done[*id] || is_product(graph, *id) ||
          has_dependent_extents(graph, *id) || has_indirect_reads(graph[*id])) {
        continue;
      }
      // The most rows there are: the least is kept of each.
      for (size_t dimensions = graph[*id].data.size(); dimensions > 0; --dimensions) {
        if (!has_rows(graph, *id, dimensions) || has_few_rows(graph, *id, dimensions)) continue;
        const Rows rows(graph, *id, dimensions);
        if (rows.members().empty()) continue;
        write(chooser, steps, rows.members(), *id, dimensions);
        for (const StageId member : rows.members())
          done[member] = true;
        break;
      }
    }
    given.schedule = std::move(steps).schedule();
    return given;
  }

 private:
  /// One after the other: what is inline already counts for the next.
  void add_inline_stages(OpenSchedule& given) const {
    const StageGraph graph = graph_of(kernel_, given);
    std::vector<StageId> found;
    for (const StageId id : graph.order) {
      if (can_be_inline(graph, id)) found.push_back(id);
    }
    StepWriter steps(std::move(given.schedule), graph);
    for (const StageId id : found)
      steps.compute_inline(id);
    given.schedule = std::move(steps).schedule();
  }

  static void write(const Chooser& chooser, StepWriter& steps, const std::vector<StageId>& members,
                    StageId last, size_t dimensions) {
    std::vector<AxisId> loops = chooser.graph[last].data;
    loops.resize(dimensions);
    if (const RowStages rows{members, last, dimensions}; are_short(chooser, rows)) {
      loops.back() = write_short_rows(chooser, steps, rows);
    } else {
      for (const StageId member : members)
        schedule_row(chooser, steps, member, dimensions);
      schedule_row(chooser, steps, last, dimensions);
      for (const StageId member : members)
        steps.compute_at(member, last, loops.back());
    }
    if (!is_large(chooser.graph, last) &&
        std::ranges::none_of(members, [&](StageId id) { return is_large(chooser.graph, id); })) {
      return;
    }
    for (const AxisId loop : loops)
      steps.parallel(last, loop);
  }

  /// Vectors along a row. A stage with one element a row has none, but its reductions may.
  static void schedule_row(const Chooser& chooser, StepWriter& steps, StageId id,
                           size_t dimensions) {
    if (!has_rows(chooser.graph, id, dimensions)) return;
    const std::vector<Sketch> sketches = compute_sketches(chooser, id, /*may_be_parallel=*/false);
    if (sketches.empty()) return;
    const std::vector<int64_t> values = sketches[0].preferred();
    sketches[0].write(steps, Values(sketches[0].parameters, values));
  }

  const language::Kernel& kernel_;
  const CompileOptions& options_;
  const VectorUnit vectors_;
};

}  // namespace

OpenSchedule fuse_stages(const language::Kernel& kernel, OpenSchedule given,
                         const CompileOptions& options, VectorUnit vectors) {
  return Fusion(kernel, options, vectors).run(std::move(given));
}

}  // namespace kiln::autoschedule
