#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <kiln/tensor.h>

// Sizes that are known at the call: when two of them are surely the same.
namespace kiln {
inline namespace client {
namespace detail {

/// The constant a - b, or nothing where it depends on sizes.
std::optional<std::int64_t> difference(const Expr& a, const Expr& b);
inline bool is_same_size(const Expr& a, const Expr& b) { return difference(a, b) == 0; }
bool is_one(const Expr& size);

/// An operator of the table on operands that have types; without what changes nothing, such as
/// i * 1 and h + 0.
Expr folded(std::string_view spelling, std::span<const Expr> operands);

/// A size as a person writes it: "n", "m + 1", "32".
std::string written(const Expr& size);
/// "(m, n)", "(n,)", "()"
std::string written(const Shape& shape);

/// The shape that all stretch to, as numpy broadcasts; nothing when there is none.
std::optional<Shape> stretched(std::span<const Shape> shapes);

}  // namespace detail
}  // namespace client
}  // namespace kiln
