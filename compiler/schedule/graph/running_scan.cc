// Recognises running sums, products, minima and maxima, of which parts can be computed at once.
//
//   S[t, i] = S[t - 1, i] + X[t, i]      ->  Add of float32
//   S[t, i] = S[t - 1, i] * 2 + X[t, i]  ->  nothing: the last state is no operand
#include "compiler/schedule/graph/running_scan.h"

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

using language::Operator;

bool is_associative(Operator op) {
  switch (op) {
    case Operator::Add:
    case Operator::Mul:
    case Operator::Min:
    case Operator::Max:
    case Operator::BitAnd:
    case Operator::BitOr:
    case Operator::BitXor: return true;
    default: return false;
  }
}

/// Whether an expression is the state of the step before, at the column that is computed.
bool is_last_state(const StageGraph& graph, StageId scan, const Stage& update,
                   const ir::Expr& expr) {
  const auto* read = ir::as<ir::TensorRead>(expr);
  if (read == nullptr || !graph.scan_output_of({read->stage, read->output})) return false;
  for (size_t d = 0; d < read->indices.size(); ++d) {
    const ir::Expr own(graph.axes[update.data[d]].value);
    const int64_t back = !update.is_time(d) ? 0 : graph[scan].as_scan.is_reverse ? -1 : 1;
    if (!ir::is_const(analysis::simplify(own - read->indices[d]), back)) return false;
  }
  return true;
}

/// Also by way of other stages of the cell.
bool reads_state(const StageGraph& graph, StageId scan, const ir::Expr& expr) {
  bool found = false;
  for_each_read(expr, [&](const ir::TensorRead& read) {
    const auto output = graph.scan_output_of({read.stage, read.output});
    const bool is_of_cell = graph[read.stage].role.cell_of == static_cast<int>(scan);
    found = found || is_of_cell || (output && output->scan == scan) || read.stage == scan;
  });
  return found;
}

}  // namespace

std::optional<RunningScan> running_scan(const StageGraph& graph, StageId id) {
  const Stage& scan = graph[id];
  if (scan.kind != Stage::Kind::Scan || scan.as_scan.update.size() != 1 ||
      !ir::is_const(graph.axes[scan.as_scan.time].minimum, 1))
    return std::nullopt;
  const StageId update_id = scan.as_scan.update[0].stage;
  const Stage& update = graph[update_id];
  if (update.is_reduction() || update.types.size() != 1 || !update.conditions.empty())
    return std::nullopt;
  const ir::Expr body = expanded_bodies(graph, update_id)[0];
  const auto* step = ir::as<ir::Binary>(body);
  if (step == nullptr || !is_associative(step->op)) return std::nullopt;
  const bool is_left = is_last_state(graph, id, update, step->a);
  const ir::Expr& state = is_left ? step->a : step->b;
  const ir::Expr& other = is_left ? step->b : step->a;
  if (!is_last_state(graph, id, update, state) || reads_state(graph, id, other))
    return std::nullopt;
  return RunningScan{step->op, update.types[0]};
}

std::optional<StageId> other_in_steps(const StageGraph& graph, StageId scan) {
  const StageId update = graph[scan].as_scan.update[0].stage;
  for (const StageId id : graph.order) {
    const Attach& attach = graph[id].attach;
    if (!graph[id].is_live || attach.kind != Attach::Kind::At) continue;
    if ((attach.stage == scan && id != update) || attach.stage == update) return id;
  }
  return std::nullopt;
}

bool may_regroup(const RunningScan& scan, const CompileOptions& options) {
  if (!is_float(scan.type)) return true;
  if (scan.op == Operator::Min || scan.op == Operator::Max) return !options.strict;
  return options.fast && !options.strict;
}

}  // namespace kiln::schedule
