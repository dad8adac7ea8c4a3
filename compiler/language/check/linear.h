#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "compiler/language/definition.h"

namespace kiln::language {

/// An integer expression as constant + sum of coefficient * term. A term is a size, an axis, or a
/// part that is not linear, spelled out; equal spellings are equal values.
struct LinearForm {
  int64_t constant = 0;
  std::map<std::string, int64_t> terms;
  bool operator==(const LinearForm&) const = default;
};

/// Very large expressions are a term of their own.
LinearForm linear_form(const Definition& definition, ExprId expr);

/// a - b when that is a constant, whatever the sizes are.
std::optional<int64_t> constant_difference(const Definition& definition, ExprId a, ExprId b);

/// The value of an expression that no size or axis changes.
std::optional<int64_t> constant_value(const Definition& definition, ExprId expr);

/// The term of LinearForm that stands for an axis.
std::string linear_term(AxisId axis);

}  // namespace kiln::language
