// Replaces reads of tensors by loads of the buffers they lie in, and proves each index or checks
// it.
//
//   X[i + 1]  ->  X[i + 1]                        where a guard says i + 1 < n
//   X[idx[i]]  ->  check idx[i] in 0..n; X[idx[i]]
//
// Inline stages are substituted here, so their own reads are proved at each place that reads them.
#include "compiler/schedule/emit/lower_reads.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/bounds/scan_loops.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

using language::Operator;

class LowerReads : public ir::Mutator {
 public:
  LowerReads(const StageGraph& graph, const NestPlan& plan, StageId stage,
             const ir::Substitution& values, const analysis::Facts& facts,
             std::vector<RuntimeCheck>& rows)
      : graph_(graph), plan_(plan), stage_(stage), values_(values), facts_(facts), rows_(rows) {}

  std::vector<ir::Stmt> checks;

  /// Checks an element that the stage itself updates.
  void check_place(const std::vector<ir::Expr>& indices) {
    const std::vector<ir::Expr>& shape = graph_[stage_].shapes[0];
    for (size_t d = 0; d < indices.size(); ++d) {
      if (is_within(indices[d], shape[d])) continue;
      add_check(ir::Check::make(indices[d], shape[d], row_of_check({stage_, 0}, d)));
    }
  }

 private:
  using Mutator::visit;

  ir::Expr visit(const ir::Var& var) override {
    const auto found = values_.find(ir::VarRef(&var));
    return found == values_.end() ? ir::Expr(&var) : found->second;
  }

  /// Only the branch that is taken reads, so its condition protects it.
  ir::Expr visit(const ir::Call& call) override {
    if (call.op != Operator::IfThenElse) return Mutator::visit(call);
    const ir::Expr condition = (*this)(call.args[0]);
    const ir::Expr yes = in_branch(condition, call.args[1]);
    const ir::Expr no = in_branch(ir::logical_not(condition), call.args[2]);
    return ir::Call::make(call.op, {condition, yes, no});
  }

  ir::Expr in_branch(const ir::Expr& condition, const ir::Expr& branch) {
    std::vector<ir::Stmt> outside = std::move(checks);
    checks.clear();
    facts_.push_condition(condition);
    ir::Expr lowered = (*this)(branch);
    facts_.pop();
    std::vector<ir::Stmt> inside = std::move(checks);
    checks = std::move(outside);
    // A check of a branch runs where the branch does, or it would fail for what is never read.
    if (!inside.empty()) {
      checks.push_back(ir::If::make(condition, ir::Block::make(std::move(inside))));
    }
    return lowered;
  }

  ir::Expr visit(const ir::TensorRead& read) override {
    std::vector<ir::Expr> indices;
    for (const ir::Expr& index : read.indices)
      indices.push_back((*this)(index));
    check(read, indices);
    const Stage& source = graph_[read.stage];
    if (source.attach.kind == Attach::Kind::Inline) return lower_inline(read, indices);

    const auto storage = plan_.storage.find({read.stage, read.output});
    KILN_CHECK(storage != plan_.storage.end());  // check_parameters() refuses what is not given
    for (size_t d = 0; d < indices.size(); ++d) {
      indices[d] = storage->second.place(d, indices[d], facts_);
    }
    return ir::Load::make(storage->second.buffer, storage->second.indices(std::move(indices)));
  }

  ir::Expr lower_inline(const ir::TensorRead& read, const std::vector<ir::Expr>& indices) {
    const Stage& source = graph_[read.stage];
    ir::Substitution values;
    for (size_t d = 0; d < indices.size(); ++d) {
      values[graph_.axes[source.data[d]].value] = indices[d];
    }
    LowerReads inner(graph_, plan_, read.stage, values, facts_, rows_);
    ir::Expr value = inner(source.bodies[read.output]);
    for (ir::Stmt& stmt : inner.checks)
      add_check(std::move(stmt));
    return value;
  }

  void check(const ir::TensorRead& read, const std::vector<ir::Expr>& indices) {
    const TensorId tensor{read.stage, read.output};
    const std::vector<ir::Expr>& shape = graph_[read.stage].shapes[read.output];
    const std::optional<ir::Expr> time = time_limit(tensor, indices);
    for (size_t d = 0; d < indices.size(); ++d) {
      const ir::Expr& limit = graph_[read.stage].is_time(d) && time ? *time : shape[d];
      if (is_within(indices[d], limit)) continue;
      require_checkable(read);
      add_check(ir::Check::make(indices[d], limit, row_of_check(tensor, d)));
    }
  }

  bool is_within(const ir::Expr& index, const ir::Expr& limit) const {
    return analysis::can_prove(ir::less_equal(ir::index(0), index), facts_) &&
           analysis::can_prove(ir::less(index, limit), facts_);
  }

  /// A state may be read at steps before the present one, an update at the present one. What an
  /// index of time must be less than, where that is not the extent.
  std::optional<ir::Expr> time_limit(TensorId tensor, const std::vector<ir::Expr>& indices) const {
    const Stage& source = graph_[tensor.stage];
    const std::optional<ScanOutput> output = graph_.scan_output_of(tensor);
    if (!output || source.role.is_init) return std::nullopt;
    const Stage& scan = graph_[output->scan];
    const ir::Expr now = time_value(graph_, plan_, output->scan);
    const ir::Expr& step = indices[static_cast<size_t>(source.time_dimension)];
    if (source.role.is_update) {
      if (analysis::can_prove(ir::equal(step, now), facts_)) return std::nullopt;
      fail(ErrorKind::Unsupported, "SCAN_STEP",
           "{} reads {} at another step than the present one; read the state of {} instead",
           graph_[stage_].name, source.name, scan.name);
    }
    // Reads of another step than the ones before were refused with the definition.
    if (scan.as_scan.is_reverse) {
      KILN_CHECK(analysis::can_prove(ir::less(now, step), facts_));
      return std::nullopt;
    }
    // Of a loop of time that never runs, both can be proved.
    if (analysis::can_prove(ir::less_equal(now, step), facts_) &&
        !analysis::can_prove(ir::less(step, now), facts_)) {
      fail(ErrorKind::InvalidArgument, "SCAN_STEP",
           "{} reads {} at the step it computes or a later one; the update of {} may read earlier "
           "steps only, such as {}[t - 1, ...]",
           graph_[stage_].name, source.name, scan.name, source.name);
    }
    return now;
  }

  void require_checkable(const ir::TensorRead& read) const {
    // A reduction out of a branch runs in loops of its own, before and without its condition.
    if (!graph_[stage_].from_branch) return;
    const std::string& owner = graph_.kernel->names.stages[graph_[stage_].origin];
    fail(
        ErrorKind::InvalidArgument, "REDUCTION_PLACE",
        "reductions are only allowed at the top level of compute: the one in an if_then_else of {} "
        "reads {}, which is not proved to be in bounds without the condition; put the condition "
        "inside the reduction",
        owner, graph_.tensor_name({read.stage, read.output}));
  }

  int row_of_check(TensorId tensor, size_t dimension) {
    const RuntimeCheck row{.stage = static_cast<int32_t>(graph_[stage_].origin),
                           .tensor = static_cast<int32_t>(graph_[tensor.stage].origin),
                           .dimension = static_cast<int32_t>(dimension)};
    const auto known = std::find(rows_.begin(), rows_.end(), row);
    if (known != rows_.end()) return static_cast<int>(known - rows_.begin());
    rows_.push_back(row);
    return static_cast<int>(rows_.size() - 1);
  }

  void add_check(ir::Stmt check) {
    const bool known = std::any_of(checks.begin(), checks.end(), [&](const ir::Stmt& other) {
      return ir::equal_trees(other, check);
    });
    if (!known) checks.push_back(std::move(check));
  }

  const StageGraph& graph_;
  const NestPlan& plan_;
  const StageId stage_;
  const ir::Substitution& values_;
  analysis::Facts facts_;
  std::vector<RuntimeCheck>& rows_;
};

}  // namespace

LoweredBody lower_reads(const StageGraph& graph, const NestPlan& plan, StageId stage,
                        const ir::Expr& body, const ir::Substitution& values,
                        const analysis::Facts& facts, std::vector<RuntimeCheck>& checks) {
  LowerReads lower(graph, plan, stage, values, facts, checks);
  LoweredBody result;
  result.value = lower(body);
  result.checks = std::move(lower.checks);
  return result;
}

LoweredScatter lower_scatter(const StageGraph& graph, const NestPlan& plan, StageId stage,
                             const ir::Substitution& values, const analysis::Facts& facts,
                             std::vector<RuntimeCheck>& checks) {
  LowerReads lower(graph, plan, stage, values, facts, checks);
  LoweredScatter result;
  for (const ir::Expr& index : graph[stage].as_scatter.indices)
    result.indices.push_back(lower(index));
  lower.check_place(result.indices);
  result.update = lower(graph[stage].bodies[0]);
  result.checks = std::move(lower.checks);
  return result;
}

}  // namespace kiln::schedule
