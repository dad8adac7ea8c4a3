// Builds expressions: operands promoted, constant sizes folded, depth and chains of stages limited
// where they grow, so that the error is at the line that is one too many.
//
//   n = 32;  n - 1  ->  the constant 31, not subtract(32, 1)
#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>

#include <kiln/expr.h>

#include "client/cpp/fail.h"
#include "client/cpp/language_border.h"
#include "client/cpp/nodes.h"
#include "client/cpp/promote.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

int depth_of(const Expr& expr) { return expr.node()->depth; }

int deepest(std::span<const Expr> exprs) {
  int depth = 0;
  for (const Expr& expr : exprs)
    depth = std::max(depth, depth_of(expr));
  return depth;
}

struct DepthBelow {
  int operator()(const OperationValue& value) const { return deepest(value.operands); }
  int operator()(const CastValue& value) const { return depth_of(value.operand); }
  int operator()(const ReadValue& value) const { return deepest(value.indices); }
  int operator()(const ReductionValue& value) const { return deepest(value.parts()); }
  template <typename Leaf>
  int operator()(const Leaf&) const {
    return 0;
  }
};

/// The longest chain of stages behind what a value reads.
struct StagesBelow {
  static int of(const std::vector<Expr>& exprs) {
    int most = 0;
    for (const Expr& expr : exprs)
      most = std::max(most, expr.node()->stages);
    return most;
  }
  int operator()(const OperationValue& value) const { return of(value.operands); }
  int operator()(const CastValue& value) const { return value.operand.node()->stages; }
  int operator()(const ReadValue& value) const {
    return std::max(value.tensor.stage()->stages, of(value.indices));
  }
  int operator()(const ReductionValue& value) const {
    int most = of(value.parts());
    for (const ReduceAxis& axis : value.axes)
      most = std::max(most, of({*axis.node()->minimum, *axis.node()->extent}));
    return most;
  }
  template <typename Leaf>
  int operator()(const Leaf&) const {
    return 0;
  }
};

/// Collects reduction axes; shared subexpressions are visited once.
class ReducedAxes {
 public:
  void visit(const Expr& expr) {
    if (!seen_.insert(expr.node().get()).second) return;
    if (const auto* operation = std::get_if<OperationValue>(&expr.node()->value)) {
      for (const Expr& operand : operation->operands)
        visit(operand);
    } else if (const auto* cast = std::get_if<CastValue>(&expr.node()->value)) {
      visit(cast->operand);
    } else if (const auto* read = std::get_if<ReadValue>(&expr.node()->value)) {
      for (const Expr& index : read->indices)
        visit(index);
    } else if (const auto* reduction = std::get_if<ReductionValue>(&expr.node()->value)) {
      for (const ReduceAxis& axis : reduction->axes)
        add(axis);
      for (const Expr& part : reduction->parts())
        visit(part);
    }
  }
  std::vector<Axis> take() { return std::move(axes_); }

 private:
  void add(const Axis& axis) {
    if (found_.insert(axis.node().get()).second) axes_.push_back(axis);
  }

  std::unordered_set<const ExprNode*> seen_;
  std::unordered_set<const AxisNode*> found_;
  std::vector<Axis> axes_;
};

}  // namespace

Expr make_expr(DType type, decltype(ExprNode::value) value) {
  // Kept in the node, so that asking costs nothing however large the expression is.
  const int depth = std::visit(DepthBelow(), value) + 1;
  if (depth > kMaximumDepth) {
    fail(ErrorKind::ResourceExhausted, "DEPTH",
         "an expression is nested {} deep; the limit is {}: name a part of it as a tensor of its "
         "own",
         depth, kMaximumDepth);
  }
  const int stages = std::visit(StagesBelow(), value);
  return Expr(std::make_shared<const ExprNode>(ExprNode{type, depth, std::move(value), stages}));
}

std::optional<std::int64_t> as_integer(const Expr& expr) {
  const auto* integer = std::get_if<IntegerValue>(&expr.node()->value);
  if (integer == nullptr || expr.dtype() == boolean) return std::nullopt;
  return integer->value;
}

bool is_literal(const Expr& expr) {
  if (const auto* integer = std::get_if<IntegerValue>(&expr.node()->value)) {
    return integer->literal;
  }
  const auto* floating = std::get_if<FloatingValue>(&expr.node()->value);
  return floating != nullptr && floating->literal;
}

Expr to_index(const Expr& expr, const std::string& what) {
  if (!border::is_int(static_cast<int>(expr.dtype()))) {
    fail(ErrorKind::InvalidArgument, "INDEX_TYPE", "{} must be an integer, but is {}", what,
         name_of(expr.dtype()));
  }
  return cast(expr, int64);
}

std::string size_text(const Expr& size) {
  if (const auto value = as_integer(size)) return std::to_string(*value);
  const auto* variable = std::get_if<VariableValue>(&size.node()->value);
  return variable != nullptr ? variable->name : "not known";
}

std::vector<Axis> reduced_axes(const std::vector<Expr>& bodies) {
  ReducedAxes axes;
  for (const Expr& body : bodies)
    axes.visit(body);
  return axes.take();
}

namespace {

/// The quotient rounded down, as Python's //.
std::int64_t floordiv(std::int64_t a, std::int64_t b) {
  return a / b - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

/// Arithmetic of two constant integers, so that 32 - 1 is a constant size.
std::optional<Expr> fold(std::string_view spelling, std::span<const Expr> operands) {
  if (operands.size() != 2) return std::nullopt;
  const std::optional<std::int64_t> a = as_integer(operands[0]);
  const std::optional<std::int64_t> b = as_integer(operands[1]);
  std::int64_t result = 0;
  // Sizes are int64; narrower types wrap, which is the service's to compute.
  if (!a || !b || operands[0].dtype() != int64) return std::nullopt;
  const bool divides = spelling == "floordiv" || spelling == "floormod";
  if (divides && *b > 0) {
    const std::int64_t quotient = floordiv(*a, *b);
    return constant(spelling == "floordiv" ? quotient : *a - quotient * *b, int64);
  }
  const bool overflows = spelling == "add"        ? __builtin_add_overflow(*a, *b, &result)
                         : spelling == "subtract" ? __builtin_sub_overflow(*a, *b, &result)
                         : spelling == "multiply" ? __builtin_mul_overflow(*a, *b, &result)
                                                  : true;
  if (overflows) return std::nullopt;
  return constant(result, int64);
}

}  // namespace

Expr apply(std::string_view spelling, std::initializer_list<Expr> operands) {
  const border::OperatorUse use = border::find_operator(spelling);
  std::vector<Expr> promoted = promote(use.operands, {operands.begin(), operands.end()});
  std::vector<int> types;
  types.reserve(promoted.size());
  for (const Expr& operand : promoted)
    types.push_back(static_cast<int>(operand.dtype()));
  if (spelling == "divide" && border::is_int(types[0])) {
    fail(ErrorKind::InvalidArgument, "INTEGER_DIVISION",
         "a / b of integers is ambiguous: write floordiv(a, b) to round down or truncdiv(a, b) to "
         "round to zero");
  }
  const auto type = static_cast<DType>(border::result_type(spelling, types));
  // After the types are found, so that what does not fit is refused all the same.
  if (const std::optional<Expr> folded = fold(spelling, promoted)) return *folded;
  return make_expr(type, OperationValue{use.spelling, std::move(promoted)});
}

std::vector<Expr> ReductionValue::parts() const {
  std::vector<Expr> parts = sources;
  if (condition) parts.push_back(*condition);
  parts.insert(parts.end(), init.begin(), init.end());
  return parts;
}

}  // namespace detail

Expr Expr::integer_literal(std::int64_t value, bool is_bool) {
  const bool small = value >= std::numeric_limits<std::int32_t>::min() &&
                     value <= std::numeric_limits<std::int32_t>::max();
  const DType natural = is_bool ? boolean : small ? int32 : int64;
  return detail::make_expr(natural, detail::IntegerValue{value, !is_bool});
}

Expr Expr::floating_literal(double value) {
  return detail::make_expr(float32, detail::FloatingValue{value, true});
}

DType Expr::dtype() const { return node_->type; }
Expr Expr::astype(DType type) const { return cast(*this, type); }

Expr var(std::string name) {
  return detail::make_expr(int64, detail::VariableValue{std::move(name), false});
}

Expr size_var(std::string name) {
  return detail::make_expr(int64, detail::VariableValue{std::move(name), true});
}

namespace {

double largest_float(DType type) {
  switch (type) {
    case float64: return std::numeric_limits<double>::max();
    case float32: return std::numeric_limits<float>::max();
    case float16: return 65504;
    case bfloat16: return 0x1.FEp127;
    case float8_e4m3fn: return 448;
    default: return 57344;  // float8_e5m2
  }
}

DType unsigned_of(DType type) {
  switch (size_of(type)) {
    case 1: return uint8;
    case 2: return uint16;
    case 4: return uint32;
    default: return uint64;
  }
}

bool is_float(DType type) { return border::is_float(static_cast<int>(type)); }

}  // namespace

Expr infinity(DType type) { return constant(std::numeric_limits<double>::infinity(), type); }

Expr min_value(DType type) {
  if (is_float(type)) return constant(-largest_float(type), type);
  if (!border::is_signed_int(static_cast<int>(type))) return constant(std::int64_t{0}, type);
  return constant(std::numeric_limits<std::int64_t>::min() >> (64 - 8 * size_of(type)), type);
}

Expr max_value(DType type) {
  if (is_float(type)) return constant(largest_float(type), type);
  if (type == boolean) return constant(std::int64_t{1}, type);
  const bool is_signed = border::is_signed_int(static_cast<int>(type));
  const auto bits = 8 * size_of(type) - (is_signed ? 1 : 0);
  return constant(static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - bits)), type);
}

Expr reinterpret(const Expr& value, DType type) {
  const DType from = value.dtype();
  if (from == type) return value;
  if (size_of(from) != size_of(type) || from == boolean || type == boolean) {
    detail::fail(ErrorKind::InvalidArgument, "REINTERPRET",
                 "reinterpret: {} and {} are not types of one width", name_of(from), name_of(type));
  }
  const Expr bits =
      is_float(from) ? detail::apply("bits_of", {value}) : cast(value, unsigned_of(type));
  switch (type) {
    case float64: return detail::apply("float64_of_bits", {bits});
    case float32: return detail::apply("float32_of_bits", {bits});
    case float16: return detail::apply("float16_of_bits", {bits});
    case bfloat16: return detail::apply("bfloat16_of_bits", {bits});
    case float8_e4m3fn: return detail::apply("float8_e4m3fn_of_bits", {bits});
    case float8_e5m2: return detail::apply("float8_e5m2_of_bits", {bits});
    default: return cast(bits, type);
  }
}

Expr constant(std::int64_t value, DType type) {
  if (border::is_float(static_cast<int>(type))) return constant(static_cast<double>(value), type);
  return detail::make_expr(type, detail::IntegerValue{value, false});
}

Expr constant(double value, DType type) {
  if (!border::is_float(static_cast<int>(type))) {
    detail::fail(ErrorKind::InvalidArgument, "CONSTANT_TYPE",
                 "the constant {} is not of type {}: cast it, or give an integer", value,
                 name_of(type));
  }
  return detail::make_expr(type, detail::FloatingValue{value, false});
}

Expr cast(const Expr& value, DType type) {
  if (detail::is_literal(value)) {
    if (const auto* integer = std::get_if<detail::IntegerValue>(&value.node()->value)) {
      if (type != boolean) return constant(integer->value, type);
    } else if (border::is_float(static_cast<int>(type))) {
      return constant(std::get<detail::FloatingValue>(value.node()->value).value, type);
    }
    // A number of the program that is turned into another kind of number: fixed first, then cast.
    return detail::make_expr(type, detail::CastValue{cast(value, value.dtype())});
  }
  if (value.dtype() == type) return value;
  return detail::make_expr(type, detail::CastValue{value});
}

const std::string& Axis::name() const { return node_->name; }

ReduceAxis::operator Expr() const { return detail::make_expr(int64, detail::AxisValue{node()}); }

ReduceAxis reduce_axis(const Expr& begin, const Expr& end, std::string name, SourceLocation where) {
  const auto edge = [&](const Expr& expr, const char* what) {
    return detail::at_line(where, [&] {
      return detail::to_index(expr, fmt::format("the {} of reduce_axis {}", what, name));
    });
  };
  const Expr minimum = edge(begin, "begin");
  const Expr limit = edge(end, "end");
  const std::optional<std::int64_t> from = detail::as_integer(minimum);
  const std::optional<std::int64_t> to = detail::as_integer(limit);
  Expr extent = from && *from == 0 ? limit : limit - minimum;
  if (from && to) {
    if (*to < *from) {
      detail::fail_at(where, "AXIS_EXTENT", "reduce_axis {} ends at {}, before its begin {}", name,
                      *to, *from);
    }
    extent = constant(*to - *from, int64);
  }
  return ReduceAxis(std::make_shared<const detail::AxisNode>(
      detail::AxisNode{detail::AxisKind::Reduce, std::move(name), minimum, extent}));
}

}  // namespace client
}  // namespace kiln
