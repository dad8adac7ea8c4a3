#pragma once

#include <string>

#include "compiler/ir/kernel.h"

namespace kiln::ir {

/// The lowered text (design, section 4). Repeated names get `_1`, `_2`.
std::string print(const Kernel& kernel);
std::string print(const Stmt& stmt);
std::string print(const Expr& expr);

}  // namespace kiln::ir

template <>
struct fmt::formatter<kiln::ir::Expr> : fmt::formatter<std::string> {
  auto format(const kiln::ir::Expr& expr, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(kiln::ir::print(expr), context);
  }
};
