#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"

namespace kiln::predict {

/// Numbers for expressions of integers where sizes and loop variables have these values. A variable
/// without one is 0; what reads memory, or is a float, has none.
class Numbers {
 public:
  void set(const ir::VarRef& var, int64_t value) { values_[var] = value; }
  std::optional<int64_t> operator()(const ir::Expr& expr) const;

  /// How much the expression grows from the first to the second iteration of a loop over `var`.
  int64_t stride(const ir::Expr& expr, const ir::VarRef& var);

 private:
  std::optional<int64_t> of_operator(ir::Operator op, const std::vector<ir::Expr>& operands) const;

  std::unordered_map<ir::VarRef, int64_t> values_;
};

}  // namespace kiln::predict
