// Writes expressions in CUDA C with the meaning of the operator table, which C does not always
// share: arithmetic of signed integers goes through unsigned ones where it may overflow, division,
// shifts and min call functions of cuda_prelude.cc, and narrow integers are cast back after C has
// promoted them; floats of 8 and 16 bits are widened, and rounded back. Parentheses follow from how
// tightly C's operators bind.
#include "compiler/codegen/cuda_expr.h"

#include <cmath>
#include <limits>

#include "compiler/codegen/operator_code.h"
#include "compiler/ir/dispatch.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/flushed_power.h"
#include "compiler/ir/swizzle.h"
#include "runtime/core/error.h"
#include "runtime/core/small_float.h"

namespace kiln::codegen {
namespace {

using namespace ir;

// How tightly operators of C bind.
constexpr int kPrimary = 16;
constexpr int kUnary = 14;
constexpr int kMul = 13;
constexpr int kAdd = 12;
constexpr int kRelation = 10;
constexpr int kEquality = 9;
constexpr int kBitAnd = 8;
constexpr int kBitXor = 7;
constexpr int kBitOr = 6;
constexpr int kAnd = 5;
constexpr int kOr = 4;
constexpr int kChoice = 3;

/// A piece of C, and how tightly its outermost operator binds.
struct Text {
  std::string text;
  int binds = kPrimary;
};

std::string inside(const Text& value, int at_least) {
  return value.binds < at_least ? "(" + value.text + ")" : value.text;
}

Text call(std::string_view function, std::string_view args) {
  return {fmt::format("{}({})", function, args), kPrimary};
}

Text cast_to(DType type, const Text& value) {
  return {fmt::format("({}){}", cuda_type(type), inside(value, kUnary)), kUnary};
}

/// Of 8 or 16 bits: memory has its bits, and arithmetic is that of float, rounded.
bool is_small_float(DType type) { return is_float(type) && bits_of(type) < 32; }

Text widened(DType type, const Text& value) {
  return is_small_float(type) ? cast_to(DType::Float32, value) : value;
}
Text rounded(DType type, const Text& value) {
  return is_small_float(type) ? call(fmt::format("{}::of", cuda_type(type)), value.text) : value;
}

Text int_literal(DType type, int64_t value) {
  if (type == DType::Bool) return {value != 0 ? "true" : "false"};
  if (type == DType::UInt64) return {fmt::format("{}ull", static_cast<uint64_t>(value))};
  if (type == DType::UInt32) return {fmt::format("{}u", static_cast<uint32_t>(value))};
  if (value == std::numeric_limits<int64_t>::min()) return {"(-9223372036854775807ll - 1)"};
  const int binds = value < 0 ? kUnary : kPrimary;
  // An int is widened by whatever it meets: loop variables and sizes are all 64 bits wide.
  const bool is_int = value > -32768 && value < 32768;
  if (type == DType::Int64) return {fmt::format("{}{}", value, is_int ? "" : "ll"), binds};
  if (value == std::numeric_limits<int32_t>::min()) return {"(-2147483647 - 1)"};
  return {fmt::format("{}", value), binds};
}

Text float_literal(DType type, double value) {
  if (is_small_float(type)) {
    return {fmt::format("{}{{{:#x}}}", cuda_type(type), to_small_float(type, value)), kPrimary};
  }
  const bool is_double = type == DType::Float64;
  if (std::isnan(value)) return {is_double ? "::nan(\"\")" : "::nanf(\"\")"};
  if (std::isinf(value)) {
    const std::string_view bits =
        is_double ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)";
    return {fmt::format("{}{}", value < 0 ? "-" : "", bits), value < 0 ? kUnary : kPrimary};
  }
  // fmt writes the shortest text that reads back as the same number.
  std::string text =
      is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return {text, std::signbit(value) ? kUnary : kPrimary};
}

struct Infix {
  std::string_view text;
  int binds;
};
Infix infix_of(Operator op) {
  switch (op) {
    case Operator::Add: return {"+", kAdd};
    case Operator::Sub: return {"-", kAdd};
    case Operator::Mul: return {"*", kMul};
    case Operator::Div: return {"/", kMul};
    case Operator::Equal: return {"==", kEquality};
    case Operator::NotEqual: return {"!=", kEquality};
    case Operator::Less: return {"<", kRelation};
    case Operator::LessEqual: return {"<=", kRelation};
    case Operator::Greater: return {">", kRelation};
    case Operator::GreaterEqual: return {">=", kRelation};
    case Operator::And: return {"&&", kAnd};
    case Operator::Or: return {"||", kOr};
    case Operator::BitAnd: return {"&", kBitAnd};
    case Operator::BitOr: return {"|", kBitOr};
    case Operator::BitXor: return {"^", kBitXor};
    default: return {"", 0};
  }
}

/// The name of our function for a binary operator that C has in another sense.
std::string_view own_function(Operator op, bool of_floats) {
  switch (op) {
    case Operator::FloorDiv: return of_floats ? "kiln_floordiv_float" : "kiln_floordiv";
    case Operator::FloorMod: return of_floats ? "kiln_floormod_float" : "kiln_floormod";
    case Operator::TruncDiv: return "kiln_truncdiv";
    case Operator::TruncMod: return "kiln_truncmod";
    case Operator::Min: return "kiln_min";
    case Operator::Max: return "kiln_max";
    case Operator::ShiftLeft: return "kiln_shift_left";
    case Operator::ShiftRight: return "kiln_shift_right";
    default: return "";
  }
}

/// Of integers by a number that is neither 0 nor -1, as C has it.
bool is_plain_division(const Binary& node) {
  if (node.op != Operator::TruncDiv && node.op != Operator::TruncMod) return false;
  const IntImm* by = as<IntImm>(node.b);
  return by != nullptr && by->value > 0;
}
Infix plain_division(Operator op) { return {op == Operator::TruncDiv ? "/" : "%", kMul}; }

bool is_narrow(DType type) { return is_int(type) && bits_of(type) < 32; }

/// Whether arithmetic on the type must go through unsigned numbers to wrap.
bool wraps_by_cast(Operator op, DType type) {
  const bool may_overflow = op == Operator::Add || op == Operator::Sub || op == Operator::Mul;
  return may_overflow && (is_narrow(type) || type == DType::Int32);
}

class Expression {
 public:
  explicit Expression(const CudaScope& scope)
      : scope_(scope), names_(scope.names), is_narrow_(scope.is_narrow), known_(scope.known) {}

  Text operator()(const Expr& expr) {
    KILN_CHECK(expr->type.lanes == 1);
    for (const KnownValue& value : known_)
      if (value.expr->kind == expr->kind && equal_trees(value.expr, expr))
        return {names_[value.var]};
    return dispatch(*expr, [this](const auto& node) { return of(node); });
  }

 private:
  /// As it is written: an index of 64 bits may have 32.
  DType written(DType type) const {
    if (!is_narrow_) return type;
    return type == DType::Int64 ? DType::Int32 : type == DType::UInt64 ? DType::UInt32 : type;
  }

  Text of(const IntImm& node) { return int_literal(written(node.type.element), node.value); }
  Text of(const FloatImm& node) { return float_literal(node.type.element, node.value); }
  Text of(const Var& node) { return {names_[VarRef(&node)]}; }

  Text of(const Binary& node) {
    const DType element = written(node.a->type.element);
    const Text result = binary(node, is_small_float(element) ? DType::Float32 : element);
    return written(node.type.element) == element ? rounded(element, result) : result;
  }

  Text binary(const Binary& node, DType type) {
    const Text a = operand(node.a);
    const Text b = operand(node.b);
    const bool is_plain = is_plain_division(node);
    if (const auto own = own_function(node.op, is_float(type)); !own.empty() && !is_plain) {
      return call(fmt::format("{}<{}>", own, cuda_type(type)),
                  fmt::format("{}, {}", a.text, b.text));
    }
    const Infix infix = is_plain ? plain_division(node.op) : infix_of(node.op);
    KILN_CHECK(infix.binds > 0);
    const bool may_wrap = node.type.element == written(node.type.element);
    if (may_wrap && wraps_by_cast(node.op, type)) {
      return cast_to(type, {fmt::format("(unsigned){} {} (unsigned){}", inside(a, kUnary),
                                        infix.text, inside(b, kUnary)),
                            infix.binds});
    }
    const Text result{
        fmt::format("{} {} {}", inside(a, infix.binds), infix.text, inside(b, infix.binds + 1)),
        infix.binds};
    return is_narrow(node.type.element) ? cast_to(type, result) : result;
  }

  /// As arithmetic has it.
  Text operand(const Expr& expr) {
    const DType type = expr->type.element;
    const FloatImm* number = as<FloatImm>(expr);
    if (number == nullptr || !is_small_float(type)) return widened(type, (*this)(expr));
    return float_literal(DType::Float32, round_to(type, number->value));
  }

  Text of(const ir::Call& node) {
    if (const Expr exponent = find_flushed_power(node))
      return call("kiln_flushed_power", (*this)(exponent).text);
    const DType type = node.args[0]->type.element;
    if (node.op == Operator::BitsOf || language::type_of_bits(node.op)) {
      return call(fmt::format("kiln_bits<{}>", cuda_type(node.type.element)),
                  (*this)(node.args[0]).text);
    }
    switch (node.op) {
      case Operator::Select:
      case Operator::IfThenElse:
        return {
            fmt::format("{} ? {} : {}", inside((*this)(node.args[0]), kOr),
                        inside((*this)(node.args[1]), kOr), inside((*this)(node.args[2]), kChoice)),
            kChoice};
      case Operator::Not: return {"!" + inside((*this)(node.args[0]), kUnary), kUnary};
      case Operator::BitNot:
        if (type == DType::Bool) return {"!" + inside((*this)(node.args[0]), kUnary), kUnary};
        return cast_to(type, {"~" + inside((*this)(node.args[0]), kUnary), kUnary});
      case Operator::PopCount:
      case Operator::Clz: return counted(node, type);
      default: break;
    }
    if (!is_small_float(type)) return is_float(type) ? of_floats(node, type) : of_ints(node, type);
    if (node.op == Operator::NextAfter) {
      return call(fmt::format("kiln_nextafter<{}>", cuda_type(type)),
                  fmt::format("{}, {}", (*this)(node.args[0]).text, (*this)(node.args[1]).text));
    }
    const Text result = of_floats(node, DType::Float32);
    return node.type.element == type ? rounded(type, result) : result;
  }

  Text of_ints(const ir::Call& node, DType type) {
    const Text a = (*this)(node.args[0]);
    const Text negated = cast_to(
        type, {fmt::format("(0{} - {})", bits_of(type) == 64 ? "ull" : "u",
                           cast_text(bits_of(type) == 64 ? "unsigned long long" : "unsigned", a)),
               kPrimary});
    if (node.op == Operator::Negative) return negated;
    if (node.op == Operator::Pow) {
      return call(fmt::format("kiln_pow<{}>", cuda_type(type)),
                  fmt::format("{}, {}", a.text, (*this)(node.args[1]).text));
    }
    KILN_CHECK(node.op == Operator::Abs);
    if (is_unsigned_int(type)) return a;
    return {fmt::format("{} < 0 ? {} : {}", inside(a, kRelation + 1), negated.text, a.text),
            kChoice};
  }

  static std::string cast_text(std::string_view type, const Text& value) {
    return fmt::format("({}){}", type, inside(value, kUnary));
  }

  Text counted(const ir::Call& node, DType type) {
    const Text a = (*this)(node.args[0]);
    const int bits = bits_of(type);
    const bool is_long = bits == 64;
    const std::string_view same_width = bits == 8    ? "unsigned char"
                                        : bits == 16 ? "unsigned short"
                                        : is_long    ? "unsigned long long"
                                                     : "unsigned";
    const std::string operand = cast_text(same_width, a);
    if (node.op == Operator::PopCount) {
      return cast_to(type, call(is_long ? "__popcll" : "__popc", operand));
    }
    const Text zeros = call(is_long ? "__clzll" : "__clz", operand);
    if (bits >= 32) return cast_to(type, zeros);
    return cast_to(type, {fmt::format("{} - {}", zeros.text, 32 - bits), kAdd});
  }

  Text of_floats(const ir::Call& node, DType type) {
    const Text a = operand(node.args[0]);
    const std::string_view suffix = type == DType::Float64 ? "" : "f";
    const std::string one = type == DType::Float64 ? "1.0" : "1.0f";
    switch (node.op) {
      case Operator::Negative: return {"-" + inside(a, kUnary + 1), kUnary};
      case Operator::Rsqrt: return {fmt::format("{} / ::sqrt{}({})", one, suffix, a.text), kMul};
      case Operator::Sigmoid:
        return {fmt::format("{0} / ({0} + ::exp{1}(-{2}))", one, suffix, inside(a, kUnary + 1)),
                kMul};
      case Operator::Ldexp:
        return call(fmt::format("::ldexp{}", suffix),
                    fmt::format("{}, kiln_to_int<int, {}>({}, (-2147483647 - 1), 2147483647)",
                                a.text, cuda_type(type), operand(node.args[1]).text));
      case Operator::Tf32: return type == DType::Float32 ? call("kiln_tf32", a.text) : a;
      case Operator::IsNan: return call("::isnan", a.text);
      case Operator::IsInf: return call("::isinf", a.text);
      case Operator::IsFinite: return call("::isfinite", a.text);
      default: break;
    }
    std::string args = a.text;
    for (size_t i = 1; i < node.args.size(); ++i)
      args += ", " + operand(node.args[i]).text;
    return call(fmt::format("::{}{}", c_function(node.op), suffix), args);
  }

  Text of(const Cast& node) {
    const DType to = written(node.type.element);
    const DType given = written(node.value->type.element);
    if (given == to) return (*this)(node.value);
    const bool is_widened = is_small_float(given);
    const DType from = is_widened ? DType::Float32 : given;
    const Text value = operand(node.value);
    if (from == to) return value;
    if (is_small_float(to)) {
      // Of most integers a double has every bit.
      const bool is_exact = is_float(from) || bits_of(from) <= 16;
      return rounded(to, is_exact ? is_float(from) ? value : cast_to(DType::Float32, value)
                                  : cast_to(DType::Float64, value));
    }
    if (to == DType::Bool) return {fmt::format("{} != 0", inside(value, kEquality)), kEquality};
    if (!is_float(from) || is_float(to)) return cast_to(to, value);

    const int bits = bits_of(to) - (is_signed_int(to) ? 1 : 0);
    const int64_t largest = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    const int64_t smallest = is_signed_int(to) ? -largest - 1 : 0;
    return call(fmt::format("kiln_to_int<{}, {}>", cuda_type(to), cuda_type(from)),
                fmt::format("{}, {}, {}", value.text, int_literal(to, smallest).text,
                            int_literal(to, largest).text));
  }

  Text of(const Load& load) {
    const Text place{cuda_element(load.buffer, load.indices[0], scope_)};
    if (!load.predicate) return place;
    const DType type = load.buffer->type;
    const Text zero = is_small_float(type) ? float_literal(type, 0) : cast_to(type, {"0"});
    return {
        fmt::format("{} ? {} : {}", inside((*this)(load.predicate), kOr), place.text, zero.text),
        kChoice};
  }

  // What only other targets or earlier passes know.
  template <typename T>
  Text of(const T&) {
    check_failed("an expression of one lane", __FILE__, __LINE__);
  }

  const CudaScope& scope_;
  CudaNames& names_;
  const bool is_narrow_;
  const std::span<const KnownValue> known_;
};

}  // namespace

std::string_view cuda_type(DType type) {
  switch (type) {
    case DType::Bool: return "bool";
    case DType::Int8: return "signed char";
    case DType::Int16: return "short";
    case DType::Int32: return "int";
    case DType::Int64: return "long long";
    case DType::UInt8: return "unsigned char";
    case DType::UInt16: return "unsigned short";
    case DType::UInt32: return "unsigned";
    case DType::UInt64: return "unsigned long long";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Float16: return "kiln_float16";
    case DType::BFloat16: return "kiln_bfloat16";
    case DType::Float8E4M3FN: return "kiln_float8_e4m3fn";
    case DType::Float8E5M2: return "kiln_float8_e5m2";
  }
  check_failed("a type of CUDA C", __FILE__, __LINE__);
}

std::string cuda_expr(const Expr& expr, const CudaScope& scope) {
  return Expression(scope)(expr).text;
}

CudaPlace cuda_place(const BufferRef& buffer, const Expr& element, const CudaScope& scope) {
  const std::string& name = scope.names[buffer];
  if (buffer->swizzle == 0) return {fmt::format("{}[{}]", name, cuda_expr(element, scope))};
  static const std::vector<LoopAround> kNone;
  const Swizzle swizzle = swizzle_of(*buffer);
  const SwizzledPlace place =
      swizzled_place(*buffer, element, scope.loops != nullptr ? *scope.loops : kNone);
  return {fmt::format("kiln_swizzled<{}, {}>({}, {}, {})[{}]", swizzle.from, swizzle.to, name,
                      cuda_expr(place.own, scope), cuda_expr(place.constant, scope),
                      cuda_expr(place.high, scope)),
          place.behind};
}

std::string cuda_element(const BufferRef& buffer, const Expr& element, const CudaScope& scope) {
  CudaPlace place = cuda_place(buffer, element, scope);
  if (place.behind == 0) return place.text;
  place.text.insert(place.text.size() - 1, fmt::format(" + {}", place.behind));
  return place.text;
}

}  // namespace kiln::codegen
