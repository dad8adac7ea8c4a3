// Outputs that steps put inside of what reads them. The caller sees an output whole, so
//   compute_inline(B)    the readers of B read a copy of its stage that is inline; B itself stays
//   at the root compute_at(B, C.i)   right where the loops of C come to all of B, which is asked
//   for when bounds are known:
//                        C[i] reads B[i], i in 0..n, B has n       ->  taken
//                        C[i] reads B[i], i in 0..n // 2           ->  refused: C reads elements 0
//                        to n // 2 - 1
// A dimension is covered where each read of it is at an axis of C plus a constant, an axis of its
// own for each dimension. What runs at once must not write one element: iterations of a parallel
// loop cut a dimension that is read at one place.
#include "compiler/schedule/steps/inner_outputs.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/new_stage.h"

namespace kiln::schedule {
namespace {

/// Where a dimension of an output is read: at the axis, plus `first` to `last`.
struct ReadAt {
  AxisId axis = 0;
  int64_t first = 0;
  int64_t last = 0;
};

class InnerOutput {
 public:
  InnerOutput(const StageGraph& graph, const NestPlan& plan, StageId id)
      : graph_(graph),
        plan_(plan),
        id_(id),
        stage_(graph[id]),
        consumer_(graph[stage_.attach.stage]),
        nest_(plan.nests[stage_.attach.stage]),
        facts_(facts_of_sizes(graph)),
        around_(loops_around(graph, plan, id)) {}

  void check(TargetKind target) {
    const auto narrows = [](const Condition& condition) { return !condition.is_reduce; };
    if (consumer_.attach.kind != Attach::Kind::Root || consumer_.kind != Stage::Kind::Compute ||
        std::ranges::any_of(consumer_.conditions, narrows)) {
      refuse(fmt::format("{} is computed in part or inside another stage itself", consumer_.name));
    }
    find_reads();
    for (size_t d = 0; d < reads_.size(); ++d)
      require_covered(d);
    require_iterations();
    for (const Loop* loop : around_) {
      if (runs_at_once(*loop, target)) require_own_elements(*loop);
    }
    for (const Loop& loop : nest_.loops) {
      const bool is_around = std::ranges::find(around_, &loop) != around_.end();
      if (!is_around && traits_of(target).has_threads &&
          graph_.axes[loop.axis].thread != ir::ThreadAxis::None) {
        refuse(fmt::format("its elements would be written by all threads of {}",
                           graph_.axes[loop.axis].name));
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::InvalidArgument, "COMPUTE_AT",
         "cannot compute {} at {} of {}: {} is an output, and {}; leave {} at the root",
         stage_.name, graph_.axes[stage_.attach.axis].name, consumer_.name, stage_.name, why,
         stage_.name);
  }

  std::vector<AxisId> axes_of_consumer() const {
    std::vector<AxisId> axes = consumer_.data;
    axes.insert(axes.end(), consumer_.reduce.begin(), consumer_.reduce.end());
    return axes;
  }

  void find_reads() {
    std::vector<std::optional<ReadAt>> found(stage_.data.size());
    for (const ir::Expr& body : expanded_bodies(graph_, stage_.attach.stage)) {
      for_each_read(body, [&](const ir::TensorRead& read) {
        if (read.stage != id_) return;
        for (size_t d = 0; d < found.size(); ++d)
          add(found[d], read.indices[d], d);
      });
    }
    for (const std::optional<ReadAt>& each : found) {
      if (!each) refuse(fmt::format("{} itself does not read it", consumer_.name));
      const bool is_new = std::ranges::none_of(
          reads_, [&](const ReadAt& other) { return other.axis == each->axis; });
      if (!is_new) {
        refuse(fmt::format("{} of {} is the index of two of its dimensions",
                           graph_.axes[each->axis].name, consumer_.name));
      }
      reads_.push_back(*each);
    }
  }

  void add(std::optional<ReadAt>& found, const ir::Expr& index, size_t d) const {
    for (const AxisId axis : axes_of_consumer()) {
      const std::optional<int64_t> offset =
          ir::as_const_int(analysis::simplify(index - ir::Expr(graph_.axes[axis].value), facts_));
      if (!offset || (found && found->axis != axis)) continue;
      if (!found) found = ReadAt{axis, *offset, *offset};
      found->first = std::min(found->first, *offset);
      found->last = std::max(found->last, *offset);
      return;
    }
    refuse(fmt::format("{} reads dimension {} of it at {}, which may not come to every element",
                       consumer_.name, d, index));
  }

  bool proves(const ir::Expr& condition) const { return analysis::can_prove(condition, facts_); }

  void require_covered(size_t d) const {
    const ReadAt& read = reads_[d];
    const Axis& axis = graph_.axes[read.axis];
    const ir::Expr& shape = stage_.shapes[0][d];
    if (has_read(axis.minimum) || has_read(axis.extent)) {
      refuse(fmt::format("how far {} runs is read from a tensor", axis.name));
    }
    const ir::Expr first = analysis::simplify(axis.minimum + ir::index(read.first), facts_);
    const ir::Expr end =
        analysis::simplify(axis.minimum + axis.extent + ir::index(read.last), facts_);
    if (!proves(ir::less_equal(first, ir::index(0))) || !proves(ir::less_equal(shape, end))) {
      refuse(fmt::format("along dimension {} {} reads elements {} to {} of its {}", d,
                         consumer_.name, first, analysis::simplify(end - 1, facts_), shape));
    }
    if (read.first != read.last) require_one_iteration(read.axis);
  }

  void require_one_iteration(AxisId axis) const {
    const ir::Expr& extent = graph_.axes[axis].extent;
    if (!has_read(extent) && proves(ir::less(ir::index(0), extent))) return;
    refuse(fmt::format("{} of {} may have no iterations, which would leave it out",
                       graph_.axes[axis].name, consumer_.name));
  }

  /// Loops around the output that do not cut it run at least once.
  void require_iterations() const {
    for (const AxisId axis : axes_of_consumer()) {
      const bool is_read =
          std::ranges::any_of(reads_, [&](const ReadAt& read) { return read.axis == axis; });
      if (!is_read && is_cut_by_loops_around(axis)) require_one_iteration(axis);
    }
  }

  bool is_cut_by_loops_around(AxisId axis) const {
    const ir::Expr& value = nest_.values.at(graph_.axes[axis].value);
    return std::ranges::any_of(around_,
                               [&](const Loop* loop) { return ir::uses_var(value, loop->var); });
  }

  bool runs_at_once(const Loop& loop, TargetKind target) const {
    const Axis& axis = graph_.axes[loop.axis];
    if (axis.thread != ir::ThreadAxis::None) return traits_of(target).has_threads;
    return axis.loop_kind == ir::LoopKind::Parallel;
  }

  /// Each iteration of the loop has a part of the output of its own.
  void require_own_elements(const Loop& loop) const {
    size_t cut = 0;
    bool is_own = readers_of(graph_, id_).size() == 1;
    for (const AxisId axis : axes_of_consumer()) {
      if (!ir::uses_var(nest_.values.at(graph_.axes[axis].value), loop.var)) continue;
      ++cut;
      const auto read = std::ranges::find(reads_, axis, &ReadAt::axis);
      if (read == reads_.end()) {
        is_own = false;
        continue;
      }
      const Region& region = plan_.nests[id_].region[static_cast<size_t>(read - reads_.begin())];
      is_own = is_own && read->first == read->last && !region.is_whole &&
               ir::uses_var(region.min, loop.var);
    }
    if (is_own && cut == 1) return;
    refuse(fmt::format("iterations of {}, which run at once, would write the same elements of it",
                       graph_.axes[loop.axis].name));
  }

  const StageGraph& graph_;
  const NestPlan& plan_;
  const StageId id_;
  const Stage& stage_;
  const Stage& consumer_;
  const Nest& nest_;
  const analysis::Facts facts_;
  const std::vector<const Loop*> around_;
  std::vector<ReadAt> reads_;  // one a dimension
};

/// The same stage over axes of its own, inline.
Stage inline_copy(StageGraph& graph, StageId id) {
  Stage copy = graph[id];
  ir::Substitution values;
  for (AxisId& axis : copy.data) {
    const Axis from = graph.axes[axis];
    axis = add_axis(graph, from.name, from.kind, from.minimum, from.extent);
    values[from.value] = graph.axes[axis].value;
  }
  for (ir::Expr& body : copy.bodies)
    body = ir::substitute(body, values);
  copy.conditions = conditions_in(copy.conditions, values, false);
  copy.role = {};
  return copy;
}

void redirect(StageGraph& graph, Stage& reader, StageId from, StageId to) {
  const auto redirected = [&](ir::Expr& expr) {
    expr = replace_reads(expr, [&](const ir::TensorRead& read) -> ir::Expr {
      if (read.stage != from) return &read;
      return ir::TensorRead::make(read.type, to, read.output, read.indices);
    });
  };
  for (ir::Expr& body : reader.bodies)
    redirected(body);
  for (ir::Expr& index : reader.as_scatter.indices)
    redirected(index);
  for (Condition& condition : reader.conditions)
    redirected(condition.holds);
  for (const AxisId axis : reader.reduce) {
    redirected(graph.axes[axis].minimum);
    redirected(graph.axes[axis].extent);
  }
}

}  // namespace

void keep_inlined_outputs(StageGraph& graph) {
  const auto count = static_cast<StageId>(graph.stages.size());
  for (StageId id = 0; id < count; ++id) {
    if (graph[id].attach.kind != Attach::Kind::Inline || !graph.has_parameter(id)) continue;
    const StageId copy = enter_stage(graph, inline_copy(graph, id), id, true);
    for (StageId reader = 0; reader < count; ++reader) {
      if (reader != id) redirect(graph, graph.stages[reader], id, copy);
    }
    graph.stages[id].attach = {};
  }
}

void check_inner_outputs(const StageGraph& graph, const NestPlan& plan,
                         const language::Schedule& schedule, TargetKind target) {
  for (const StageId id : graph.order) {
    const Attach& attach = graph[id].attach;
    if (!graph[id].is_live || attach.kind != Attach::Kind::At || attach.step < 0) continue;
    if (!graph.has_parameter(id)) continue;
    const language::Step& step = schedule.steps[static_cast<size_t>(attach.step)];
    const std::string text = fmt::format("compute_at({}, {}.{})", graph[id].name,
                                         graph[attach.stage].name, graph.axes[attach.axis].name);
    at_step(graph, step, attach.step, text, [&] { InnerOutput(graph, plan, id).check(target); });
  }
}

}  // namespace kiln::schedule
