// Reverse mode inside of one body: from the result down to the reads, each expression once after
// all that use it. The branches of an if_then_else are swept by themselves, under its condition,
// since nothing of a branch that is not chosen may be computed.
//
//   Y[i] = X[i]*exp(X[i]) with adjoint g     g*exp(X[i]) + g*X[i]*exp(X[i]) to X[i]
#include "compiler/autodiff/sweep.h"

#include <functional>

#include <fmt/format.h>

#include "compiler/autodiff/derivatives.h"
#include "compiler/language/wire/canonical.h"
#include "runtime/core/error.h"

namespace kiln::autodiff {
namespace {

using namespace language;

class Sweep {
 public:
  Sweep(Builder& b, Activity& activity, const Node& node) : b_(b), active_(activity), node_(node) {}

  std::vector<Contribution> run(ExprId adjoint) {
    down({node_.axes, {}}, node_.body, adjoint);
    return std::move(found_);
  }

 private:
  /// Where an expression stands.
  struct Place {
    std::vector<AxisId> loops;
    std::vector<ExprId> conditions;
  };
  /// Adjoints of what is still to be visited. Operands have smaller ids than what uses them.
  using Open = std::map<ExprId, ExprId, std::greater<>>;

  void down(const Place& place, ExprId root, ExprId adjoint) {
    Open open;
    give(open, root, adjoint);
    while (!open.empty()) {
      const auto [id, total] = *open.begin();
      open.erase(open.begin());
      visit(place, id, total, open);
    }
  }

  void give(Open& open, ExprId operand, ExprId adjoint) {
    if (!active_.is_active(operand) || b_.is_number(adjoint, 0)) return;
    const auto [entry, fresh] = open.try_emplace(operand, adjoint);
    if (!fresh) entry->second = b_.add(entry->second, adjoint);
  }

  void visit(const Place& place, ExprId id, ExprId adjoint, Open& open) {
    const Expression expression = b_.definition().expressions[id];
    if (const auto* read = std::get_if<Read>(&expression.node)) {
      found_.push_back({read->tensor, read->indices, place.loops, place.conditions, adjoint});
    } else if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
      give(open, cast->operand, b_.cast(b_.type(cast->operand), adjoint));
    } else if (const auto* operation = std::get_if<Operation>(&expression.node)) {
      through(place, *operation, id, adjoint, open);
    } else if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
      through(place, *reduction, adjoint);
    }
  }

  void through(const Place& place, const Operation& operation, ExprId id, ExprId adjoint,
               Open& open) {
    if (operation.op == Operator::IfThenElse) {
      const ExprId condition = operation.operands[0];
      for (const size_t branch : {1, 2}) {
        if (!active_.is_active(operation.operands[branch])) continue;
        Place inside = place;
        inside.conditions.push_back(branch == 1 ? condition : b_.op(Operator::Not, {condition}));
        down(inside, operation.operands[branch], adjoint);
      }
      return;
    }
    const ExprId result = id == node_.body && node_.is_stored ? stored() : id;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      if (!active_.is_active(operation.operands[i])) continue;
      const auto part = operand_adjoint(b_, operation, i, result, adjoint);
      if (part) give(open, operation.operands[i], *part);
    }
  }

  ExprId stored() { return b_.read(node_.tensor, b_.uses(node_.axes)); }

  void through(const Place& place, const Reduction& reduction, ExprId adjoint) {
    Place inside = place;
    inside.loops.insert(inside.loops.end(), reduction.axes.begin(), reduction.axes.end());
    if (reduction.condition) inside.conditions.push_back(*reduction.condition);
    const auto combiner = combiner_of(b_.definition(), reduction);
    if (combiner == Combiner::Sum) {
      down(inside, reduction.sources[0], adjoint);
      if (!reduction.init.empty()) down(place, reduction.init[0], adjoint);
    } else if (combiner == Combiner::Prod) {
      through_product(place, inside, reduction, adjoint);
    } else if (combiner == Combiner::Min || combiner == Combiner::Max) {
      through_extreme(place, inside, reduction, adjoint);
    } else {
      fail(ErrorKind::Unsupported, "GRADIENT_REDUCER",
           "{} reduces by {}, whose gradient is not known; sum, prod, min and max have one",
           b_.names().stages[node_.tensor.stage], b_.names().reducers[reduction.reducer].name);
    }
  }

  /// All that equal the extreme share the adjoint. How many they are is a tensor of its own.
  void through_extreme(const Place& place, const Place& inside, const Reduction& reduction,
                       ExprId adjoint) {
    const ExprId source = reduction.sources[0];
    const DType type = b_.type(source);
    const auto equals = [&](ExprId x, ExprId top, ExprId yes) {
      return b_.op(Operator::Select, {b_.op(Operator::Equal, {x, top}), yes, b_.number(type, 0)});
    };
    Reduction count = reduction;
    count.combiner = Combiner::Sum;
    count.sources = {equals(source, stored(), b_.number(type, 1))};
    count.init.clear();
    if (!reduction.init.empty())
      count.init = {equals(reduction.init[0], stored(), b_.number(type, 1))};
    const ExprId ties = stage_over(place, count, "_ties");
    const ExprId share = b_.div(adjoint, ties);
    down(inside, source, equals(source, stored(), share));
    if (!reduction.init.empty())
      down(place, reduction.init[0], equals(reduction.init[0], stored(), share));
  }

  /// Each factor gets the product of the others, which is right where factors are 0, too.
  void through_product(const Place& place, const Place& inside, const Reduction& reduction,
                       ExprId adjoint) {
    const ExprId source = reduction.sources[0];
    Substitution other;
    Reduction others = reduction;
    std::optional<ExprId> differs;
    for (AxisId& axis : others.axes) {
      const Axis bounds = b_.definition().axes[axis];
      const AxisId fresh =
          b_.new_axis(AxisKind::Reduce, b_.substitute(bounds.minimum, other),
                      b_.substitute(bounds.extent, other), std::string(b_.names().axes[axis]));
      other.axes[axis] = b_.axis(fresh);
      const ExprId is_other = b_.op(Operator::NotEqual, {b_.axis(axis), b_.axis(fresh)});
      differs = differs ? b_.op(Operator::Or, {*differs, is_other}) : is_other;
      axis = fresh;
    }
    others.sources = {b_.substitute(source, other)};
    if (others.condition)
      differs = b_.op(Operator::And, {*differs, b_.substitute(*others.condition, other)});
    others.condition = differs;
    down(inside, source, b_.mul(adjoint, stage_over(inside, others, "_others")));
    if (reduction.init.empty()) return;
    Reduction all = reduction;
    all.init.clear();
    down(place, reduction.init[0], b_.mul(adjoint, stage_over(place, all, "_product")));
  }

  /// A reduction as a tensor over the loops of a place, read there.
  ExprId stage_over(const Place& place, const Reduction& reduction, std::string_view what) {
    Substitution own;
    std::vector<AxisId> axes;
    std::vector<ExprId> indices;
    for (const AxisId axis : place.loops) {
      const Axis bounds = b_.definition().axes[axis];
      const ExprId minimum = b_.tidied(bounds.minimum);
      axes.push_back(b_.data_axis(b_.tidied(bounds.extent), std::string(b_.names().axes[axis])));
      own.axes[axis] = b_.add(b_.axis(axes.back()), minimum);
      indices.push_back(b_.sub(b_.axis(axis), minimum));
      refuse_dependent(place, bounds);
    }
    const DType type = b_.type(reduction.sources[0]);
    const StageId source = node_.tensor.stage;
    const TensorId tensor =
        b_.compute(axes, b_.substitute(b_.reduction(reduction, type), own),
                   fmt::format("{}{}", b_.names().stages[source], what), source);
    return b_.read(tensor, indices);
  }

  void refuse_dependent(const Place& place, const Axis& bounds) {
    for (const AxisId other : place.loops) {
      if (!b_.uses_axis(bounds.extent, other) && !b_.uses_axis(bounds.minimum, other)) continue;
      fail(ErrorKind::Unsupported, "GRADIENT_NESTED",
           "{} multiplies over an axis whose extent depends on {}, and the gradient of that is not "
           "known; give it a constant extent and a condition (where=)",
           b_.names().stages[node_.tensor.stage], b_.names().axes[other]);
    }
  }

  Builder& b_;
  Activity& active_;
  const Node& node_;
  std::vector<Contribution> found_;
};

}  // namespace

bool Activity::is_active(ExprId expr) {
  const auto known = known_.find(expr);
  if (known != known_.end()) return known->second;
  const bool result = is_float(b_.type(expr)) && look(expr);
  return known_[expr] = result;
}

bool Activity::look(ExprId expr) {
  const auto any = [&](const std::vector<ExprId>& parts) {
    bool found = false;
    for (const ExprId part : parts)
      found = is_active(part) || found;
    return found;
  };
  if (const auto* read = b_.as<Read>(expr)) return is_active(read->tensor);
  if (const auto* operation = b_.as<Operation>(expr)) return any(operation->operands);
  if (const auto* cast = b_.as<CastTo>(expr)) return is_active(cast->operand);
  if (const auto* reduction = b_.as<Reduction>(expr))
    return any(reduction->sources) || any(reduction->init);
  return false;
}

std::vector<Contribution> sweep(Builder& builder, Activity& activity, const Node& node,
                                ExprId adjoint) {
  return Sweep(builder, activity, node).run(adjoint);
}

}  // namespace kiln::autodiff
