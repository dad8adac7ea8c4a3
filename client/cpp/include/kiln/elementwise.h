#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <kiln/definition.h>

/// Arithmetic of whole tensors, element by element and with numpy's broadcasting: `A * 2 + B` is a
/// tensor, as is `exp(A)` (kiln/intrinsics.h). Inside the body of a compute, elements are meant:
/// `A(i, j) * 2`.
namespace kiln {
inline namespace client {

namespace detail {

template <typename T>
concept Number = std::convertible_to<const T&, Expr> && !std::derived_from<T, Axis>;

/// A tensor or a number, and the line where it stands.
struct Operand {
  template <typename T>
  requires(Number<T> || std::convertible_to<const T&, Tensor>)
      Operand(const T& value, SourceLocation where = SourceLocation::current())
      : value(value), where(where) {}
  Given value;
  SourceLocation where;
};
/// The same of a number alone.
struct NumberOperand {
  template <Number T>
  NumberOperand(const T& value, SourceLocation where = SourceLocation::current())
      : value(Expr(value)), where(where) {}
  Given value;
  SourceLocation where;
};

/// The operator of that spelling on elements at every position. Throws InvalidArgument BROADCAST.
Tensor elementwise(std::string_view spelling, std::vector<Given> operands, SourceLocation where);

}  // namespace detail

#define KILN_BINARY(OPERATOR, SPELLING)                                              \
  inline Tensor operator OPERATOR(const Tensor& a, const detail::Operand& b) {       \
    return detail::elementwise(SPELLING, {a, b.value}, b.where);                     \
  }                                                                                  \
  inline Tensor operator OPERATOR(const detail::NumberOperand& a, const Tensor& b) { \
    return detail::elementwise(SPELLING, {a.value, b}, a.where);                     \
  }
KILN_BINARY(+, "add")
KILN_BINARY(-, "subtract")
KILN_BINARY(*, "multiply")
KILN_BINARY(/, "divide")
KILN_BINARY(<, "less")
KILN_BINARY(<=, "less_equal")
KILN_BINARY(>, "greater")
KILN_BINARY(>=, "greater_equal")
#undef KILN_BINARY

inline Tensor operator-(const Tensor& a) {
  return detail::elementwise("negative", {a}, SourceLocation::current());
}

}  // namespace client
}  // namespace kiln
