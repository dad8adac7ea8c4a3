// Whether the loops over columns can stand around time, or must start anew at each step.
//
//   S[t, x] = S[t - 1, x] + X[t, x], x bound to threads  ->  for x (threads): for t: ..
//   S[t, x] = S[t - 1, x + 1]                            ->  for t: for x (threads): ..
//
// Loop interchange by dependence: legal where each column reads only itself, which is decided on
// trial nests of all parts of the scan, whose outermost loops must cut the columns alike.
#include "compiler/schedule/bounds/scan_loops.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

/// The stages of a scan that have nests of their own around or inside its time loop: inits first.
std::vector<StageId> nests_of(const StageGraph& graph, StageId scan) {
  std::vector<StageId> nests;
  for (const bool inits : {true, false}) {
    for (const StageId id : graph.order) {
      const Stage& stage = graph[id];
      if (!stage.is_live || stage.kind != Stage::Kind::Compute) continue;
      const bool is_init = stage.role.is_init && stage.role.init_of == scan;
      const bool in_time = stage.attach.kind == Attach::Kind::At && stage.attach.stage == scan &&
                           !stage.role.is_init;
      if (inits ? is_init : in_time) nests.push_back(id);
    }
  }
  return nests;
}

/// The time of a stage in the loop is one step there, so it has no loop.
std::vector<AxisId> space_leaves(const StageGraph& graph, StageId id) {
  const Stage& stage = graph[id];
  std::vector<AxisId> leaves = stage.loops.leaves;
  std::erase(leaves, stage.time_axis());
  return leaves;
}

bool runs_at_once(const Axis& axis) {
  return axis.loop_kind == ir::LoopKind::ThreadIndex || axis.loop_kind == ir::LoopKind::Parallel;
}

/// How many of the outermost loops all nests have in common, by how they run.
size_t common_loops(const StageGraph& graph, const std::vector<StageId>& nests) {
  const std::vector<AxisId> first = space_leaves(graph, nests[0]);
  size_t count = 0;
  for (; count < first.size(); ++count) {
    const Axis& axis = graph.axes[first[count]];
    if (!runs_at_once(axis) || axis.kind != AxisKind::Data) break;
    const bool all = std::all_of(nests.begin(), nests.end(), [&](StageId id) {
      const std::vector<AxisId> leaves = space_leaves(graph, id);
      if (count >= leaves.size()) return false;
      const Axis& other = graph.axes[leaves[count]];
      return other.loop_kind == axis.loop_kind && other.thread == axis.thread &&
             other.kind == AxisKind::Data;
    });
    if (!all) break;
  }
  return count;
}

/// A nest of which only time is fixed.
Nest trial_nest(const StageGraph& graph, StageId id, const analysis::Facts& sizes) {
  std::vector<Region> region;
  for (const ir::Expr& extent : graph[id].shapes[0])
    region.push_back({ir::index(0), extent, true});
  region[static_cast<size_t>(graph[id].time_dimension)] = {ir::index(0), ir::index(1), false};
  return make_nest(graph, id, std::move(region), {}, sizes);
}

/// The loops of a nest that are loops.
std::vector<Loop> real_loops(const Nest& nest) {
  std::vector<Loop> loops;
  for (const Loop& loop : nest.loops) {
    if (!loop.is_elided) loops.push_back(loop);
  }
  return loops;
}

/// Decides for one scan how many loops can stand around it.
class SharedLoops {
 public:
  SharedLoops(const StageGraph& graph, StageId scan, const analysis::Facts& sizes)
      : graph_(graph), scan_(scan), sizes_(sizes), nests_(nests_of(graph, scan)) {}

  std::vector<Loop> find() {
    // Cheap questions first: a trial nest costs as much as the real one.
    if (nests_.empty() || !all_start_with_time() || !all_agree_on_time()) return {};
    const size_t count = common_loops(graph_, nests_);
    if (count == 0) return {};
    for (const StageId id : nests_)
      trials_.push_back(trial_nest(graph_, id, sizes_));
    const std::vector<Loop> first = real_loops(trials_[0]);
    if (first.size() < count) return {};
    for (const Nest& trial : trials_) {
      if (!same_columns(first, trial, count)) return {};
    }
    for (size_t i = 0; i < nests_.size(); ++i) {
      if (!reads_own_column(i, count)) return {};
    }
    return {first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  /// No loop of time stands outside the loops of space.
  bool all_start_with_time() const {
    return std::all_of(nests_.begin(), nests_.end(), [&](StageId id) {
      const Stage& stage = graph_[id];
      return !stage.loops.leaves.empty() && stage.loops.leaves[0] == stage.time_axis() &&
             graph_.axes[stage.time_axis()].annotated_by < 0;
    });
  }

  /// Columns are told by the dimensions besides time, so it must be the same one everywhere.
  bool all_agree_on_time() const {
    return std::all_of(nests_.begin(), nests_.end(), [&](StageId id) {
      return graph_[id].time_dimension == graph_[nests_[0]].time_dimension;
    });
  }

  bool is_time(size_t dimension) const { return graph_[nests_[0]].is_time(dimension); }

  /// Whether a loop takes part in the value of a dimension.
  static bool is_shared_dimension(const Nest& nest, size_t dimension, size_t count) {
    const std::vector<Loop> loops = real_loops(nest);
    return std::any_of(
        loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(count),
        [&](const Loop& loop) { return ir::uses_var(nest.offsets[dimension], loop.var); });
  }

  /// Whether the shared loops of `nest` cut its dimensions as those of the first nest do: the same
  /// extents, and the same value of each dimension when loops are matched in order.
  bool same_columns(const std::vector<Loop>& first, const Nest& nest, size_t count) const {
    const std::vector<Loop> loops = real_loops(nest);
    if (loops.size() < count || nest.offsets.size() != trials_[0].offsets.size()) return false;
    ir::Substitution matched;
    for (size_t i = 0; i < loops.size() && i < first.size(); ++i) {
      matched[loops[i].var] = first[i].var;
      if (i < count &&
          !ir::equal_trees(ir::substitute(loops[i].extent, matched), first[i].extent)) {
        return false;
      }
    }
    for (size_t d = 0; d < nest.offsets.size(); ++d) {
      if (is_time(d)) continue;
      const bool shared = is_shared_dimension(nest, d, count);
      if (shared != is_shared_dimension(trials_[0], d, count)) return false;
      if (!shared) continue;
      if (!ir::equal_trees(ir::substitute(nest.offsets[d], matched), trials_[0].offsets[d]) ||
          !ir::equal_trees(nest.region[d].extent, trials_[0].region[d].extent)) {
        return false;
      }
    }
    return true;
  }

  /// The nest among ours whose loops compute what a read gets; null for a tensor from outside.
  const Nest* writer_of(const ir::TensorRead& read) const {
    const std::optional<ScanOutput> output = graph_.scan_output_of({read.stage, read.output});
    if (output && output->scan == scan_) return &trials_[0];
    for (size_t i = 0; i < nests_.size(); ++i) {
      if (nests_[i] == read.stage) return &trials_[i];
    }
    return nullptr;
  }

  /// Whether everything computed inside a nest of the time loop reads states and cells at the
  /// column it computes, in each dimension that the shared loops cut.
  bool reads_own_column(size_t nest, size_t count) const {
    for (const StageId reader : graph_.order) {
      if (reader != nests_[nest] && !is_attached_inside(reader, nests_[nest])) continue;
      bool holds = true;
      for (const ir::Expr& body : expanded_bodies(graph_, reader)) {
        for_each_read(body, [&](const ir::TensorRead& read) {
          const Nest* writer = writer_of(read);
          if (writer == nullptr) return;
          // What is attached further in has other loops; only the nest itself is easily followed.
          holds = holds && reader == nests_[nest] && is_own_column(reader, read, *writer, count);
        });
      }
      if (!holds) return false;
    }
    return true;
  }

  bool is_own_column(StageId reader, const ir::TensorRead& read, const Nest& writer,
                     size_t count) const {
    const Stage& stage = graph_[reader];
    for (size_t d = 0; d < read.indices.size(); ++d) {
      if (is_time(d) || !is_shared_dimension(writer, d, count)) continue;
      if (!(read.indices[d] == ir::Expr(graph_.axes[stage.data[d]].value))) return false;
    }
    // A cell must be read at the present step, since nothing else of it exists.
    const bool is_state = graph_.scan_output_of({read.stage, read.output}).has_value();
    const auto time = static_cast<size_t>(stage.time_dimension);
    return is_state || read.indices[time] == ir::Expr(graph_.axes[stage.time_axis()].value);
  }

  bool is_attached_inside(StageId stage, StageId nest) const {
    const Attach& attach = graph_[stage].attach;
    if (!graph_[stage].is_live || attach.kind != Attach::Kind::At) return false;
    return attach.stage == nest || (graph_[attach.stage].kind == Stage::Kind::Compute &&
                                    is_attached_inside(attach.stage, nest));
  }

  const StageGraph& graph_;
  const StageId scan_;
  const analysis::Facts& sizes_;
  const std::vector<StageId> nests_;
  std::vector<Nest> trials_;
};

}  // namespace

Nest make_scan_nest(const StageGraph& graph, StageId scan, const analysis::Facts& sizes) {
  std::vector<Loop> loops = SharedLoops(graph, scan, sizes).find();
  Nest nest = make_nest(graph, scan, {}, {}, sizes);
  for (Loop& loop : loops)
    loop.is_shared = true;
  for (Guard& guard : nest.guards)
    // Levels count all loops of the nest, and the shared ones now stand in front.
    guard.level += loops.size();
  nest.loops.insert(nest.loops.begin(), loops.begin(), loops.end());
  return nest;
}

std::vector<Loop> shared_loops_of(const StageGraph& graph, const NestPlan& plan, StageId id) {
  const Stage& stage = graph[id];
  const bool in_time =
      stage.attach.kind == Attach::Kind::At && graph[stage.attach.stage].kind == Stage::Kind::Scan;
  if (!stage.role.is_init && !in_time) return {};
  std::vector<Loop> shared;
  for (const Loop& loop :
       plan.nests[stage.role.is_init ? stage.role.init_of : stage.attach.stage].loops) {
    if (loop.is_shared) shared.push_back(loop);
  }
  return shared;
}

ir::Expr time_value(const StageGraph& graph, const NestPlan& plan, StageId scan) {
  const ir::Expr& step = plan.nests[scan].values.at(graph.axes[graph[scan].as_scan.time].value);
  return graph[scan].as_scan.is_reverse ? steps_of(graph, scan) - 1 - step : step;
}

const ir::Expr& steps_of(const StageGraph& graph, StageId scan) {
  return graph[scan].shapes[0][static_cast<size_t>(graph[scan].time_dimension)];
}

}  // namespace kiln::schedule
