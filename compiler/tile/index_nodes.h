// What an index of a definition may be, for the passes that rewrite indices before a form is looked
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "compiler/language/definition.h"

namespace kiln::tile {

/// Of a number that is written as one; nothing of any other expression.
inline std::optional<int64_t> written_number(const language::Definition& definition,
                                             language::ExprId expr) {
  const auto* number = std::get_if<language::IntegerConstant>(&definition.expressions[expr].node);
  return number != nullptr ? std::optional(number->value) : std::nullopt;
}

inline bool is_use_of(const language::Definition& definition, language::ExprId expr,
                      language::AxisId axis) {
  const auto* use = std::get_if<language::AxisUse>(&definition.expressions[expr].node);
  return use != nullptr && use->axis == axis;
}

}  // namespace kiln::tile
