// A thread for each line across the last dimension, with all that is reduced along it.
//
//   M[n, x] = max[c](X[n, c, x]); S[n, x] = sum[c](exp(X[n, c, x] - M[n, x]))
//   Y[n, c, x] = exp(X[n, c, x] - M[n, x]) / S[n, x]
//     ->  threads n.x: M and S in registers; c in order, each load of a warp is of neighbours
//
// Read again for each reduction, a block's lines are still in L1 where they are short.
#include "compiler/autoschedule/templates/across_threads.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/rows.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Lines for each multiprocessor, so that enough is on its way from memory; of short ones two warps
// are better than a launch for each stage.
constexpr int64_t kFewestLines = 512;
constexpr int64_t kFewestShortLines = 64;
constexpr int64_t kShortLine = 32;

/// The axes of a stage as lines: those that say which line, and the one along it, if it has one.
struct Axes {
  std::vector<AxisId> lines;
  std::optional<AxisId> along;
};

class Across {
 public:
  Across(const Chooser& chooser, StageId last, size_t dimension)
      : graph_(chooser.graph), found_{.last = last, .dimension = dimension} {
    readers_ = schedule::readers_of_each(graph_);
  }

  /// Nothing where a stage that it needs first is neither a number of a line nor its elements.
  std::optional<AcrossThreads> run() && {
    for (auto id = graph_.order.rbegin(); id != graph_.order.rend(); ++id) {
      if (!belongs(*id)) continue;
      members_.push_back(*id);
      (graph_[*id].is_reduction() ? found_.reductions : found_.inlined).push_back(*id);
    }
    if (found_.reductions.empty()) return std::nullopt;
    return std::move(found_);
  }

 private:
  /// A stage belongs when all its readers do, and readers come later in the order of the graph.
  bool belongs(StageId id) const {
    const Stage& stage = graph_[id];
    const bool is_plain = is_open(graph_, id) && !graph_.has_parameter(id) &&
                          stage.bodies.size() == 1 && !has_dependent_extents(graph_, id) &&
                          !has_indirect_reads(stage) && reductions_inside(graph_, id).empty() &&
                          axes_of(id).has_value();
    return is_plain && !readers_[id].empty() &&
           std::ranges::all_of(readers_[id], [&](StageId reader) {
             return is_member(reader) && reads_own_line(id, reader);
           });
  }

  bool is_member(StageId id) const {
    return id == found_.last || std::ranges::find(members_, id) != members_.end();
  }

  size_t rank() const { return graph_[found_.last].data.size(); }

  /// Whether the stage has the dimension along which lines are, as one element.
  bool keeps_dimension(const Stage& stage) const {
    return stage.data.size() == rank() && is_unit(graph_, stage.data[found_.dimension]);
  }

  std::optional<Axes> axes_of(StageId id) const {
    const Stage& stage = graph_[id];
    Axes axes{.lines = stage.data, .along = std::nullopt};
    if (stage.data.size() == rank()) {
      const auto at = axes.lines.begin() + static_cast<long>(found_.dimension);
      if (!keeps_dimension(stage)) axes.along = *at;
      axes.lines.erase(at);
    }
    if (axes.lines.size() + 1 != rank()) return std::nullopt;
    if (!stage.is_reduction()) return axes;
    if (axes.along || stage.reduce.size() != 1) return std::nullopt;
    axes.along = stage.reduce[0];
    return axes;
  }

  /// Whether each read is of the line that the reader computes.
  bool reads_own_line(StageId id, StageId reader) const {
    const Stage& stage = graph_[id];
    const Axes axes = *axes_of(reader);
    std::vector<ir::Expr> expected;
    for (const AxisId axis : axes.lines)
      expected.push_back(graph_.axes[axis].value);
    const auto at = expected.begin() + static_cast<long>(found_.dimension);
    if (keeps_dimension(stage)) {
      expected.insert(at, ir::index(0));
    } else if (stage.data.size() == rank()) {
      if (!axes.along) return false;
      expected.insert(at, graph_.axes[*axes.along].value);
    }
    return std::ranges::all_of(reads_written_out(graph_, reader), [&](const ir::Expr& expr) {
      const ir::TensorRead& read = *ir::as<ir::TensorRead>(expr);
      return read.stage != id || std::ranges::equal(read.indices, expected, is_same);
    });
  }

  static bool is_same(const ir::Expr& a, const ir::Expr& b) {
    const auto number = ir::as_const_int(b);
    return a == b || (number && ir::as_const_int(a) == number);
  }

  const StageGraph& graph_;
  AcrossThreads found_;
  std::vector<std::vector<StageId>> readers_;
  std::vector<StageId> members_;
};

}  // namespace

std::optional<AcrossThreads> across_threads_of(const Chooser& chooser, StageId last) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[last];
  const bool is_plain = is_open(graph, last) && !stage.is_reduction() && stage.bodies.size() == 1 &&
                        stage.time_dimension < 0 && reductions_inside(graph, last).empty() &&
                        !has_indirect_reads(stage);
  const auto elements = constant_extent_of(graph, stage.data);
  if (!is_plain || !elements) return std::nullopt;
  const int64_t multiprocessors = gpu_machine(chooser.arch).multiprocessors;
  for (size_t dimension = 0; dimension + 1 < stage.data.size(); ++dimension) {
    const int64_t length = constant_extent(graph, stage.data[dimension]).value_or(1);
    const int64_t fewest = length <= kShortLine ? kFewestShortLines : kFewestLines;
    if (length < 2 || *elements / length < fewest * multiprocessors) continue;
    if (auto found = Across(chooser, last, dimension).run()) return found;
  }
  return std::nullopt;
}

void bind_across(const StageGraph& graph, StepWriter& steps, const AcrossThreads& lines,
                 int64_t threads) {
  for (const StageId id : lines.inlined)
    steps.compute_inline(id);
  std::vector<AxisId> axes = graph[lines.last].data;
  const AxisId along = axes[lines.dimension];
  axes.erase(axes.begin() + static_cast<long>(lines.dimension));
  std::vector<AxisId> order = axes;
  order.push_back(along);
  steps.reorder(lines.last, order);
  const auto [block, thread] = steps.split(lines.last, steps.fuse(lines.last, axes), threads);
  steps.bind(lines.last, block, "blockIdx.x");
  steps.bind(lines.last, thread, "threadIdx.x");
  for (const StageId id : lines.reductions)
    steps.compute_at(id, lines.last, thread);
}

}  // namespace kiln::autoschedule
