// Bounds over inner variables, eliminated one after the other, innermost first: i*4 + j with j in
// 0..4 -> i*4 .. i*4 + 3. In a sum the variable goes to the end that its slope says; divisions,
// minima and choices are bounded by the bounds of their operands. Symbolic interval arithmetic, as
// Halide's bounds_of_expr_in_scope has it.
#include <algorithm>

#include "compiler/analysis/simplifier.h"
#include "compiler/ir/build.h"
#include "runtime/core/error.h"

namespace kiln::analysis {
namespace {

using ir::Call;
using ir::Expr;
using ir::Operator;

constexpr int kMaxDoublings = 6;  // of one bounds_of(): bounds grow by at most 2^6

/// Least and greatest value; nothing where none is found.
struct Ends {
  std::optional<Linear> low;
  std::optional<Linear> high;
};

/// The range of one inner variable, both ends inclusive.
struct Inner {
  AtomId var;
  std::optional<Linear> first;
  std::optional<Linear> last;
};

/// Takes one inner variable out of sums, by its least and greatest value.
class Eliminate {
 public:
  Eliminate(Knowledge& knowledge, const Inner& inner, int& doublings)
      : knowledge_(knowledge),
        atoms_(knowledge.atoms),
        simplifier_(knowledge),
        inner_(inner),
        doublings_(doublings) {}

  Ends operator()(const Linear& sum) {
    // The sum is `slope * var + the rest`, where atoms with the variable inside stand for their
    // ends.
    Linear slope;
    Ends rest{linear_constant(sum.constant), linear_constant(sum.constant)};
    for (const Term& term : sum.terms) {
      if (const auto others = term.product.without(Product(inner_.var))) {
        if (involves(*others)) return {};
        const Linear one = others->degree() == 0 ? linear_constant(term.coefficient)
                                                 : Linear{{{term.coefficient, *others}}, 0};
        const std::optional<Linear> total = add(slope, one);
        if (!total) return {};
        slope = *total;
      } else {
        const Ends part = ends_of(term);
        rest.low = rest.low && part.low ? add(*rest.low, *part.low) : std::nullopt;
        rest.high = rest.high && part.high ? add(*rest.high, *part.high) : std::nullopt;
      }
    }
    if (slope.is_constant() && slope.constant == 0) return rest;
    return with_slope(slope, rest);
  }

 private:
  /// A sum that grows with the variable is least at its first value, one that falls at its last.
  Ends with_slope(const Linear& slope, const Ends& rest) {
    const auto at = [&](const std::optional<Linear>& value, const std::optional<Linear>& base) {
      const std::optional<Linear> part = value ? multiplied(*value, slope) : std::nullopt;
      return part && base ? add(*part, *base) : std::nullopt;
    };
    if (simplifier_.nonnegative(slope)) {
      return {at(inner_.first, rest.low), at(inner_.last, rest.high)};
    }
    if (simplifier_.decide(Operator::LessEqual, slope, {}) == true) {
      return {at(inner_.last, rest.low), at(inner_.first, rest.high)};
    }
    // A straight line has its ends at the ends, whichever way it goes. Both are written down, so
    // doing this often would make the bounds grow without end.
    if (--doublings_ < 0) return {};
    const auto either = [&](Operator op, const std::optional<Linear>& base) {
      const std::optional<Linear> a = at(inner_.first, base);
      const std::optional<Linear> b = at(inner_.last, base);
      return a && b ? std::optional(simplifier_.choice(op, *a, *b)) : std::nullopt;
    };
    return {either(Operator::Min, rest.low), either(Operator::Max, rest.high)};
  }

  bool involves(AtomId atom) {
    const std::vector<AtomId>& vars = atoms_.variables(atom);
    return std::find(vars.begin(), vars.end(), inner_.var) != vars.end();
  }
  bool involves(const Product& product) {
    for (int i = 0; i < product.degree(); ++i) {
      if (involves(product[i])) return true;
    }
    return false;
  }
  bool involves(const Linear& sum) {
    return std::any_of(sum.terms.begin(), sum.terms.end(),
                       [&](const Term& term) { return involves(term.product); });
  }

  /// Of a term that does not have the variable as a factor.
  Ends ends_of(const Term& term) {
    const Linear whole{{term}, 0};
    if (!involves(term.product)) return {whole, whole};
    for (int i = 0; i < term.product.degree(); ++i) {
      const AtomId atom = term.product[i];
      if (!involves(atom)) continue;
      const Product others = *term.product.without(Product(atom));
      if (involves(others)) return {};
      const Linear factor = others.degree() == 0 ? linear_constant(term.coefficient)
                                                 : Linear{{{term.coefficient, others}}, 0};
      Ends ends = ends_of(atom);
      if (!simplifier_.nonnegative(factor)) {
        if (simplifier_.decide(Operator::LessEqual, factor, {}) != true) return {};
        std::swap(ends.low, ends.high);
      }
      return {ends.low ? multiplied(*ends.low, factor) : std::nullopt,
              ends.high ? multiplied(*ends.high, factor) : std::nullopt};
    }
    return {};
  }

  Ends ends_of(AtomId atom) {
    const Expr expr = atoms_.expr(atom);
    if (const std::optional<Operator> op = operator_of(expr)) {
      switch (*op) {
        case Operator::FloorDiv:
        case Operator::FloorMod: return ends_of_division(*op, atom);
        case Operator::Min:
        case Operator::Max: {
          const Atoms::Operands operands = atoms_.operands(atom);
          return combined(*op, *op, (*this)(operands.a), (*this)(operands.b));
        }
        default: return {};
      }
    }
    const Call* call = ir::as<Call>(expr);
    if (call != nullptr && (call->op == Operator::Select || call->op == Operator::IfThenElse)) {
      return combined(Operator::Min, Operator::Max, (*this)(atoms_.read(call->args[1])),
                      (*this)(atoms_.read(call->args[2])));
    }
    const Range64 range = knowledge_.range(atom);
    Ends ends;
    if (range.low != -Range64::kNone) ends.low = linear_constant(range.low);
    if (range.high != Range64::kNone) ends.high = linear_constant(range.high);
    return ends;
  }

  Ends combined(Operator low, Operator high, const Ends& a, const Ends& b) {
    Ends result;
    if (a.low && b.low) result.low = simplifier_.choice(low, *a.low, *b.low);
    if (a.high && b.high) result.high = simplifier_.choice(high, *a.high, *b.high);
    return result;
  }

  /// Quotients are monotonic. A remainder is too as long as its dividend stays within one multiple;
  /// else it may be anything below the divisor.
  Ends ends_of_division(Operator op, AtomId atom) {
    const Atoms::Operands operands = atoms_.operands(atom);
    const Linear& b = operands.b;
    if (involves(b) || !Refuter(knowledge_).positive(b)) return {};
    const Ends a = (*this)(operands.a);
    const auto quotient = [&](const std::optional<Linear>& end) {
      return end ? std::optional(simplifier_.quotient(*end, b)) : std::nullopt;
    };
    const Ends floors{quotient(a.low), quotient(a.high)};
    if (op == Operator::FloorDiv) return floors;
    if (floors.low && floors.high && *floors.low == *floors.high) {
      if (const auto start = multiplied(*floors.low, b)) {
        return {add(*a.low, *start, -1), add(*a.high, *start, -1)};
      }
    }
    return {linear_constant(0), add(b, linear_constant(-1))};
  }

  Knowledge& knowledge_;
  Atoms& atoms_;
  Simplifier simplifier_;
  const Inner& inner_;
  int& doublings_;  // how many are left
};

/// An end of a range. Nothing when it is read from memory as int64: what is computed from it may
/// wrap.
std::optional<Linear> end_of(Simplifier& simplifier, const Atoms& atoms, const Expr& end,
                             int64_t offset) {
  if (!end) return std::nullopt;
  const Linear sum = simplifier.linear(end);
  if (atoms.trust(sum) == Trust::Wild) return std::nullopt;
  return add(sum, linear_constant(offset));
}

}  // namespace

Interval bounds_of(const Expr& expr, const std::vector<Facts::Range>& inner, const Facts& facts) {
  KILN_CHECK(expr && expr->type == ir::kIndexType);
  Knowledge& knowledge = facts.knowledge();
  Simplifier simplifier(knowledge);
  for (const Facts::Range& range : inner) {
    knowledge.push_range(range.var, range.lower, range.upper);
  }
  const Linear sum = simplifier.linear(expr);
  Ends ends{sum, sum};
  int doublings = kMaxDoublings;
  for (size_t i = inner.size(); i-- > 0;) {
    Inner range{knowledge.atoms.id_of(inner[i].var), {}, {}};
    range.first = end_of(simplifier, knowledge.atoms, inner[i].lower, 0);
    range.last = end_of(simplifier, knowledge.atoms, inner[i].upper, -1);
    Eliminate eliminate(knowledge, range, doublings);
    if (ends.low) ends.low = eliminate(*ends.low).low;
    if (ends.high) ends.high = eliminate(*ends.high).high;
  }
  Interval result;
  if (ends.low) result.min = simplifier.simplify(simplifier.written(*ends.low));
  if (ends.high) result.max = simplifier.simplify(simplifier.written(*ends.high));
  for (size_t i = 0; i < inner.size(); ++i)
    knowledge.pop();
  return result;
}

}  // namespace kiln::analysis
