// Prints expressions in the user's names as a kernel file has them, with as few brackets and types
// as a reader can do without.
//
//   add(mul(i, 2), 1)  ->  i * 2 + 1     float16(0.5) beside a float16  ->  0.5
//
// natural_type() finds what build_expressions.cc will find, so that typed text reads back the same.
#include "compiler/language/describe.h"

#include <cmath>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace kiln::language {
namespace {

bool is_constant(const Expression& expr) {
  return std::holds_alternative<IntegerConstant>(expr.node) ||
         std::holds_alternative<FloatConstant>(expr.node);
}

/// The shortest text that reads back as the same number of the type.
std::string literal_text(const Expression& expr) {
  if (const auto* integer = std::get_if<IntegerConstant>(&expr.node)) {
    if (expr.type == DType::Bool) return integer->value != 0 ? "true" : "false";
    if (expr.type == DType::UInt64) return fmt::format("{}", static_cast<uint64_t>(integer->value));
    return fmt::format("{}", integer->value);
  }
  const double value = std::get<FloatConstant>(expr.node).value;
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = expr.type == DType::Float32 ? fmt::format("{}", static_cast<float>(value))
                                                 : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

/// What is written before the operand for an operator that has such a form.
std::string_view prefix_of(Operator op) {
  switch (op) {
    case Operator::Negative: return "-";
    case Operator::Not: return "!";
    case Operator::BitNot: return "~";
    default: return "";
  }
}

class ExpressionText {
 public:
  ExpressionText(const Definition& definition, const SourceMap& names, const TextOptions& options)
      : definition_(definition), names_(names), options_(options) {}

  std::string of(ExprId expr) {
    print(expr, options_.expected, 0);
    if (out_.size() > options_.max_bytes) {
      out_.resize(options_.max_bytes);
      out_ += "...";
    }
    return std::move(out_);
  }

 private:
  using Expected = std::optional<DType>;

  void print(ExprId expr, Expected expected, int binding) {
    // Spelled out, shared parts may be exponentially long: printing stops once nobody would see
    // more.
    if (out_.size() > options_.max_bytes) return;
    const Expression& expression = definition_.expressions[expr];
    if (is_constant(expression)) return print_constant(expression, expected, binding);
    std::visit([&](const auto& node) { print_node(node, expression.type, expected, binding); },
               expression.node);
  }

  void print_constant(const Expression& constant, Expected expected, int binding) {
    const std::string text = literal_text(constant);
    // true and false need no type, and nothing else is a bool.
    if (options_.typed && constant.type != DType::Bool && expected != constant.type) {
      out_ += fmt::format("{}({})", constant.type, text);
    } else if (text.starts_with('-') && binding > kUnaryPrecedence) {
      out_ += fmt::format("({})", text);
    } else {
      out_ += text;
    }
  }

  void print_node(const IntegerConstant&, DType, Expected, int) {}
  void print_node(const FloatConstant&, DType, Expected, int) {}
  void print_node(const VariableUse& use, DType, Expected, int) {
    out_ += names_.variables[use.variable];
  }
  void print_node(const AxisUse& use, DType, Expected, int) { out_ += names_.axes[use.axis]; }

  void print_node(const CastTo& cast, DType type, Expected, int) {
    const Expression& operand = definition_.expressions[cast.operand];
    out_ += fmt::format("{}(", type);
    // A type around a bare literal is that literal; the inner one must say its own type.
    print(cast.operand, is_constant(operand) ? Expected{} : natural_type(cast.operand), 0);
    out_ += ')';
  }

  void print_node(const Read& read, DType, Expected, int) {
    out_ += names_.tensor_name(definition_, read.tensor);
    out_ += '[';
    print_list(read.indices, DType::Int64);
    out_ += ']';
  }

  void print_node(const ReducerParameter& parameter, DType, Expected, int) {
    out_ += parameter.position < options_.parameters.size()
                ? options_.parameters[parameter.position]
                : fmt::format("value{}", parameter.position);
  }

  void print_node(const Reduction& reduction, DType type, Expected, int) {
    const size_t values = definition_.values_of(reduction);
    out_ += reduction.combiner ? row_of(*reduction.combiner).spelling
                               : std::string_view(names_.reducers[reduction.reducer].name);
    if (!std::exchange(whole_tuple_, false) && values > 1)
      out_ += fmt::format(".v{}", reduction.output);
    out_ += '[';
    for (size_t i = 0; i < reduction.axes.size(); ++i) {
      if (i > 0) out_ += ", ";
      print_range(reduction.axes[i]);
    }
    out_ += "](";
    const std::vector<DType> types =
        reduction.combiner ? std::vector{type} : definition_.reducers[reduction.reducer].types;
    print_values(reduction.sources, types);
    if (reduction.condition) {
      out_ += ", where=";
      print(*reduction.condition, DType::Bool, 0);
    }
    if (!reduction.init.empty()) {
      out_ += values > 1 ? ", init=(" : ", init=";
      print_values(reduction.init, types);
      if (values > 1) out_ += ')';
    }
    out_ += ')';
  }

  void print_values(const std::vector<ExprId>& values, const std::vector<DType>& types) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(values[i], types[i], 0);
    }
  }

  /// "k < l", "1 <= k < l"
  void print_range(AxisId axis) {
    const ExprId minimum = definition_.axes[axis].minimum;
    const ExprId extent = definition_.axes[axis].extent;
    const auto lower = integer_at(minimum);
    const auto length = integer_at(extent);
    if (lower == 0) {
      out_ += fmt::format("{} < ", names_.axes[axis]);
      print(extent, DType::Int64, 4);
      return;
    }
    print(minimum, DType::Int64, 4);
    out_ += fmt::format(" <= {} < ", names_.axes[axis]);
    int64_t end = 0;
    if (lower && length && !__builtin_add_overflow(*lower, *length, &end)) {
      out_ += fmt::format("{}", end);
      return;
    }
    const auto* difference = std::get_if<Operation>(&definition_.expressions[extent].node);
    if (difference != nullptr && difference->op == Operator::Sub &&
        same(difference->operands[1], minimum) && !starts_with(difference->operands[0], minimum)) {
      print(difference->operands[0], DType::Int64, 4);
      return;
    }
    print(minimum, DType::Int64, precedence_of(Operator::Add));
    out_ += " + ";
    print(extent, DType::Int64, precedence_of(Operator::Add) + 1);
  }

  /// Whether `expr` is `start` + something, which the reader of a range takes for its extent.
  bool starts_with(ExprId expr, ExprId start) {
    const auto* sum = std::get_if<Operation>(&definition_.expressions[expr].node);
    return sum != nullptr && sum->op == Operator::Add && same(sum->operands[0], start);
  }

  bool same(ExprId a, ExprId b) {
    if (a == b) return true;
    const TextOptions all = {.typed = true, .expected = DType::Int64, .max_bytes = 1'000};
    const std::string text = text_of(definition_, names_, a, all);
    return text.size() < all.max_bytes && text == text_of(definition_, names_, b, all);
  }

  std::optional<int64_t> integer_at(ExprId expr) const {
    const auto* integer = std::get_if<IntegerConstant>(&definition_.expressions[expr].node);
    if (integer == nullptr) return std::nullopt;
    return integer->value;
  }

  void print_node(const Operation& operation, DType type, Expected expected, int binding) {
    const OperatorRow& row = row_of(operation.op);
    const Expected shared = operand_type(operation, expected);
    const int precedence = precedence_of(operation.op);
    if (precedence > 0) {
      const bool parentheses = precedence < binding;
      if (parentheses) out_ += '(';
      print(operation.operands[0], shared, precedence);
      out_ += fmt::format(" {} ", row.infix);
      print(operation.operands[1], shared, precedence + 1);
      if (parentheses) out_ += ')';
      return;
    }
    const bool bare = is_constant(definition_.expressions[operation.operands[0]]);
    if (const std::string_view prefix = prefix_of(operation.op); !prefix.empty() && !bare) {
      const bool parentheses = kUnaryPrecedence < binding;
      if (parentheses) out_ += '(';
      out_ += prefix;
      print(operation.operands[0], shared, kUnaryPrecedence);
      if (parentheses) out_ += ')';
      return;
    }
    out_ += fmt::format("{}(", row.spelling);
    const bool choose = row.type_rule == TypeRule::Choose;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(operation.operands[i], choose && i == 0 ? DType::Bool : shared, 0);
    }
    out_ += ')';
  }

  void print_list(const std::vector<ExprId>& list, Expected expected) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(list[i], expected, 0);
    }
  }

  /// The type that literals among the operands take: that of the first operand that has one of its
  /// own, else what the place of the operation asks for.
  Expected operand_type(const Operation& operation, Expected expected) {
    const TypeRule rule = row_of(operation.op).type_rule;
    if (rule == TypeRule::Logic) return DType::Bool;
    const size_t first = rule == TypeRule::Choose ? 1 : 0;
    for (size_t i = first; i < operation.operands.size(); ++i) {
      if (const Expected type = natural_type(operation.operands[i])) return type;
    }
    if (!result_is_operand_type(rule)) return std::nullopt;
    return expected;
  }

  /// The type a reader finds without looking outside the expression; none for bare literals.
  Expected natural_type(ExprId expr) {
    const auto known = natural_.find(expr);
    if (known != natural_.end()) return known->second;
    const Expression& expression = definition_.expressions[expr];
    Expected type = expression.type;
    if (is_constant(expression)) {
      if (expression.type != DType::Bool) type = std::nullopt;
    } else if (const auto* operation = std::get_if<Operation>(&expression.node)) {
      const TypeRule rule = row_of(operation->op).type_rule;
      // Without an operand of the result's type the expression has one of its own.
      if (result_is_operand_type(rule)) type = operand_type(*operation, std::nullopt);
    } else if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
      if (reduction->combiner) type = natural_type(reduction->sources[0]);
    }
    return natural_[expr] = type;
  }

  const Definition& definition_;
  const SourceMap& names_;
  const TextOptions& options_;
  std::string out_;
  bool whole_tuple_ = options_.whole_tuple;  // the reduction at the top is still to come
  std::unordered_map<ExprId, Expected> natural_;
};

}  // namespace

int precedence_of(Operator op) {
  switch (op) {
    case Operator::Or: return 1;
    case Operator::And: return 2;
    case Operator::Equal:
    case Operator::NotEqual:
    case Operator::Less:
    case Operator::LessEqual:
    case Operator::Greater:
    case Operator::GreaterEqual: return 3;
    case Operator::BitOr: return 4;
    case Operator::BitXor: return 5;
    case Operator::BitAnd: return 6;
    case Operator::ShiftLeft:
    case Operator::ShiftRight: return 7;
    case Operator::Add:
    case Operator::Sub: return 8;
    case Operator::Mul:
    case Operator::Div: return 9;
    default: return 0;
  }
}

std::string text_of(const Definition& definition, const SourceMap& names, ExprId expr,
                    const TextOptions& options) {
  return ExpressionText(definition, names, options).of(expr);
}

std::string shape_text(const Definition& definition, const SourceMap& names,
                       std::span<const ExprId> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += text_of(definition, names, shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace kiln::language
