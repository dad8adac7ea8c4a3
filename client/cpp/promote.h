#pragma once

#include <vector>

#include <kiln/expr.h>

#include "client/cpp/language_border.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The operands with the casts that an operator needs.
///
/// Numbers of the program take the type of the others (a floating one makes integers float32).
/// Among the rest a bool becomes the number's type, an integer the floating type, and the wider
/// type wins; two formats of one size become float32, and a signed with an unsigned integer the
/// signed type that holds both, at most int64. Functions of floating numbers take integers as
/// float32; arithmetic takes bools as int32.
std::vector<Expr> promote(border::Operands operands, std::vector<Expr> exprs);

}  // namespace detail
}  // namespace client
}  // namespace kiln
