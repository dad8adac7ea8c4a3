// The tables of a kernel, to which a gradient is added. Equal expressions are one (hash consing),
// so that what is compared by id is compared by meaning.
#include "compiler/autodiff/builder.h"

#include <bit>
#include <set>

#include <fmt/format.h>

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::autodiff {
namespace {

using namespace language;

/// While they are made: what is left of them has the limit of any definition.
constexpr ExprId kMostExpressions = 500'000;
/// Expressions looked at: a few seconds.
constexpr int64_t kMostSteps = 20'000'000;

std::string key_part(const IntegerConstant& c) { return fmt::format("i{}", c.value); }
std::string key_part(const FloatConstant& c) {
  return fmt::format("f{}", std::bit_cast<uint64_t>(c.value));
}
std::string key_part(const VariableUse& use) { return fmt::format("v{}", use.variable); }
std::string key_part(const AxisUse& use) { return fmt::format("a{}", use.axis); }
std::string key_part(const CastTo& cast) { return fmt::format("c{}", cast.operand); }
std::string key_part(const ReducerParameter& p) { return fmt::format("p{}", p.position); }
std::string key_part(const Operation& operation) {
  std::string key = fmt::format("o{}", static_cast<int>(operation.op));
  for (const ExprId operand : operation.operands)
    key += fmt::format(",{}", operand);
  return key;
}
std::string key_part(const Read& read) {
  std::string key = fmt::format("r{}.{}", read.tensor.stage, read.tensor.output);
  for (const ExprId index : read.indices)
    key += fmt::format(",{}", index);
  return key;
}
std::string key_part(const Reduction& reduction) {
  std::string key =
      fmt::format("s{}.{}.{}", reduction.combiner ? static_cast<int>(*reduction.combiner) : -1,
                  reduction.reducer, reduction.output);
  for (const AxisId axis : reduction.axes)
    key += fmt::format(",a{}", axis);
  for (const ExprId source : reduction.sources)
    key += fmt::format(",{}", source);
  if (reduction.condition) key += fmt::format("?{}", *reduction.condition);
  for (const ExprId init : reduction.init)
    key += fmt::format("!{}", init);
  return key;
}

std::string key_of(const Expression& expression) {
  return fmt::format("{}:", static_cast<int>(expression.type)) +
         std::visit([](const auto& node) { return key_part(node); }, expression.node);
}

}  // namespace

Builder::Builder(const Kernel& kernel) : kernel_(kernel) {
  const Definition& d = definition();
  for (ExprId id = 0; id < d.expressions.size(); ++id)
    interned_.try_emplace(key_of(d.expressions[id]), id);
  for (const Variable& variable : d.variables)
    is_dimension_.push_back(variable.nonnegative);
  for (const TensorId parameter : d.parameters) {
    for (const ExprId extent : d.shape_of(parameter)) {
      if (const auto* use = as<VariableUse>(extent)) is_dimension_[use->variable] = true;
    }
  }
  for (AxisId id = 0; id < d.axes.size(); ++id) {
    const Axis axis = d.axes[id];
    restrict_axis(id, tidied(axis.minimum), tidied(axis.extent));
  }
}

ExprId Builder::intern(Expression expression) {
  const auto next = static_cast<ExprId>(definition().expressions.size());
  const auto [entry, fresh] = interned_.try_emplace(key_of(expression), next);
  if (!fresh) return entry->second;
  if (next >= kMostExpressions) {
    fail(ErrorKind::ResourceExhausted, "LIMIT", "the gradient of {} has more than {} expressions",
         called(names().kernel), kMostExpressions);
  }
  kernel_.definition.expressions.push_back(std::move(expression));
  return next;
}

void Builder::count_step() const {
  if (++steps_ <= kMostSteps) return;
  fail(ErrorKind::ResourceExhausted, "GRADIENT_LIMIT", "differentiating {} takes too many steps",
       called(names().kernel));
}

ExprId Builder::integer(int64_t value) { return intern({DType::Int64, IntegerConstant{value}}); }

ExprId Builder::number(DType type, double value) {
  if (is_float(type)) return intern({type, FloatConstant{value}});
  return intern({type, IntegerConstant{static_cast<int64_t>(value)}});
}

ExprId Builder::boolean(bool value) { return intern({DType::Bool, IntegerConstant{value}}); }

ExprId Builder::axis(AxisId id) { return intern({DType::Int64, AxisUse{id}}); }

ExprId Builder::size(VariableId id) {
  is_dimension_.resize(definition().variables.size(), true);
  return intern({DType::Int64, VariableUse{id}});
}

ExprId Builder::op(Operator op, const std::vector<ExprId>& operands) {
  if (const auto simpler = folded(op, operands)) return *simpler;
  std::vector<DType> types;
  for (const ExprId operand : operands)
    types.push_back(type(operand));
  return intern({result_type(op, types), Operation{op, operands}});
}

ExprId Builder::cast(DType to, ExprId operand) {
  if (type(operand) == to) return operand;
  if (const auto* constant = as<FloatConstant>(operand); constant != nullptr && is_float(to)) {
    // A number is rounded where it is used; one that two types hold is the same in both.
    if (constant->value == 0 || constant->value == 1) return number(to, constant->value);
  }
  return intern({to, CastTo{operand}});
}

ExprId Builder::read(TensorId tensor, const std::vector<ExprId>& indices) {
  return intern({definition().type_of(tensor), Read{tensor, indices}});
}

ExprId Builder::reduction(const Reduction& reduction, DType type) {
  return intern({type, reduction});
}

ExprId Builder::sum(ExprId source, const std::vector<AxisId>& axes) {
  return reduction({.combiner = Combiner::Sum, .sources = {source}, .axes = axes}, type(source));
}

ExprId Builder::guarded(const std::vector<ExprId>& conditions, ExprId value) {
  const ExprId zero = number(type(value), 0);
  // From the inside out: a condition may be such that its reads need those before it.
  for (auto condition = conditions.rbegin(); condition != conditions.rend(); ++condition)
    value = op(Operator::IfThenElse, {*condition, value, zero});
  return value;
}

std::optional<bool> Builder::as_bool(ExprId expr) const {
  const auto* constant = as<IntegerConstant>(expr);
  if (constant == nullptr || type(expr) != DType::Bool) return std::nullopt;
  return constant->value != 0;
}

bool Builder::is_number(ExprId expr, double value) const {
  const auto* constant = as<FloatConstant>(expr);
  return constant != nullptr && constant->value == value;
}

AxisId Builder::new_axis(AxisKind kind, ExprId minimum, ExprId extent, const std::string& name) {
  kernel_.definition.axes.push_back({kind, minimum, extent});
  kernel_.names.axes.push_back(name);
  return static_cast<AxisId>(definition().axes.size() - 1);
}

std::vector<AxisId> Builder::data_axes(TensorId like, const std::map<size_t, std::string>& given) {
  const auto* compute = std::get_if<Compute>(&definition().stages[like.stage]);
  const std::vector<ExprId> shape = definition().shape_of(like);
  std::vector<AxisId> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::string name = fmt::format("i{}", d);
    if (const auto own = given.find(d); own != given.end()) name = own->second;
    if (compute != nullptr) name = names().axes[compute->axes[d]];
    axes.push_back(data_axis(tidied(shape[d]), name));
  }
  return axes;
}

StageId Builder::new_stage(Stage stage, const std::string& name, StageId source) {
  kernel_.definition.stages.push_back(std::move(stage));
  kernel_.names.stages.push_back(name);
  kernel_.names.stage_lines.push_back(kernel_.names.stage_lines[source]);
  return static_cast<StageId>(definition().stages.size() - 1);
}

std::vector<ExprId> Builder::uses(const std::vector<AxisId>& axes) {
  std::vector<ExprId> result;
  for (const AxisId id : axes)
    result.push_back(axis(id));
  return result;
}

void Builder::restrict_axis(AxisId axis, ExprId minimum, ExprId extent) {
  restricted_[axis] = {definition().axes[axis].kind, minimum, extent};
}

const Axis& Builder::bounds_of(AxisId axis) const {
  const auto own = restricted_.find(axis);
  return own == restricted_.end() ? definition().axes[axis] : own->second;
}

/// Copies expressions, each once.
class Builder::Copy {
 public:
  Copy(Builder& to, const Substitution& substitution)
      : to_(to), substitution_(substitution), axes_(substitution.axes) {}

  ExprId operator()(ExprId id) {
    const auto known = memo_.find(id);
    if (known != memo_.end()) return known->second;
    to_.count_step();
    // By value: the table grows while its entry is copied.
    const Expression expression = to_.definition().expressions[id];
    const ExprId copy = std::visit(
        [&](const auto& node) { return copied(node, expression.type, id); }, expression.node);
    return memo_[id] = copy;
  }

 private:
  template <typename Leaf>
  ExprId copied(const Leaf& leaf, DType type, ExprId) {
    return to_.intern({type, leaf});
  }
  ExprId copied(const AxisUse& use, DType, ExprId) {
    const auto mapped = axes_.find(use.axis);
    return mapped == axes_.end() ? to_.axis(use.axis) : mapped->second;
  }
  ExprId copied(const Operation& operation, DType, ExprId) {
    return to_.op(operation.op, all(operation.operands));
  }
  ExprId copied(const CastTo& cast, DType type, ExprId) {
    return to_.cast(type, (*this)(cast.operand));
  }
  ExprId copied(const Read& read, DType, ExprId) {
    const std::vector<ExprId> indices = all(read.indices);
    if (substitution_.read) {
      if (const auto other = substitution_.read(read.tensor, indices)) return *other;
    }
    return to_.read(read.tensor, indices);
  }
  ExprId copied(const Reduction& reduction, DType type, ExprId) {
    Reduction result = reduction;
    for (AxisId& axis : result.axes) {
      const auto mapped = axes_.find(axis);
      if (mapped == axes_.end()) {
        const Axis old = to_.definition().axes[axis];
        const AxisId fresh = to_.new_axis(old.kind, (*this)(old.minimum), (*this)(old.extent),
                                          std::string(to_.names().axes[axis]));
        axes_[axis] = to_.axis(fresh);
        axis = fresh;
      } else {
        axis = to_.as<AxisUse>(mapped->second)->axis;
      }
    }
    result.sources = all(reduction.sources);
    if (reduction.condition) result.condition = (*this)(*reduction.condition);
    result.init = all(reduction.init);
    return to_.reduction(result, type);
  }

  std::vector<ExprId> all(const std::vector<ExprId>& ids) {
    std::vector<ExprId> result;
    for (const ExprId id : ids)
      result.push_back((*this)(id));
    return result;
  }

  Builder& to_;
  const Substitution& substitution_;
  std::map<AxisId, ExprId> axes_;
  std::unordered_map<ExprId, ExprId> memo_;
};

ExprId Builder::substitute(ExprId expr, const Substitution& substitution) {
  return Copy(*this, substitution)(expr);
}

bool Builder::any_part(ExprId expr, const std::function<bool(ExprId)>& found) const {
  std::set<ExprId> seen;
  std::vector<ExprId> open = {expr};
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    count_step();
    if (found(id)) return true;
    const auto look = [&](const std::vector<ExprId>& ids) {
      open.insert(open.end(), ids.begin(), ids.end());
    };
    if (const auto* operation = as<Operation>(id)) {
      look(operation->operands);
    } else if (const auto* cast = as<CastTo>(id)) {
      open.push_back(cast->operand);
    } else if (const auto* read = as<Read>(id)) {
      look(read->indices);
    } else if (const auto* reduction = as<Reduction>(id)) {
      look(parts_of(*reduction));
      for (const AxisId reduced : reduction->axes)
        look({definition().axes[reduced].minimum, definition().axes[reduced].extent});
    }
  }
  return false;
}

bool Builder::uses_axis(ExprId expr, AxisId axis) const {
  return any_part(expr, [&](ExprId part) {
    const auto* use = as<AxisUse>(part);
    return use != nullptr && use->axis == axis;
  });
}

bool Builder::has_axes_of(ExprId expr, ExprId other) const {
  return !any_part(other, [&](ExprId part) {
    const auto* use = as<AxisUse>(part);
    return use != nullptr && !uses_axis(expr, use->axis);
  });
}

std::vector<TensorId> Builder::reads(ExprId expr) const {
  std::set<TensorId> found;
  any_part(expr, [&](ExprId part) {
    if (const auto* read = as<Read>(part)) found.insert(read->tensor);
    return false;
  });
  return {found.begin(), found.end()};
}

}  // namespace kiln::autodiff
