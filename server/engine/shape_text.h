#pragma once

#include <span>
#include <string>

#include "runtime/core/size_expr.h"

namespace kiln::server {

/// A dimension as a user writes it, over the sizes' names: "n", "m + 1", "floordiv(n, 2)*32".
std::string text_of(const SizeExpr& expr, std::span<const std::string> sizes);

}  // namespace kiln::server
