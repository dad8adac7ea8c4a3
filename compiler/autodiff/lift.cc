// Reductions inside of expressions become stages, so that a body is either one reduction of
// something plain or plain itself. Under an if_then_else a reduction keeps its condition, as
// where=, since what it reads may exist there only.
#include "compiler/autodiff/lift.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/core/error.h"

namespace kiln::autodiff {
namespace {

using namespace language;

class Lifter {
 public:
  Lifter(Builder& b, const Node& node) : b_(b), node_(node) {}

  ExprId body() {
    const auto* root = b_.as<Reduction>(node_.body);
    if (root == nullptr) return lifted(node_.body, {node_.axes, {}});
    Reduction reduction = *root;
    Place inside{node_.axes, {}};
    inside.loops.insert(inside.loops.end(), reduction.axes.begin(), reduction.axes.end());
    for (ExprId& source : reduction.sources)
      source = lifted(source, inside);
    if (reduction.condition) reduction.condition = lifted(*reduction.condition, inside);
    for (ExprId& init : reduction.init)
      init = lifted(init, {node_.axes, {}});
    return b_.reduction(reduction, b_.type(node_.body));
  }

  std::vector<Node> take() { return std::move(nodes_); }

 private:
  struct Place {
    std::vector<AxisId> loops;
    std::vector<ExprId> conditions;
  };

  ExprId lifted(ExprId id, const Place& place) {
    const auto key = std::pair(id, place.conditions);
    const auto known = memo_.find(key);
    if (known != memo_.end()) return known->second;
    return memo_[key] = rebuilt(id, place);
  }

  ExprId rebuilt(ExprId id, const Place& place) {
    const Expression expression = b_.definition().expressions[id];
    if (const auto* cast = std::get_if<CastTo>(&expression.node))
      return b_.cast(expression.type, lifted(cast->operand, place));
    if (const auto* read = std::get_if<Read>(&expression.node))
      return b_.read(read->tensor, all(read->indices, place));
    if (std::get_if<Reduction>(&expression.node) != nullptr) return own_stage(id, place);
    const auto* operation = std::get_if<Operation>(&expression.node);
    if (operation == nullptr) return id;
    if (operation->op != Operator::IfThenElse)
      return b_.op(operation->op, all(operation->operands, place));
    const ExprId condition = lifted(operation->operands[0], place);
    Place yes = place;
    Place no = place;
    yes.conditions.push_back(condition);
    no.conditions.push_back(b_.op(Operator::Not, {condition}));
    return b_.op(Operator::IfThenElse, {condition, lifted(operation->operands[1], yes),
                                        lifted(operation->operands[2], no)});
  }

  std::vector<ExprId> all(const std::vector<ExprId>& ids, const Place& place) {
    std::vector<ExprId> result;
    for (const ExprId id : ids)
      result.push_back(lifted(id, place));
    return result;
  }

  ExprId own_stage(ExprId id, const Place& place) {
    Reduction reduction = *b_.as<Reduction>(id);
    for (const ExprId condition : place.conditions) {
      reduction.condition =
          reduction.condition ? b_.op(Operator::And, {condition, *reduction.condition}) : condition;
    }
    const ExprId whole = b_.reduction(reduction, b_.type(id));
    Node node{.tensor = {}, .axes = {}, .body = 0, .origin = {}};
    Substitution own;
    std::vector<ExprId> indices;
    for (const AxisId axis : place.loops) {
      if (!b_.uses_axis(whole, axis)) continue;
      const Axis bounds = b_.definition().axes[axis];
      refuse_dependent(place, bounds);
      node.axes.push_back(
          b_.data_axis(b_.tidied(bounds.extent), std::string(b_.names().axes[axis])));
      const ExprId minimum = b_.tidied(bounds.minimum);
      node.origin.push_back(axis);
      own.axes[axis] = b_.add(b_.axis(node.axes.back()), minimum);
      indices.push_back(b_.sub(b_.axis(axis), minimum));
    }
    node.body = b_.substitute(whole, own);
    const StageId source = node_.tensor.stage;
    const std::string name = fmt::format("{}_part", b_.names().stages[source]);
    // What is inside is lifted out of this one first: it is read here.
    Lifter inner(b_, node);
    node.body = inner.body();
    std::vector<Node> parts = inner.take();
    node.tensor = b_.compute(node.axes, node.body, name, source);
    nodes_.push_back(node);
    nodes_.insert(nodes_.end(), parts.begin(), parts.end());
    return b_.read(node.tensor, indices);
  }

  void refuse_dependent(const Place& place, const Axis& bounds) {
    for (const AxisId other : place.loops) {
      if (!b_.uses_axis(bounds.extent, other)) continue;
      fail(ErrorKind::Unsupported, "GRADIENT_NESTED",
           "{} has a reduction inside of a reduction whose extent depends on {}; its gradient is "
           "not known, make the inner reduction a tensor of its own",
           b_.names().stages[node_.tensor.stage], b_.names().axes[other]);
    }
  }

  Builder& b_;
  const Node& node_;
  std::vector<Node> nodes_;
  std::map<std::pair<ExprId, std::vector<ExprId>>, ExprId> memo_;
};

}  // namespace

std::vector<Node> lift_reductions(Builder& builder, Node& node) {
  Lifter lifter(builder, node);
  const ExprId body = lifter.body();
  node.body = body;
  return lifter.take();
}

}  // namespace kiln::autodiff
