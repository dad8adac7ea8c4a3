#pragma once

#include <optional>

#include "compiler/ir/stmt.h"

/// Short spellings for making expressions. They fold constants of index arithmetic and the plainest
/// identities (x + 0, x * 1), so passes do not have to; simplify does the rest.
namespace kiln::ir {

Expr index(int64_t value);
Expr constant(Type type, double value);  // of any type
Expr boolean(bool value);

/// An operator of the table, of as many operands as it has: a Binary, where it is one, or a Call.
Expr operation(Operator op, std::vector<Expr> operands);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, int64_t b);
Expr operator-(const Expr& a, int64_t b);
Expr operator*(const Expr& a, int64_t b);
Expr floordiv(const Expr& a, const Expr& b);
Expr floormod(const Expr& a, const Expr& b);
/// floordiv(a + b - 1, b)
Expr ceildiv(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr less(const Expr& a, const Expr& b);
Expr less_equal(const Expr& a, const Expr& b);
Expr equal(const Expr& a, const Expr& b);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);

/// The value of an integer or bool constant; nothing for any other expression.
std::optional<int64_t> as_const_int(const Expr& expr);
/// Whether it is an integer or bool constant of this value.
bool is_const(const Expr& expr, int64_t value);

/// Extents whose product is how many elements a buffer takes up, those between rows that are spread
/// out too, and those that others may be exchanged with.
std::vector<Expr> extents_in_memory(const Buffer& buffer);

/// The identity of a combiner, and `a op b`.
Expr identity_of(Combiner combiner, DType type);
Expr identity_of(const Combination& how, DType type);
Expr combine(Combiner combiner, const Expr& a, const Expr& b);

}  // namespace kiln::ir
