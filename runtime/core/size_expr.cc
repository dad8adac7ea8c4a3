// Evaluates and describes size expressions on a stack. Unlike indices in loops, sizes are checked
// for overflow in each operation: they come from callers, and decide how much memory is asked for.
#include "runtime/core/size_expr.h"

#include <algorithm>
#include <limits>

#include "runtime/core/error.h"

namespace kiln {
namespace {

using Op = SizeExpr::Op;

[[noreturn]] void fail_overflow(int64_t a, int64_t b) {
  fail(ErrorKind::ResourceExhausted, "SIZE_OVERFLOW",
       "a size computed from {} and {} is past the range of int64", a, b);
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) {
    fail(ErrorKind::InvalidArgument, "SIZE_DIVISION", "a size divides {} by zero", a);
  }
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) fail_overflow(a, b);
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;  // the division would overflow for the smallest value
  return a - floor_div(a, b) * b;
}

int64_t apply(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::Add:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow(a, b);
      return result;
    case Op::Sub:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow(a, b);
      return result;
    case Op::Mul:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow(a, b);
      return result;
    case Op::FloorDiv: return floor_div(a, b);
    case Op::FloorMod: return floor_mod(a, b);
    case Op::Min: return std::min(a, b);
    case Op::Max: return std::max(a, b);
    case Op::Equal: return a == b ? 1 : 0;
    case Op::Less: return a < b ? 1 : 0;
    case Op::And: return a != 0 && b != 0 ? 1 : 0;
    case Op::Or: return a != 0 || b != 0 ? 1 : 0;
    case Op::Constant:
    case Op::Scalar:
    case Op::Not: break;
  }
  KILN_CHECK(!"a binary operator of a size expression");
}

/// How tightly an operator binds in text; higher is tighter.
int precedence_of(Op op) {
  switch (op) {
    case Op::Or: return 1;
    case Op::And: return 2;
    case Op::Equal:
    case Op::Less: return 3;
    case Op::Add:
    case Op::Sub: return 4;
    case Op::Mul: return 5;
    default: return 6;
  }
}

/// A part of the description, and how tightly its operator binds.
struct Piece {
  std::string text;
  int precedence;
};

std::string in_parentheses(const Piece& piece, int at_least) {
  return piece.precedence < at_least ? "(" + piece.text + ")" : piece.text;
}

Piece describe_binary(Op op, const Piece& a, const Piece& b) {
  const int precedence = precedence_of(op);
  const auto infix = [&](std::string_view sign) {
    return Piece{
        in_parentheses(a, precedence) + std::string(sign) + in_parentheses(b, precedence + 1),
        precedence};
  };
  const auto function = [&](std::string_view name) {
    return Piece{fmt::format("{}({}, {})", name, a.text, b.text), precedence};
  };
  switch (op) {
    case Op::Add: return infix(" + ");
    case Op::Sub: return infix(" - ");
    case Op::Mul: return infix("*");
    case Op::FloorDiv: return function("floordiv");
    case Op::FloorMod: return function("floormod");
    case Op::Min: return function("min");
    case Op::Max: return function("max");
    case Op::Equal: return infix(" == ");
    case Op::Less: return infix(" < ");
    case Op::And: return infix(" && ");
    case Op::Or: return infix(" || ");
    default: break;
  }
  KILN_CHECK(!"a binary operator of a size expression");
}

}  // namespace

SizeExpr SizeExpr::constant(int64_t value) { return {{{Op::Constant, value}}}; }
SizeExpr SizeExpr::scalar(int64_t index) { return {{{Op::Scalar, index}}}; }

SizeExpr SizeExpr::binary(Op op, const SizeExpr& a, const SizeExpr& b) {
  SizeExpr result = a;
  result.nodes.insert(result.nodes.end(), b.nodes.begin(), b.nodes.end());
  result.nodes.push_back({op});
  return result;
}

SizeExpr SizeExpr::both(const SizeExpr& a, const SizeExpr& b) {
  const SizeExpr always = constant(1);
  if (a == always) return b;
  return b == always ? a : binary(Op::And, a, b);
}

SizeExpr SizeExpr::negation(const SizeExpr& a) {
  SizeExpr result = a;
  result.nodes.push_back({Op::Not});
  return result;
}

// Postfix: operands before their operator, so that one pass over the nodes is enough.
int64_t SizeExpr::evaluate(std::span<const int64_t> scalars) const {
  if (nodes.size() == 1 && nodes.front().op == Op::Constant) return nodes.front().operand;
  std::vector<int64_t> stack;
  stack.reserve(nodes.size());
  for (const Node& node : nodes) {
    if (node.op == Op::Constant) {
      stack.push_back(node.operand);
    } else if (node.op == Op::Scalar) {
      KILN_CHECK(node.operand >= 0 && node.operand < static_cast<int64_t>(scalars.size()));
      stack.push_back(scalars[static_cast<size_t>(node.operand)]);
    } else if (node.op == Op::Not) {
      KILN_CHECK(!stack.empty());
      stack.back() = stack.back() == 0 ? 1 : 0;
    } else {
      KILN_CHECK(stack.size() >= 2);
      const int64_t b = stack.back();
      stack.pop_back();
      stack.back() = apply(node.op, stack.back(), b);
    }
  }
  KILN_CHECK(stack.size() == 1);
  return stack.back();
}

bool SizeExpr::is_well_formed(int64_t scalar_count) const {
  int64_t depth = 0;
  for (const Node& node : nodes) {
    switch (node.op) {
      case Op::Scalar:
        if (node.operand < 0 || node.operand >= scalar_count) return false;
        [[fallthrough]];
      case Op::Constant: ++depth; break;
      case Op::Not:
        if (depth < 1) return false;
        break;
      default:
        if (node.op > Op::Not || depth < 2) return false;
        --depth;
    }
  }
  return depth == 1;
}

std::string SizeExpr::describe(std::span<const std::string> names) const {
  std::vector<Piece> stack;
  for (const Node& node : nodes) {
    if (node.op == Op::Constant) {
      stack.push_back({std::to_string(node.operand), node.operand < 0 ? 0 : 7});
    } else if (node.op == Op::Scalar) {
      const auto index = static_cast<size_t>(node.operand);
      stack.push_back({index < names.size() ? names[index] : fmt::format("size{}", index), 7});
    } else if (node.op == Op::Not) {
      KILN_CHECK(!stack.empty());
      stack.back() = {"!" + in_parentheses(stack.back(), 6), 6};
    } else {
      KILN_CHECK(stack.size() >= 2);
      const Piece b = std::move(stack.back());
      stack.pop_back();
      stack.back() = describe_binary(node.op, stack.back(), b);
    }
  }
  KILN_CHECK(stack.size() == 1);
  return stack.back().text;
}

}  // namespace kiln
