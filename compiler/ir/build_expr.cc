// The second step of parsing an expression: types. A constant without one has the type of its
// place, of what it stands beside, or the default, in this order, by the rules of text_rules.h that
// print.cc writes by. Names are looked up and operands checked here, so that all errors name a
// place.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "compiler/ir/parse_expr.h"
#include "runtime/core/error.h"
#include "runtime/core/small_float.h"

namespace kiln::ir {
namespace {

class ExpressionBuilder {
 public:
  explicit ExpressionBuilder(const NameScope& names) : names_(names) {}

  Expr build(const Syntax& syntax, Expected expected) {
    switch (syntax.kind) {
      case Syntax::Kind::Integer:
      case Syntax::Kind::Float: return constant(syntax, syntax.type ? syntax.type : expected);
      case Syntax::Kind::Name: return name(syntax);
      case Syntax::Kind::Access: {
        const Access found = access(syntax);
        return Load::make(found.buffer, found.indices, found.predicate);
      }
      case Syntax::Kind::Call: return call(syntax, expected);
      case Syntax::Kind::Operator: break;
    }
    return operation(syntax, syntax.op, expected);
  }

  Access access(const Syntax& syntax) {
    const auto found = names_.buffers.find(syntax.text);
    if (found == names_.buffers.end()) {
      fail_syntax(syntax.at, fmt::format("there is no buffer '{}'", syntax.text));
    }
    Access result{found->second, {}, nullptr};
    int lanes = 1;
    for (const Syntax& operand : syntax.operands) {
      const Expr index = build(operand, DType::Int64);
      if (index->type.element != DType::Int64) {
        fail_syntax(operand.at, fmt::format("an index is int64, but got {}", index->type.element));
      }
      if (lanes > 1 && index->type.lanes > 1 && index->type.lanes != lanes) {
        fail_syntax(operand.at, fmt::format("an index with {} lanes stands beside one with {}",
                                            index->type.lanes, lanes));
      }
      lanes = std::max(lanes, index->type.lanes);
      result.indices.push_back(index);
    }
    if (!syntax.predicate.empty()) {
      result.predicate = build(syntax.predicate[0], DType::Bool);
      const Type wanted{DType::Bool, lanes};
      if (result.predicate->type != wanted) {
        fail_syntax(syntax.predicate[0].at,
                    fmt::format("a predicate here is bool of {} lanes", lanes));
      }
    }
    return result;
  }

 private:
  Expr constant(const Syntax& syntax, Expected type) {
    const bool is_integer = syntax.kind == Syntax::Kind::Integer;
    const DType element = type.value_or(is_integer ? DType::Int64 : DType::Float32);
    if (is_float(element)) {
      return FloatImm::make({element, 1}, round_to(element, floating(syntax, element)));
    }
    if (!is_integer || element == DType::Bool) {
      fail_syntax(syntax.at, fmt::format("{} is no constant of {}", syntax.text, element));
    }
    return IntImm::make({element, 1}, integer(syntax, element));
  }

  static double floating(const Syntax& syntax, DType type) {
    const bool negative = syntax.text[0] == '-';
    const std::string_view digits = std::string_view(syntax.text).substr(negative ? 1 : 0);
    double value = 0;
    if (digits == "inf") {
      value = std::numeric_limits<double>::infinity();
    } else if (digits == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (type == DType::Float32) {
      float narrow = 0;  // rounded once
      std::from_chars(digits.data(), digits.data() + digits.size(), narrow);
      value = narrow;
    } else {
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
    }
    return negative ? -value : value;
  }

  static int64_t integer(const Syntax& syntax, DType type) {
    const char* end = syntax.text.data() + syntax.text.size();
    int64_t value = 0;
    std::from_chars_result result{};
    if (type == DType::UInt64) {
      uint64_t wide = 0;
      result = std::from_chars(syntax.text.data(), end, wide);
      value = static_cast<int64_t>(wide);
    } else {
      result = std::from_chars(syntax.text.data(), end, value);
    }
    bool fits = result.ec == std::errc() && result.ptr == end;
    if (bits_of(type) < 64) {
      const int bits = bits_of(type) - (is_signed_int(type) ? 1 : 0);
      const int64_t limit = int64_t{1} << bits;
      fits = fits && value < limit && value >= (is_signed_int(type) ? -limit : 0);
    }
    if (!fits) fail_syntax(syntax.at, fmt::format("{} does not fit in {}", syntax.text, type));
    return value;
  }

  Expr name(const Syntax& syntax) {
    if (syntax.text == "true" || syntax.text == "false") {
      return IntImm::make(kBoolType, syntax.text == "true" ? 1 : 0);
    }
    const auto found = names_.vars.find(syntax.text);
    if (found == names_.vars.end()) {
      fail_syntax(syntax.at, fmt::format("there is no variable '{}'", syntax.text));
    }
    return found->second;
  }

  /// Types are casts, a few names make nodes of their own, all others are operators.
  Expr call(const Syntax& syntax, Expected expected) {
    if (const auto type = find_dtype(syntax.text)) {
      const Expr value = build(only_operands(syntax, 1)[0], std::nullopt);
      return Cast::make({*type, value->type.lanes}, value);
    }
    if (syntax.text == Ramp::kWord) return ramp(syntax);
    if (syntax.text == Broadcast::kWord) {
      const Expr value = build(only_operands(syntax, 2)[0], expected);
      if (value->type.lanes != 1) fail_syntax(syntax.at, "a broadcast is of one lane");
      return Broadcast::make(value, lanes(syntax.operands[1]));
    }
    if (syntax.text.starts_with("reduce_")) return vector_reduce(syntax, expected);
    if (syntax.text == Dot::kWord) return dot(syntax, expected);
    const auto op = language::find_operator(syntax.text);
    if (!op) fail_syntax(syntax.at, fmt::format("there is no function '{}'", syntax.text));
    return operation(syntax, *op, expected);
  }

  static const std::vector<Syntax>& only_operands(const Syntax& syntax, size_t count) {
    if (syntax.operands.size() != count) {
      fail_syntax(syntax.at, fmt::format("{} takes {} operands, but got {}", syntax.text, count,
                                         syntax.operands.size()));
    }
    return syntax.operands;
  }

  static int lanes(const Syntax& syntax) {
    int lanes = 0;
    const std::string& text = syntax.text;
    std::from_chars(text.data(), text.data() + text.size(), lanes);
    if (syntax.kind != Syntax::Kind::Integer || lanes < 2) {
      fail_syntax(syntax.at, fmt::format("a number of lanes is at least 2, but got '{}'", text));
    }
    return lanes;
  }

  /// `ramp(base, stride, 8)`
  Expr ramp(const Syntax& syntax) {
    const std::vector<Syntax>& operands = only_operands(syntax, 3);
    const Expr base = build_typed(operands[0], names_, kIndexType);
    const Expr stride = build_typed(operands[1], names_, kIndexType);
    return Ramp::make(base, stride, lanes(operands[2]));
  }

  /// `dot(start, a, b)`: the group follows from the lanes.
  Expr dot(const Syntax& syntax, Expected expected) {
    const std::vector<Syntax>& operands = only_operands(syntax, 3);
    const Expr start = build(operands[0], expected);
    const Expr a = build(operands[1], std::nullopt);
    const Expr b = build(operands[2], std::nullopt);
    const int lanes = start->type.lanes;
    const int group = b->type.lanes / lanes;
    if (group < 2 || group * lanes != b->type.lanes ||
        (a->type.lanes != group && a->type.lanes != b->type.lanes)) {
      fail_syntax(syntax.at, fmt::format("dot is given {}, {} and {} lanes", lanes, a->type.lanes,
                                         b->type.lanes));
    }
    return Dot::make(start, a, b);
  }

  /// `reduce_max(start, vector)`
  Expr vector_reduce(const Syntax& syntax, Expected expected) {
    const auto combiner = language::find_combiner(std::string_view(syntax.text).substr(7));
    if (!combiner) fail_syntax(syntax.at, fmt::format("there is no function '{}'", syntax.text));
    only_operands(syntax, 2);
    const Operator op = language::row_of(*combiner).op;
    const std::vector<Expr> built = operands(syntax, op, expected);
    if (built[0]->type != built[1]->type.with_lanes(1)) {
      fail_syntax(syntax.at, fmt::format("{} takes a value and a vector of its type", syntax.text));
    }
    return VectorReduce::make(*combiner, built[0], built[1], syntax.reassociate);
  }

  /// Whether the type shows without the place; as is_anchored() has it.
  static bool is_anchored(const Syntax& syntax) {
    const auto of_operator = [&](Operator op) {
      const SharedType shared = shared_type_of(op);
      const size_t first = std::min<size_t>(shared.first_operand, syntax.operands.size());
      return !shared.is_result ||
             std::any_of(syntax.operands.begin() + static_cast<std::ptrdiff_t>(first),
                         syntax.operands.end(), is_anchored);
    };
    switch (syntax.kind) {
      case Syntax::Kind::Integer:
      case Syntax::Kind::Float: return syntax.type.has_value();
      case Syntax::Kind::Operator: return of_operator(syntax.op);
      case Syntax::Kind::Call: break;
      default: return true;
    }
    if (syntax.text == Broadcast::kWord) {
      return !syntax.operands.empty() && is_anchored(syntax.operands[0]);
    }
    if (syntax.text.starts_with("reduce_")) {
      return std::any_of(syntax.operands.begin(), syntax.operands.end(), is_anchored);
    }
    const auto op = language::find_operator(syntax.text);
    return !op || of_operator(*op);
  }

  /// The operands, each built for the type that expected_operands() would print it for.
  std::vector<Expr> operands(const Syntax& syntax, Operator op, Expected expected) {
    const SharedType shared = shared_type_of(op);
    const auto first = syntax.operands.begin() + shared.first_operand;
    std::vector<Expr> result(syntax.operands.size());
    Expected type = shared.is_result ? expected : std::nullopt;
    if (!type) {
      const auto anchor = std::find_if(first, syntax.operands.end(), is_anchored);
      if (anchor != syntax.operands.end()) {
        Expr& built = result[anchor - syntax.operands.begin()];
        built = build(*anchor, std::nullopt);
        type = built->type.element;
      }
    }
    for (size_t i = 0; i < result.size(); ++i) {
      const bool is_condition = i < static_cast<size_t>(shared.first_operand);
      if (!result[i]) result[i] = build(syntax.operands[i], is_condition ? DType::Bool : type);
    }
    return result;
  }

  Expr operation(const Syntax& syntax, Operator op, Expected expected) {
    const language::OperatorRow& row = language::row_of(op);
    if (static_cast<int>(syntax.operands.size()) != row.arity) {
      fail_syntax(syntax.at, fmt::format("{} takes {} operands, but got {}", row.spelling,
                                         row.arity, syntax.operands.size()));
    }
    std::vector<Expr> args = operands(syntax, op, expected);
    std::vector<DType> types;
    for (const Expr& arg : args) {
      types.push_back(arg->type.element);
      if (arg->type.lanes != args[0]->type.lanes) {
        fail_syntax(syntax.at, fmt::format("{} is given {} lanes and {} lanes", row.spelling,
                                           args[0]->type.lanes, arg->type.lanes));
      }
    }
    try {
      language::result_type(op, types);
    } catch (const Error& error) {
      fail_syntax(syntax.at, error.message());
    }
    return ir::operation(op, std::move(args));
  }

  const NameScope& names_;
};

}  // namespace

Expr build_expression(const Syntax& syntax, const NameScope& names, Expected expected) {
  return ExpressionBuilder(names).build(syntax, expected);
}

Expr build_typed(const Syntax& syntax, const NameScope& names, Type type) {
  Expr result = build_expression(syntax, names, type.element);
  if (result->type != type) {
    fail_syntax(syntax.at,
                result->type.lanes == type.lanes
                    ? fmt::format("expected {}, but got {}", type.element, result->type.element)
                    : fmt::format("expected {} lane, but got {}", type.lanes, result->type.lanes));
  }
  return result;
}

Access build_access(const Syntax& syntax, const NameScope& names) {
  return ExpressionBuilder(names).access(syntax);
}

}  // namespace kiln::ir
