// One walk over the expressions in the order of their ids, in which operands come first, so that no
// recursion follows a definition's depth. Reducers are made where a reduction first uses them, and
// shared, so that two outputs of one reduction are known as such by the pointer.
#include "compiler/schedule/graph/expressions.h"

#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace kiln::schedule {
namespace {

using language::Operator;

/// The operators that are Binary nodes; the others are calls.
/// The variables of parameters and the reducers that use them, each made once.
class Reducers {
 public:
  Reducers(const language::Definition& definition,
           std::span<const language::SourceMap::ReducerNames> names)
      : definition_(definition), names_(names), made_(definition.reducers.size()) {}

  ir::VarRef parameter(uint32_t position, DType type) {
    ir::VarRef& variable = parameters_[{position, type}];
    if (!variable) variable = ir::Var::make(fmt::format("value{}", position), {type, 1});
    return variable;
  }

  std::shared_ptr<const ir::Reducer> reducer(language::ReducerId id,
                                             const std::vector<ir::Expr>& done) {
    if (made_[id]) return made_[id];
    const language::Reducer& from = definition_.reducers[id];
    ir::Reducer reducer{.name = id < names_.size() ? names_[id].name : "reducer"};
    const auto values = static_cast<uint32_t>(from.types.size());
    for (uint32_t i = 0; i < values; ++i) {
      reducer.left.push_back(parameter(i, from.types[i]));
      reducer.right.push_back(parameter(values + i, from.types[i]));
      reducer.identities.push_back(done[from.identities[i]]);
      reducer.results.push_back(done[from.results[i]]);
    }
    return made_[id] = std::make_shared<const ir::Reducer>(std::move(reducer));
  }

 private:
  const language::Definition& definition_;
  const std::span<const language::SourceMap::ReducerNames> names_;
  std::map<std::pair<uint32_t, DType>, ir::VarRef> parameters_;
  std::vector<std::shared_ptr<const ir::Reducer>> made_;
};

struct Converter {
  const std::vector<ir::VarRef>& sizes;
  const std::vector<ir::VarRef>& axes;
  const std::vector<ir::Expr>& done;
  ir::Type type;
  Reducers& reducers;

  std::vector<ir::Expr> all(const std::vector<language::ExprId>& ids) const {
    std::vector<ir::Expr> result;
    for (const language::ExprId id : ids)
      result.push_back(done[id]);
    return result;
  }

  ir::Expr operator()(const language::IntegerConstant& node) const {
    return ir::IntImm::make(type, node.value);
  }
  ir::Expr operator()(const language::FloatConstant& node) const {
    return ir::FloatImm::make(type, node.value);
  }
  ir::Expr operator()(const language::VariableUse& node) const { return sizes[node.variable]; }
  ir::Expr operator()(const language::AxisUse& node) const { return axes[node.axis]; }
  ir::Expr operator()(const language::Operation& node) const {
    return ir::operation(node.op, all(node.operands));
  }
  ir::Expr operator()(const language::CastTo& node) const {
    return ir::Cast::make(type, done[node.operand]);
  }
  ir::Expr operator()(const language::Read& node) const {
    return ir::TensorRead::make(type, node.tensor.stage, node.tensor.output, all(node.indices));
  }
  ir::Expr operator()(const language::ReducerParameter& node) const {
    return reducers.parameter(node.position, type.element);
  }
  ir::Expr operator()(const language::Reduction& node) const {
    std::vector<ir::VarRef> values;
    for (const language::AxisId axis : node.axes)
      values.push_back(axes[axis]);
    ir::Combination how{.combiner = node.combiner, .reducer = nullptr, .output = node.output};
    if (!node.combiner) how.reducer = reducers.reducer(node.reducer, done);
    return ir::Reduce::make(std::move(how), all(node.sources),
                            node.condition ? done[*node.condition] : ir::Expr(), all(node.init),
                            std::move(values));
  }
};

}  // namespace

std::vector<ir::Expr> expressions_of(const language::Definition& definition,
                                     const std::vector<ir::VarRef>& sizes,
                                     const std::vector<ir::VarRef>& axis_values,
                                     std::span<const language::SourceMap::ReducerNames> names) {
  Reducers reducers(definition, names);
  std::vector<ir::Expr> done;
  done.reserve(definition.expressions.size());
  for (const language::Expression& expression : definition.expressions) {
    const Converter convert{sizes, axis_values, done, ir::Type{expression.type, 1}, reducers};
    done.push_back(std::visit(convert, expression.node));
  }
  return done;
}

ir::Expr reduce_over(const ir::Reduce& reduce, const ir::Substitution& values,
                     std::vector<ir::VarRef> axes, bool from_identity) {
  const auto substituted = [&](const std::vector<ir::Expr>& list) {
    std::vector<ir::Expr> result;
    for (const ir::Expr& expr : list)
      result.push_back(ir::substitute(expr, values));
    return result;
  };
  return ir::Reduce::make(reduce.how, substituted(reduce.sources),
                          reduce.condition ? ir::substitute(reduce.condition, values) : ir::Expr(),
                          from_identity ? std::vector<ir::Expr>() : substituted(reduce.init),
                          std::move(axes));
}

}  // namespace kiln::schedule
