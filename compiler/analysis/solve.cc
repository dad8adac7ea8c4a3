// Solves a comparison for one variable: `i*4 + j < n` with j in 0..4 -> i < floordiv(n, 4). The
// inner variables are eliminated by bounds_of(), which leaves a sum that is linear in the variable;
// where it changes sign follows by one division. Halide's solve_for_inner_interval answers the same
// question.
#include "compiler/analysis/solve.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/analysis/knowledge.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::analysis {
namespace {

using ir::Expr;
using ir::Operator;

/// The comparison as `room >= 0`, or null.
Expr room_of(const Expr& condition) {
  const ir::Binary* binary = ir::as<ir::Binary>(condition);
  if (binary == nullptr || binary->a->type != ir::kIndexType) return nullptr;
  switch (binary->op) {
    case Operator::Less: return binary->b - binary->a - 1;
    case Operator::LessEqual: return binary->b - binary->a;
    case Operator::Greater: return binary->a - binary->b - 1;
    case Operator::GreaterEqual: return binary->a - binary->b;
    default: return nullptr;
  }
}

}  // namespace

std::optional<Span> holds_where(const Expr& condition, const ir::VarRef& var,
                                const std::vector<Facts::Range>& inner, const Facts& facts) {
  const Expr room = room_of(condition);
  if (!room || ir::reads_memory(condition)) return std::nullopt;
  const Expr least = bounds_of(room, inner, facts).min;
  if (!least) return std::nullopt;

  // least = rest - slope * var >= 0; for a positive slope where var <= floordiv(rest, slope).
  Atoms& atoms = facts.knowledge().atoms;
  const AtomId atom = atoms.id_of(var);
  const Linear sum = atoms.read(least);
  int64_t slope = 0;
  for (const Term& term : sum.terms) {
    if (term.product == Product(atom)) {
      slope = -term.coefficient;
      continue;
    }
    for (int i = 0; i < term.product.degree(); ++i) {
      const std::vector<AtomId>& vars = atoms.variables(term.product[i]);
      if (std::find(vars.begin(), vars.end(), atom) != vars.end()) return std::nullopt;
    }
  }
  if (slope == 0) return std::nullopt;
  const std::optional<Linear> rest = add(sum, linear_atom(atom), slope);
  if (!rest) return std::nullopt;
  const auto is_inside = [&](const Facts::Range& range) { return uses_var(room, range.var); };
  const bool exact = std::none_of(inner.begin(), inner.end(), is_inside);
  const Expr room_at_zero = atoms.write(*rest);
  if (slope > 0) {
    const Expr last = ir::floordiv(room_at_zero, ir::index(slope));
    return Span{nullptr, simplify(last + 1, facts), exact};
  }
  // rest + |slope| * var >= 0 where var >= -rest / |slope|, rounded up.
  const Expr first = ir::floordiv(ir::index(-slope - 1) - room_at_zero, ir::index(-slope));
  return Span{simplify(first, facts), nullptr, exact};
}

}  // namespace kiln::analysis
