// Which number divides an index, from the factors that stand in it: what is aligned, and to what.
#include "compiler/analysis/divisor.h"

#include <limits>
#include <numeric>

#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

int64_t divisor_of_operation(const ir::Binary& node) {
  const int64_t a = divisor_of(node.a);
  const int64_t b = divisor_of(node.b);
  switch (node.op) {
    case ir::Operator::Add:
    case ir::Operator::Sub:
    case ir::Operator::Min:
    case ir::Operator::Max:
    case ir::Operator::FloorMod: return std::gcd(a, b);
    case ir::Operator::Mul:
      // A factor of a product is enough where the product is too large.
      return a != 0 && b > std::numeric_limits<int64_t>::max() / a ? a : a * b;
    case ir::Operator::FloorDiv: {
      const std::optional<int64_t> by = ir::as_const_int(node.b);
      return by && *by > 0 && a % *by == 0 ? a / *by : 1;
    }
    default: return 1;
  }
}

}  // namespace

int64_t divisor_of(const ir::Expr& expr) {
  if (const std::optional<int64_t> value = ir::as_const_int(expr)) {
    return *value == std::numeric_limits<int64_t>::min() ? 1 : std::abs(*value);
  }
  const auto* node = ir::as<ir::Binary>(expr);
  return node != nullptr ? divisor_of_operation(*node) : 1;
}

}  // namespace kiln::analysis
