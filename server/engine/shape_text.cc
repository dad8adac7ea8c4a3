// Prints postfix size expressions as infix ones, with brackets where precedence wants them.
//
//   m, 1, Add, 32, Mul  ->  "(m + 1)*32"
#include "server/engine/shape_text.h"

#include <vector>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

enum Strength { kOr, kAnd, kCompare, kSum, kProduct, kAtom };

struct Part {
  std::string text;
  Strength strength;
};

std::string wrapped(const Part& part, Strength least) {
  return part.strength < least ? "(" + part.text + ")" : part.text;
}

Part infix(const Part& a, std::string_view op, const Part& b, Strength strength) {
  // The right operand is wrapped when equally strong: a - (b - c).
  const auto above = static_cast<Strength>(strength + 1);
  return {wrapped(a, strength) + std::string(op) + wrapped(b, above), strength};
}

Part call_part(std::string_view name, const Part& a, const Part& b) {
  return {fmt::format("{}({}, {})", name, a.text, b.text), kAtom};
}

Part binary(SizeExpr::Op op, const Part& a, const Part& b) {
  switch (op) {
    case SizeExpr::Op::Add: return infix(a, " + ", b, kSum);
    case SizeExpr::Op::Sub: return infix(a, " - ", b, kSum);
    case SizeExpr::Op::Mul: return infix(a, "*", b, kProduct);
    case SizeExpr::Op::FloorDiv: return call_part("floordiv", a, b);
    case SizeExpr::Op::FloorMod: return call_part("floormod", a, b);
    case SizeExpr::Op::Min: return call_part("min", a, b);
    case SizeExpr::Op::Max: return call_part("max", a, b);
    case SizeExpr::Op::Equal: return infix(a, " == ", b, kCompare);
    case SizeExpr::Op::Less: return infix(a, " < ", b, kCompare);
    case SizeExpr::Op::And: return infix(a, " && ", b, kAnd);
    case SizeExpr::Op::Or: return infix(a, " || ", b, kOr);
    default: break;
  }
  fail(ErrorKind::Internal, "SIZE_EXPR", "a size expression has an operator without a spelling");
}

}  // namespace

std::string text_of(const SizeExpr& expr, std::span<const std::string> sizes) {
  std::vector<Part> stack;
  const auto pop = [&] {
    KILN_CHECK(!stack.empty());
    Part part = std::move(stack.back());
    stack.pop_back();
    return part;
  };
  for (const SizeExpr::Node& node : expr.nodes) {
    if (node.op == SizeExpr::Op::Constant) {
      stack.push_back({std::to_string(node.operand), node.operand < 0 ? kSum : kAtom});
    } else if (node.op == SizeExpr::Op::Scalar) {
      KILN_CHECK(node.operand >= 0 && static_cast<size_t>(node.operand) < sizes.size());
      stack.push_back({sizes[static_cast<size_t>(node.operand)], kAtom});
    } else if (node.op == SizeExpr::Op::Not) {
      stack.push_back({"!" + wrapped(pop(), kAtom), kAtom});
    } else {
      const Part b = pop();
      const Part a = pop();
      stack.push_back(binary(node.op, a, b));
    }
  }
  KILN_CHECK(stack.size() == 1);
  return stack.front().text;
}

}  // namespace kiln::server
