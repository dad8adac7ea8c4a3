#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "compiler/language/definition.h"

namespace kiln::language {

struct TextOptions {
  /// Constants carry their type where a reader of the text could not tell it: "float16(0.5)".
  bool typed = false;
  /// The type that the place of the expression asks for.
  std::optional<DType> expected;
  /// What the parameters are called in an expression of a reducer.
  std::span<const std::string> parameters = {};
  /// The expression stands for all results of the reduction that it is.
  bool whole_tuple = false;
  /// Longer texts end in "...": shared parts are spelled out each time.
  size_t max_bytes = 200;
};

/// An expression in the user's names, as a kernel file has it: "floordiv(m + 1, 2)".
std::string text_of(const Definition& definition, const SourceMap& names, ExprId expr,
                    const TextOptions& options = {});

/// "(m, n)", "(n,)", "()"
std::string shape_text(const Definition& definition, const SourceMap& names,
                       std::span<const ExprId> shape);

/// How tightly an infix operator's text binds; operands that bind less get parentheses. 0 for
/// operators that are written as functions.
int precedence_of(Operator op);

/// How tightly "-", "!" and "~" before an operand bind.
constexpr int kUnaryPrecedence = 10;

}  // namespace kiln::language
