#include "compiler/schedule/expressions.h"

namespace kiln::schedule {
namespace {

using language::Operator;

/// The operators that are Binary nodes; the others are calls.
bool is_binary(Operator op) {
  return (op >= Operator::Add && op <= Operator::Max && op != Operator::Negative) ||
         (op >= Operator::Equal && op <= Operator::Or) ||
         (op >= Operator::BitAnd && op <= Operator::BitXor) || op == Operator::ShiftLeft ||
         op == Operator::ShiftRight;
}

struct Converter {
  const std::vector<ir::VarRef>& sizes;
  const std::vector<ir::VarRef>& axes;
  const std::vector<ir::Expr>& done;
  ir::Type type;

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
    if (is_binary(node.op)) {
      return ir::Binary::make(node.op, done[node.operands[0]], done[node.operands[1]]);
    }
    return ir::Call::make(node.op, all(node.operands));
  }
  ir::Expr operator()(const language::CastTo& node) const {
    return ir::Cast::make(type, done[node.operand]);
  }
  ir::Expr operator()(const language::Read& node) const {
    return ir::TensorRead::make(type, node.tensor.stage, node.tensor.output, all(node.indices));
  }
  ir::Expr operator()(const language::Reduction& node) const {
    std::vector<ir::VarRef> values;
    for (const language::AxisId axis : node.axes)
      values.push_back(axes[axis]);
    return ir::Reduce::make(node.combiner, done[node.source], std::move(values));
  }
};

}  // namespace

std::vector<ir::Expr> expressions_of(const language::Definition& definition,
                                     const std::vector<ir::VarRef>& sizes,
                                     const std::vector<ir::VarRef>& axis_values) {
  std::vector<ir::Expr> done;
  done.reserve(definition.expressions.size());
  for (const language::Expression& expression : definition.expressions) {
    const Converter convert{sizes, axis_values, done, ir::Type{expression.type, 1}};
    done.push_back(std::visit(convert, expression.node));
  }
  return done;
}

}  // namespace kiln::schedule
