// Refuses a read that no size makes right: the bounds of an index over all iterations, by interval
// arithmetic, against the shape.
//
//   Y[i] = X[i + 1], i < n, X of n     "index 0 reaches n": refused
//   Y[i] = X[idx[i]]                   depends on data: checked while the kernel runs
//
// Only linear indices, whose bounds are reached by some iteration: a bound of x*y need not be.
#include "compiler/schedule/bounds/check_reads.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

using language::Operator;

/// Whether an index is a sum of axes times constants, so that its bounds are reached.
bool is_linear(const ir::Expr& expr) {
  if (ir::as<ir::Var>(expr) != nullptr || ir::as<ir::IntImm>(expr) != nullptr) return true;
  const ir::Binary* binary = ir::as<ir::Binary>(expr);
  if (binary == nullptr) return false;
  if (binary->op == Operator::Add || binary->op == Operator::Sub) {
    return is_linear(binary->a) && is_linear(binary->b);
  }
  return binary->op == Operator::Mul && ((ir::as_const_int(binary->a) && is_linear(binary->b)) ||
                                         (ir::as_const_int(binary->b) && is_linear(binary->a)));
}

/// Looks at the reads of one stage that happen in every iteration.
class WrongReads : public ir::Visitor {
 public:
  WrongReads(const StageGraph& graph, StageId stage) : graph_(graph), stage_(stage) {
    facts_ = facts_of_sizes(graph);
    analysis::Facts around = facts_;
    for (const std::vector<AxisId>* axes : {&graph[stage].data, &graph[stage].reduce}) {
      for (const AxisId id : *axes) {
        const Axis& axis = graph.axes[id];
        ir::Expr minimum = axis.minimum;
        ir::Expr extent = axis.extent;
        if (graph[stage].role.is_update && id == graph[stage].time_axis()) {
          const Stage& scan = graph[static_cast<StageId>(graph[stage].role.cell_of)];
          const Axis& time = graph.axes[scan.as_scan.time];
          minimum = scan.as_scan.is_reverse ? ir::index(0) : time.minimum;
          extent = time.extent;
        }
        if (uses_axes(minimum) || uses_axes(extent)) {
          runs_always_ = runs_always_ && is_linear(minimum) && is_linear(extent) &&
                         analysis::can_prove(ir::less_equal(ir::index(1), extent), around);
        }
        const ir::Expr runs = ir::less_equal(ir::index(1), extent);
        facts_.push_condition(runs);
        around.push_condition(runs);
        around.push_range(axis.value, minimum, minimum + extent);
        ranges_.push_back({axis.value, minimum, minimum + extent});
      }
    }
  }

  /// Whether every loop has iterations, whatever the axes around it are, as far as extents depend
  /// on these. Else no read is sure to happen.
  bool runs_always() const { return runs_always_; }

 private:
  using Visitor::visit;

  /// Whether a bound depends on an axis around it, or on data.
  bool uses_axes(const ir::Expr& bound) const {
    return has_read(bound) || std::ranges::any_of(ranges_, [&](const analysis::Facts::Range& axis) {
             return ir::uses_var(bound, axis.var);
           });
  }

  // The condition is always computed; a branch may be meant not to be.
  void visit(const ir::Call& call) override {
    if (call.op != Operator::IfThenElse) return Visitor::visit(call);
    (*this)(call.args[0]);
  }

  void visit(const ir::Reduce& reduce) override {
    if (!reduce.condition) return Visitor::visit(reduce);
    (*this)(reduce.condition);
    for (const ir::Expr& init : reduce.init)
      (*this)(init);
  }

  void visit(const ir::TensorRead& read) override {
    Visitor::visit(read);
    const std::vector<ir::Expr>& shape = graph_[read.stage].shapes[read.output];
    for (size_t d = 0; d < read.indices.size(); ++d) {
      if (!is_linear(read.indices[d])) continue;
      const analysis::Interval bounds = analysis::bounds_of(read.indices[d], ranges_, facts_);
      if (!bounds.min || !bounds.max) continue;
      if (analysis::can_prove(ir::less(bounds.min, ir::index(0)), facts_)) {
        if (graph_[read.stage].is_time(d)) refuse_early_step(read, bounds.min);
        refuse(read, d, bounds.min);
      }
      if (analysis::can_prove(ir::less_equal(shape[d], bounds.max), facts_)) {
        refuse(read, d, bounds.max);
      }
    }
  }

  /// "X[i + 1, j]"
  std::string text_of(const ir::TensorRead& read) const {
    std::string indices;
    for (const ir::Expr& index : read.indices) {
      indices += (indices.empty() ? "" : ", ") + ir::print(index);
    }
    return fmt::format("{}[{}]", graph_.tensor_name({read.stage, read.output}), indices);
  }

  void refuse_early_step(const ir::TensorRead& read, const ir::Expr& reached) const {
    const std::optional<ScanOutput> output = graph_.scan_output_of({read.stage, read.output});
    if (!output || graph_[read.stage].kind != Stage::Kind::Placeholder) return;
    const Stage& scan = graph_[output->scan];
    const std::optional<int64_t> step = ir::as_const_int(analysis::simplify(reached, facts_));
    const std::optional<int64_t> given = ir::as_const_int(graph_.axes[scan.as_scan.time].minimum);
    if (!step || !given) return;
    fail(ErrorKind::InvalidArgument, "SCAN_STEP",
         "{} reads {}, which is step {} when {} starts; its init gives {} step{}, but must give {}",
         graph_[stage_].name, text_of(read), *step, scan.name, *given, *given == 1 ? "" : "s",
         *given - *step);
  }

  [[noreturn]] void refuse(const ir::TensorRead& read, size_t d, const ir::Expr& reached) const {
    const ir::Expr& extent = graph_[read.stage].shapes[read.output][d];
    fail(ErrorKind::InvalidArgument, "READ_BOUNDS",
         "{} reads {}, whose index {} reaches {}, but {} has 0 to {} there; guard the read with "
         "if_then_else or change the shape",
         graph_[stage_].name, text_of(read), d, analysis::simplify(reached, facts_),
         graph_.tensor_name({read.stage, read.output}), analysis::simplify(extent - 1, facts_));
  }

  const StageGraph& graph_;
  const StageId stage_;
  analysis::Facts facts_;
  std::vector<analysis::Facts::Range> ranges_;
  bool runs_always_ = true;
};

/// Whether an extent is the constant 0, so that nothing is read.
bool never_runs(const StageGraph& graph, const Stage& stage) {
  for (const std::vector<AxisId>* axes : {&stage.data, &stage.reduce}) {
    for (const AxisId id : *axes) {
      const std::optional<int64_t> extent =
          ir::as_const_int(analysis::simplify(graph.axes[id].extent));
      if (extent && *extent <= 0) return true;
    }
  }
  return false;
}

}  // namespace

void refuse_wrong_reads(const StageGraph& graph) {
  for (const StageId id : graph.order) {
    const Stage& stage = graph[id];
    if (!stage.is_live || !runs_over_axes(stage)) continue;
    // Which steps of a cell are computed follows from what the update reads.
    if (stage.role.cell_of >= 0 && !stage.role.is_update) continue;
    if (stage.from_branch || never_runs(graph, stage)) continue;
    at_stage(graph, id, [&] {
      WrongReads walk(graph, id);
      if (!walk.runs_always()) return;
      for (const ir::Expr& body : stage.bodies)
        walk(body);
      for (const ir::Expr& index : stage.as_scatter.indices)
        walk(index);
    });
  }
}

}  // namespace kiln::schedule
