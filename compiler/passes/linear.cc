#include "compiler/passes/linear.h"

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {

using namespace ir;

std::optional<int64_t> stride_of(const Expr& expr, const VarRef& var) {
  if (expr.get() == var.get()) return 1;
  if (!uses_var(expr, var)) return 0;
  const auto* node = as<Binary>(expr);
  if (node == nullptr) return std::nullopt;

  const std::optional<int64_t> a = stride_of(node->a, var);
  const std::optional<int64_t> b = stride_of(node->b, var);
  if (!a || !b) return std::nullopt;
  int64_t result = 0;
  switch (node->op) {
    case Operator::Add:
      if (__builtin_add_overflow(*a, *b, &result)) return std::nullopt;
      return result;
    case Operator::Sub:
      if (__builtin_sub_overflow(*a, *b, &result)) return std::nullopt;
      return result;
    case Operator::Mul: {
      const std::optional<int64_t> factor = as_const_int(*a == 0 ? node->a : node->b);
      if (!factor || __builtin_mul_overflow(*a == 0 ? *b : *a, *factor, &result)) {
        return std::nullopt;
      }
      return result;
    }
    default: return std::nullopt;
  }
}

}  // namespace kiln::passes
