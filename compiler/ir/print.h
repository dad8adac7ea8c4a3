#pragma once

#include <string>
#include <unordered_map>

#include "compiler/ir/kernel.h"

namespace kiln::ir {

/// The lowered text (design, section 4). Repeated names get `_1`, `_2`.
std::string print(const Kernel& kernel);
std::string print(const Stmt& stmt);
std::string print(const Expr& expr);

/// The lowered text, and on which line of it, from 1, each statement begins.
struct PrintedKernel {
  std::string text;
  std::unordered_map<const Node*, int> lines;
};
PrintedKernel print_with_lines(const Kernel& kernel);

}  // namespace kiln::ir

template <>
struct fmt::formatter<kiln::ir::Expr> : fmt::formatter<std::string> {
  auto format(const kiln::ir::Expr& expr, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(kiln::ir::print(expr), context);
  }
};
