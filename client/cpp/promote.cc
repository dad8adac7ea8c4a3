// Type promotion, close to torch's: numbers of the program adapt, an integer takes the floating
// type beside it, and the wider of two types of one kind wins.
//
//   float16 + 1.0  ->  float16     int32 + float16  ->  float16     bfloat16 + float16  ->  float32
#include "client/cpp/promote.h"

#include <algorithm>
#include <optional>
#include <span>

#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

bool is_float(DType type) { return border::is_float(static_cast<int>(type)); }
bool is_signed(DType type) { return border::is_signed_int(static_cast<int>(type)); }

DType wider(DType a, DType b) { return size_of(a) >= size_of(b) ? a : b; }

DType signed_of_bytes(std::size_t bytes) {
  switch (bytes) {
    case 1: return int8;
    case 2: return int16;
    case 4: return int32;
    default: return int64;
  }
}

DType common_float(DType a, DType b) {
  if (size_of(a) != size_of(b)) return wider(a, b);
  return float32;  // two formats of one size
}

DType common_integer(DType a, DType b) {
  if (is_signed(a) == is_signed(b)) return wider(a, b);
  const DType signed_type = is_signed(a) ? a : b;
  const DType unsigned_type = is_signed(a) ? b : a;
  if (size_of(signed_type) > size_of(unsigned_type)) return signed_type;
  return signed_of_bytes(2 * size_of(unsigned_type));
}

DType common(DType a, DType b) {
  if (a == b || b == boolean) return a;
  if (a == boolean) return b;
  if (is_float(a) && is_float(b)) return common_float(a, b);
  if (is_float(a) || is_float(b)) return is_float(a) ? a : b;
  return common_integer(a, b);
}

DType common_type(std::span<const Expr> exprs) {
  std::optional<DType> type;
  bool integers = false;
  bool floats = false;
  for (const Expr& expr : exprs) {
    if (is_literal(expr)) {
      (is_float(expr.dtype()) ? floats : integers) = true;
    } else {
      type = type ? common(*type, expr.dtype()) : expr.dtype();
    }
  }
  if (floats && !(type && is_float(*type))) return float32;
  if (integers && (!type || *type == boolean)) return int32;
  return *type;
}

void cast_all(std::span<Expr> exprs, DType type) {
  for (Expr& expr : exprs)
    expr = cast(expr, type);
}

}  // namespace

std::vector<Expr> promote(border::Operands operands, std::vector<Expr> exprs) {
  std::span<Expr> numbers(exprs);
  switch (operands) {
    case border::Operands::AsTheyAre:
      for (Expr& expr : exprs)
        expr = cast(expr, expr.dtype());
      return exprs;
    case border::Operands::Choose:
      exprs[0] = cast(exprs[0], exprs[0].dtype());
      cast_all(numbers.subspan(1), common_type(numbers.subspan(1)));
      return exprs;
    case border::Operands::Same: cast_all(numbers, common_type(numbers)); return exprs;
    case border::Operands::Number: {
      const DType type = common_type(numbers);
      cast_all(numbers, type == boolean ? int32 : type);
      return exprs;
    }
    case border::Operands::Float: {
      const DType type = common_type(numbers);
      cast_all(numbers, is_float(type) ? type : float32);
      return exprs;
    }
  }
  return exprs;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
