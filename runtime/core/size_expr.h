#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln {

/// The largest size, and the most iterations of a loop: what splits and vectors make of it stays
/// far below the end of int64, and no loop of so many ends in a day.
inline constexpr int64_t kLargestSize = int64_t{1} << 47;

/// An int64 expression over the scalars of a call (sizes, then strides), in postfix order.
///
/// What the runtime needs to know of the compiler's expressions: grid extents, workspace bytes,
/// conditions of variants. A condition is 1 or 0.
struct SizeExpr {
  enum class Op : uint8_t {
    Constant,  // operand: the value
    Scalar,    // operand: position among the scalars
    Add,
    Sub,
    Mul,
    FloorDiv,
    FloorMod,
    Min,
    Max,
    Equal,
    Less,
    And,
    Or,
    Not,
  };
  struct Node {
    Op op;
    int64_t operand = 0;
    bool operator==(const Node&) const = default;
  };

  std::vector<Node> nodes;

  static SizeExpr constant(int64_t value);
  static SizeExpr scalar(int64_t index);
  /// `a op b`
  static SizeExpr binary(Op op, const SizeExpr& a, const SizeExpr& b);
  /// The conditions `a` and `b` together, without one that is always 1.
  static SizeExpr both(const SizeExpr& a, const SizeExpr& b);
  /// 1 where `a` is 0, else 0.
  static SizeExpr negation(const SizeExpr& a);

  /// The value for these scalars. Throws ResourceExhausted SIZE_OVERFLOW past the range of int64,
  /// InvalidArgument SIZE_DIVISION on a division by zero, Internal on a malformed expression.
  int64_t evaluate(std::span<const int64_t> scalars) const;

  /// Whether evaluate() and describe() can read it, given this many scalars.
  bool is_well_formed(int64_t scalar_count) const;

  /// "floordiv(n + 31, 32)", as the text form writes it; `names` of the scalars.
  std::string describe(std::span<const std::string> names) const;

  bool operator==(const SizeExpr&) const = default;
};

}  // namespace kiln
