// Size expressions, which the host evaluates for a launch, as instructions of an entry.
#include "compiler/tile/bytecode_sizes.h"

#include <vector>

#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using Op = SizeExpr::Op;

Value combined(CodeWriter& code, Op op, Value a, Value b) {
  switch (op) {
    case Op::Add: return code.arithmetic(kAddI, DType::Int64, {kNoWrap}, a, b);
    case Op::Mul: return code.arithmetic(kMulI, DType::Int64, {kNoWrap}, a, b);
    case Op::FloorDiv: return code.arithmetic(kDivI, DType::Int64, {kSigned, kToZero}, a, b);
    case Op::FloorMod: return code.arithmetic(kRemI, DType::Int64, {kSigned}, a, b);
    case Op::Equal: {
      const Value is_equal =
          code.plain(kCmpI, code.scalar(DType::Bool), {kIsEqual, kSigned}, {a, b});
      return code.plain(kSelect, code.scalar(DType::Int64), {},
                        {is_equal, code.integer(DType::Int64, 1), code.integer(DType::Int64, 0)});
    }
    default: KILN_CHECK(!"an operator of what tensors take");
  }
}

}  // namespace

Value write_size(CodeWriter& code, const SizeExpr& expr, std::span<const Value> sizes) {
  std::vector<Value> stack;
  for (const SizeExpr::Node& node : expr.nodes) {
    if (node.op == Op::Constant) {
      stack.push_back(code.integer(DType::Int64, node.operand));
    } else if (node.op == Op::Scalar) {
      stack.push_back(sizes[static_cast<size_t>(node.operand)]);
    } else {
      const Value b = stack.back();
      stack.pop_back();
      stack.back() = combined(code, node.op, stack.back(), b);
    }
  }
  KILN_CHECK(stack.size() == 1);
  return stack.back();
}

}  // namespace kiln::tile
