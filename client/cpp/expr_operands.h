#pragma once

#include <vector>

#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The expressions that one is made of, in order: operands, indices of a read, bounds of the axes
/// of a reduction and then its parts.
std::vector<Expr> operands_of(const Expr& expr);

/// Whether two expressions are one, or are made alike of the same axes, tensors and numbers.
bool are_alike(const Expr& a, const Expr& b);

}  // namespace detail
}  // namespace client
}  // namespace kiln
