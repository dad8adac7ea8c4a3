// Finds the reduction inside a stage's expression that runs over an axis, and which of the stage's
// own axes it uses: what the step reduction_stage names.
//
//   Y[i, j] = tanh(sum[k](A[i, k]))  with k  ->  the sum, used [i], reduced [k]
#include "client/cpp/inner_reductions.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "client/cpp/expr_operands.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// Visits every node below an expression once, operands in order, those that use them last.
class Nodes {
 public:
  explicit Nodes(const std::function<void(const Expr&)>& f) : f_(f) {}

  void visit(const Expr& expr) {
    if (!seen_.insert(expr.node().get()).second) return;
    for (const Expr& part : operands_of(expr))
      visit(part);
    f_(expr);
  }

 private:
  const std::function<void(const Expr&)>& f_;
  std::unordered_set<const ExprNode*> seen_;
};

bool runs_over(const ReductionValue& reduction, const AxisNode* axis) {
  return std::any_of(reduction.axes.begin(), reduction.axes.end(),
                     [&](const ReduceAxis& own) { return own.node().get() == axis; });
}

std::vector<Axis> axes_used(const ComputeStage& compute, const Expr& reduction) {
  std::unordered_set<const AxisNode*> found;
  const std::function<void(const Expr&)> note = [&](const Expr& expr) {
    const auto* use = std::get_if<AxisValue>(&expr.node()->value);
    if (use != nullptr) found.insert(use->axis.get());
  };
  Nodes(note).visit(reduction);
  std::vector<Axis> used;
  for (const Axis& axis : compute.axes) {
    if (found.contains(axis.node().get())) used.push_back(axis);
  }
  return used;
}

}  // namespace

std::optional<InnerReduction> find_reduction(const StageNode& stage, const AxisNode* axis) {
  const auto* compute = std::get_if<ComputeStage>(&stage.value);
  if (compute == nullptr) return std::nullopt;
  std::optional<InnerReduction> found;
  const std::function<void(const Expr&)> look = [&](const Expr& expr) {
    const auto* reduction = std::get_if<ReductionValue>(&expr.node()->value);
    if (found || reduction == nullptr || !runs_over(*reduction, axis)) return;
    found = InnerReduction{
        expr, axes_used(*compute, expr), {reduction->axes.begin(), reduction->axes.end()}};
  };
  Nodes nodes(look);
  for (const Expr& body : compute->bodies)
    nodes.visit(body);
  return found;
}

std::string word_for(const InnerReduction& reduction) {
  const auto& value = std::get<ReductionValue>(reduction.value.node()->value);
  std::string word = value.reducer ? value.reducer->name : value.combiner;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (char& c : word) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !is_digit(c)) c = '_';
  }
  return word.empty() || is_digit(word[0]) ? "_" + word : word;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
