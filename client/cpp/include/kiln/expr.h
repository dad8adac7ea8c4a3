#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/source_location.h>
#include <kiln/types.h>

namespace kiln {
inline namespace client {

namespace detail {
struct ExprNode;
struct AxisNode;
struct StageNode;
}  // namespace detail

/// A value inside a definition: a size, an index, an element, a constant, or what operators make of
/// them. A cheap handle on an immutable node.
///
/// Operands of different types are brought to one type by casts, as the Python client does: a
/// number written in the program takes the type of what it meets, integers become the floating
/// type, and the wider type wins.
class Expr {
 public:
  /// A number of the program, which takes the type of the other operand.
  template <std::integral T>
  Expr(T value) : Expr(integer_literal(static_cast<std::int64_t>(value), std::same_as<T, bool>)) {}
  template <std::floating_point T>
  Expr(T value) : Expr(floating_literal(static_cast<double>(value))) {}

  DType dtype() const;
  /// The expression in `type`.
  Expr astype(DType type) const;

  explicit Expr(std::shared_ptr<const detail::ExprNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const detail::ExprNode>& node() const { return node_; }

 private:
  static Expr integer_literal(std::int64_t value, bool is_bool);
  static Expr floating_literal(double value);

  std::shared_ptr<const detail::ExprNode> node_;
};

/// A size that is known at the call. Always int64, and another variable each time it is made.
Expr var(std::string name = "n");
/// A size that is promised to be 0 or more.
Expr size_var(std::string name = "n");
/// A constant of a given type, which it keeps.
Expr constant(std::int64_t value, DType type);
Expr constant(double value, DType type);
inline Expr constant(int value, DType type) {
  return constant(static_cast<std::int64_t>(value), type);
}
Expr cast(const Expr& value, DType type);
/// The infinity of a floating type (nan of float8_e4m3fn, which has none).
Expr infinity(DType type = float32);
/// The number of another type, as wide, with the same bits.
Expr reinterpret(const Expr& value, DType type);
/// The largest and smallest finite value of a type.
Expr max_value(DType type);
Expr min_value(DType type);

namespace detail {
/// An operator of the operator table, applied to operands that are promoted first.
Expr apply(std::string_view spelling, std::initializer_list<Expr> operands);
}  // namespace detail

inline Expr operator+(const Expr& a, const Expr& b) { return detail::apply("add", {a, b}); }
inline Expr operator-(const Expr& a, const Expr& b) { return detail::apply("subtract", {a, b}); }
inline Expr operator*(const Expr& a, const Expr& b) { return detail::apply("multiply", {a, b}); }
/// Of floating numbers; integers are divided by floordiv or truncdiv.
inline Expr operator/(const Expr& a, const Expr& b) { return detail::apply("divide", {a, b}); }
inline Expr operator-(const Expr& a) { return detail::apply("negative", {a}); }
inline Expr& operator+=(Expr& a, const Expr& b) { return a = a + b; }
inline Expr& operator-=(Expr& a, const Expr& b) { return a = a - b; }
inline Expr& operator*=(Expr& a, const Expr& b) { return a = a * b; }
inline Expr& operator/=(Expr& a, const Expr& b) { return a = a / b; }
inline Expr operator==(const Expr& a, const Expr& b) { return detail::apply("equal", {a, b}); }
inline Expr operator!=(const Expr& a, const Expr& b) { return detail::apply("not_equal", {a, b}); }
inline Expr operator<(const Expr& a, const Expr& b) { return detail::apply("less", {a, b}); }
inline Expr operator<=(const Expr& a, const Expr& b) { return detail::apply("less_equal", {a, b}); }
inline Expr operator>(const Expr& a, const Expr& b) { return detail::apply("greater", {a, b}); }
inline Expr operator>=(const Expr& a, const Expr& b) {
  return detail::apply("greater_equal", {a, b});
}
/// Both sides are part of the definition: nothing is cut short.
inline Expr operator&&(const Expr& a, const Expr& b) {
  return detail::apply("logical_and", {a, b});
}
inline Expr operator||(const Expr& a, const Expr& b) { return detail::apply("logical_or", {a, b}); }
inline Expr operator!(const Expr& a) { return detail::apply("logical_not", {a}); }
inline Expr operator&(const Expr& a, const Expr& b) { return detail::apply("bitwise_and", {a, b}); }
inline Expr operator|(const Expr& a, const Expr& b) { return detail::apply("bitwise_or", {a, b}); }
inline Expr operator^(const Expr& a, const Expr& b) { return detail::apply("bitwise_xor", {a, b}); }
inline Expr operator~(const Expr& a) { return detail::apply("bitwise_not", {a}); }
inline Expr operator<<(const Expr& a, const Expr& b) { return detail::apply("shift_left", {a, b}); }
inline Expr operator>>(const Expr& a, const Expr& b) {
  return detail::apply("shift_right", {a, b});
}

/// An axis: of a stage, of a reduction, or one that a schedule step made.
class Axis {
 public:
  const std::string& name() const;

  explicit Axis(std::shared_ptr<const detail::AxisNode> node) : node_(std::move(node)) {}
  const std::shared_ptr<const detail::AxisNode>& node() const { return node_; }

 private:
  std::shared_ptr<const detail::AxisNode> node_;
};

/// An axis that a reduction runs over; inside its body it is an index.
class ReduceAxis : public Axis {
 public:
  using Axis::Axis;
  operator Expr() const;
};

/// Runs from `begin` to `end` - 1. The bounds may depend on axes further out.
ReduceAxis reduce_axis(const Expr& begin, const Expr& end, std::string name = "k",
                       SourceLocation where = SourceLocation::current());
inline ReduceAxis reduce_axis(const Expr& end, std::string name = "k",
                              SourceLocation where = SourceLocation::current()) {
  return reduce_axis(0, end, std::move(name), where);
}

}  // namespace client
}  // namespace kiln
