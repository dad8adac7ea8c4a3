// Keeps drawn expressions exact: each term carries a bound of its magnitude, and operands that
// could leave what the type holds exactly are clamped first. So any order of computing gives the
// same bits.
//
//   float16: a, b up to 1024;  add(a, b)  ->  a + b     a, b up to 2048  ->  clamped to 1024 first
//
// Where values are not whole, an error bound goes along (forward error analysis).
#include "tests/support/drawn_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kiln::testing {
namespace {

bool is_bool(const Term& term) { return term.type() == DType::Bool; }

/// Half a step of the type at 1.
double rounding_of(DType type) { return is_float(type) ? 1 / exact_limit(type) : 0; }

/// The result of an operation whose operands are off by `error`.
Values result_of(DType type, double bound, bool whole, double error) {
  if (!is_float(type)) return {type, std::min(bound, exact_limit(type)), true, 0};
  return {type, bound, whole, whole ? 0 : error + rounding_of(type) * bound};
}

std::string number(DType type, double value) {
  const auto whole = static_cast<int64_t>(value);
  const std::string digits = fmt::format("{}{}", whole, is_float(type) ? ".0" : "");
  return value < 0 ? fmt::format("({})", digits) : digits;
}

/// The largest number of the type, where limits of other types may be past it.
double largest_of(DType type) {
  switch (type) {
    case DType::Float16: return 65504;
    case DType::Float8E4M3FN: return 448;
    case DType::Float8E5M2: return 57344;
    default: return std::numeric_limits<double>::infinity();
  }
}

/// Operands of a sum of `count` products.
std::pair<Term, Term> factors(Term a, Term b, int count) {
  const double room = exact_limit(a.type()) / std::max(count, 1);
  if (!is_float(a.type()) || a.bound() * b.bound() <= room) return {a, b};
  if (a.bound() > b.bound()) {
    b = within(b, std::sqrt(room));
    return {within(a, room / std::max(b.bound(), 1.0)), b};
  }
  a = within(a, std::sqrt(room));
  return {a, within(b, room / std::max(a.bound(), 1.0))};
}

Term sum_or_difference(const Term& a, const Term& b, char sign) {
  if (is_bool(a))
    return {fmt::format("({} {} {})", a.text, sign == '+' ? "||" : "^", b.text), a.values};
  const double limit = exact_limit(a.type());
  const bool has_room = !is_float(a.type()) || a.bound() + b.bound() <= limit;
  const Term x = has_room ? a : within(a, limit / 2);
  const Term y = has_room ? b : within(b, limit / 2);
  const bool may_wrap = sign == '-' && is_unsigned_int(a.type());
  return {fmt::format("({} {} {})", x.text, sign, y.text),
          result_of(a.type(), may_wrap ? limit : x.bound() + y.bound(),
                    x.values.whole && y.values.whole, x.values.error + y.values.error)};
}

/// Minimum or maximum: exact whatever the operands are.
Term one_of(const Term& a, const Term& b, std::string_view name, std::string_view of_bools) {
  Values values = a.values;
  values.bound = std::max(a.bound(), b.bound());
  values.whole = a.values.whole && b.values.whole;
  values.error = std::max(a.values.error, b.values.error);
  return {is_bool(a) ? fmt::format("({} {} {})", a.text, of_bools, b.text)
                     : fmt::format("{}({}, {})", name, a.text, b.text),
          values};
}

}  // namespace

double exact_limit(DType type) {
  switch (type) {
    case DType::Bool: return 1;
    case DType::Float16: return 0x1p11;
    case DType::BFloat16: return 0x1p8;
    case DType::Float32: return 0x1p24;
    case DType::Float64: return 0x1p53;
    case DType::Float8E4M3FN: return 16;
    case DType::Float8E5M2: return 8;
    default: return std::ldexp(1.0, bits_of(type) - (is_signed_int(type) ? 1 : 0));
  }
}

Term literal_of(DType type, int value) {
  if (type == DType::Bool) return {value != 0 ? "true" : "false", {type, 1, true, 0}};
  const int shown = is_unsigned_int(type) ? std::abs(value) : value;
  return {number(type, shown), {type, static_cast<double>(std::abs(shown)), true, 0}};
}

Term within(const Term& term, double limit) {
  if (term.bound() <= limit || is_bool(term)) return term;
  const double whole = std::max(1.0, std::floor(std::min(limit, largest_of(term.type()))));
  Term result = term;
  result.values.bound = whole;
  result.text = is_unsigned_int(term.type())
                    ? fmt::format("min({}, {})", term.text, number(term.type(), whole))
                    : fmt::format("min(max({}, {}), {})", term.text, number(term.type(), -whole),
                                  number(term.type(), whole));
  return result;
}

Term cast_to(DType type, const Term& term) {
  if (term.type() == type) return term;
  const Term from = is_float(type) ? within(term, exact_limit(type)) : term;
  const bool loses_sign = is_unsigned_int(type) && !is_unsigned_int(term.type());
  const double bound = loses_sign ? exact_limit(type) : from.bound();
  return {fmt::format("{}({})", type, from.text),
          result_of(type, bound, from.values.whole, from.values.error)};
}

Term add(const Term& a, const Term& b) { return sum_or_difference(a, b, '+'); }
Term subtract(const Term& a, const Term& b) { return sum_or_difference(a, b, '-'); }

Term multiply(const Term& a, const Term& b) { return summand(a, b, 1); }

Term smaller(const Term& a, const Term& b) { return one_of(a, b, "min", "&&"); }
Term larger(const Term& a, const Term& b) { return one_of(a, b, "max", "||"); }

Term computed(std::string text, DType type, double bound) {
  return {std::move(text), result_of(type, bound, true, 0)};
}

Term summand(const Term& source, int count) {
  const bool is_narrow = is_float(source.type()) && exact_limit(source.type()) < 4 * count;
  const Term wide = is_narrow ? cast_to(DType::Float32, source) : source;
  return is_float(wide.type()) ? within(wide, exact_limit(wide.type()) / std::max(count, 1)) : wide;
}

Term summand(const Term& a, const Term& b, int count) {
  if (is_bool(a)) return {fmt::format("({} && {})", a.text, b.text), a.values};
  const bool is_narrow = is_float(a.type()) && exact_limit(a.type()) < 4 * count;
  const DType type = is_narrow ? DType::Float32 : a.type();
  const auto [x, y] = factors(cast_to(type, a), cast_to(type, b), count);
  return {fmt::format("({} * {})", x.text, y.text),
          result_of(type, x.bound() * y.bound(), x.values.whole && y.values.whole,
                    x.bound() * y.values.error + y.bound() * x.values.error)};
}

Values sum_of(const Values& summand, int count) {
  if (summand.type == DType::Bool) return summand;
  return result_of(summand.type, summand.bound * count, summand.whole,
                   count * (summand.error + rounding_of(summand.type) * summand.bound * count));
}

Values extreme_of(const Values& source, int count) {
  Values values = source;
  if (count == 0 && is_float(values.type)) values.bound = std::numeric_limits<double>::infinity();
  if (count == 0 && !is_float(values.type)) values.bound = exact_limit(values.type);
  return values;
}

}  // namespace kiln::testing
