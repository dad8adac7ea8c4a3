// Index equations, solved one axis after the other: an axis that stands alone first, then quotient
// and remainder of one number, then numbers in mixed radix, strides, and windows, where the longest
// axis follows from the others. Every step says what must hold beside (ranges, divisibility).
//
//   X[i//4, i%4] at [x, y]      i = 4*x + y
//   X[4*i + j], j < 4, at [x]   i = x//4, j = x%4
//   X[i + r], r < 3, at [x]     i = x - r for r in 0..3, where 0 <= x - r < n
//   X[2*i + r], r < 3, at [x]   r = x%2 + 2*q, i = x//2 - q for q in 0..2, where r < 3, 0 <= i < n
#include "compiler/autodiff/solve.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace kiln::autodiff {
namespace {

using namespace language;

class Solver {
 public:
  Solver(Builder& b, const std::vector<AxisId>& loops) : b_(b), loops_(loops) {}

  std::optional<Solution> solve(const std::vector<Equation>& equations) {
    // A loop of one iteration is none.
    for (const AxisId axis : loops_) {
      const Axis bounds = b_.definition().axes[axis];
      if (b_.polynomial(b_.tidied(bounds.extent)).as_constant() == 1)
        known_[axis] = b_.tidied(bounds.minimum);
    }
    for (const Equation& equation : equations)
      open_.push_back({b_.polynomial(equation.index), b_.polynomial(equation.value)});
    // Each turn closes an equation or takes a quotient apart.
    for (int turns = 0; !open_.empty(); ++turns) {
      if (turns > kMostTurns || !step()) return std::nullopt;
    }
    return result();
  }

 private:
  static constexpr int kMostTurns = 128;

  struct Open {
    Polynomial index;
    Polynomial value;
  };

  bool step() {
    for (size_t i = 0; i < open_.size(); ++i) {
      if (!normalize(open_[i])) return false;
      if (!open_[i].index.is_zero()) continue;
      require(Operator::Equal, b_.expression(open_[i].value), b_.integer(0));
      return close(i);
    }
    return solve_single() || solve_quotient_and_remainder() || solve_radix() || solve_stride() ||
           solve_phases() || solve_window() || open_quotient();
  }

  bool close(size_t i) {
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }

  /// What no axis of the loops changes goes to the value.
  bool normalize(Open& open) {
    const Polynomial index = b_.polynomial(replaced(b_.expression(open.index)));
    Polynomial moved;
    open.index = {};
    for (const auto& [monomial, factor] : index.terms) {
      const bool is_fixed = std::ranges::none_of(monomial, [&](ExprId a) { return depends(a); });
      (is_fixed ? moved : open.index).terms[monomial] = factor;
    }
    const auto value = autodiff::add(open.value, moved, -1);
    if (!value) return false;
    open.value = b_.polynomial(replaced(b_.expression(*value)));
    return true;
  }

  ExprId replaced(ExprId expr) { return b_.substitute(expr, {.axes = known_, .read = {}}); }

  bool depends(ExprId atom) {
    return std::ranges::any_of(loops_, [&](AxisId axis) { return b_.uses_axis(atom, axis); });
  }

  bool is_open(ExprId atom) const {
    const auto* use = b_.as<AxisUse>(atom);
    return use != nullptr && std::ranges::find(loops_, use->axis) != loops_.end() &&
           !known_.contains(use->axis);
  }

  void require(Operator op, ExprId a, ExprId b) { conditions_.push_back(b_.op(op, {a, b})); }

  /// The axis follows; whatever was said in terms of it is said anew.
  void assign(ExprId atom, ExprId value, bool is_in_range = false) {
    const AxisId axis = b_.as<AxisUse>(atom)->axis;
    known_[axis] = value;
    for (auto& [other, expr] : known_)
      expr = b_.substitute(expr, {.axes = {{axis, value}}, .read = {}});
    if (is_in_range) return;
    const Axis bounds = b_.definition().axes[axis];
    const ExprId minimum = b_.tidied(bounds.minimum);
    require(Operator::LessEqual, minimum, value);
    require(Operator::Less, value, b_.add(minimum, b_.tidied(bounds.extent)));
  }

  /// i = x, or -i = x.
  bool solve_single() {
    for (size_t i = 0; i < open_.size(); ++i) {
      const Open& open = open_[i];
      if (open.index.terms.size() != 1) continue;
      const auto& [monomial, factor] = *open.index.terms.begin();
      if (monomial.size() != 1 || !is_open(monomial[0]) || (factor != 1 && factor != -1)) continue;
      const auto value = autodiff::add(Polynomial{}, open.value, factor);
      if (!value) return false;
      assign(monomial[0], b_.expression(*value));
      return close(i);
    }
    return false;
  }

  const Operation* as_division(const Open& open, Operator op) const {
    const auto atom = open.index.as_atom();
    const auto* operation = atom ? b_.as<Operation>(*atom) : nullptr;
    return operation != nullptr && operation->op == op && !depends_on_loop(operation->operands[1])
               ? operation
               : nullptr;
  }

  bool depends_on_loop(ExprId expr) const {
    return std::ranges::any_of(loops_, [&](AxisId axis) { return b_.uses_axis(expr, axis); });
  }

  /// e // c = x and e % c = y: e = c*x + y.
  bool solve_quotient_and_remainder() {
    for (size_t i = 0; i < open_.size(); ++i) {
      for (size_t j = 0; j < open_.size(); ++j) {
        const Operation* quotient = as_division(open_[i], Operator::FloorDiv);
        const Operation* remainder = as_division(open_[j], Operator::FloorMod);
        if (quotient == nullptr || remainder == nullptr) continue;
        if (quotient->operands != remainder->operands) continue;
        const ExprId number = quotient->operands[0];
        const ExprId by = quotient->operands[1];
        const ExprId x = b_.expression(open_[i].value);
        const ExprId y = b_.expression(open_[j].value);
        require(Operator::LessEqual, b_.integer(0), y);
        require(Operator::Less, y, by);
        open_[i] = {b_.polynomial(number), b_.polynomial(b_.add(b_.mul(x, by), y))};
        return close(j);
      }
    }
    return false;
  }

  /// The axes of an index that is a sum of them, with their factors; nothing when it is another.
  struct Term {
    ExprId atom;
    Polynomial factor;
  };
  std::optional<std::vector<Term>> terms_of(const Open& open) {
    std::vector<Term> terms;
    Polynomial rest = open.index;
    for (const ExprId atom : open.index.atoms()) {
      if (!is_open(atom)) continue;
      const std::optional<Split> parts = autodiff::split(rest, atom);
      if (!parts) return std::nullopt;
      const bool is_fixed =
          std::ranges::none_of(parts->factor.atoms(), [&](ExprId a) { return depends(a); });
      if (!is_fixed) return std::nullopt;
      terms.push_back({atom, parts->factor});
      rest = parts->rest;
    }
    if (!rest.is_zero()) return std::nullopt;
    return terms;
  }

  /// c*i + rest = x, where 0 <= rest < c whatever its axes are: i = x // c, rest = x % c.
  bool solve_radix() {
    for (size_t i = 0; i < open_.size(); ++i) {
      const auto terms = terms_of(open_[i]);
      if (!terms || terms->size() < 2) continue;
      for (const Term& term : *terms) {
        const std::optional<Split> parts = autodiff::split(open_[i].index, term.atom);
        const auto room = autodiff::add(parts->factor, parts->rest, -1);
        const auto room_less_one =
            room ? autodiff::add(*room, Polynomial::constant(-1)) : std::nullopt;
        if (!room_less_one || !b_.is_nonnegative(parts->rest) ||
            !b_.is_nonnegative(*room_less_one)) {
          continue;
        }
        const ExprId by = b_.expression(parts->factor);
        const ExprId x = b_.expression(open_[i].value);
        open_[i] = {parts->rest, b_.polynomial(b_.op(Operator::FloorMod, {x, by}))};
        assign(term.atom, b_.op(Operator::FloorDiv, {x, by}));
        return true;
      }
    }
    return false;
  }

  /// c*i = x: i = x // c, where x % c == 0.
  bool solve_stride() {
    for (size_t i = 0; i < open_.size(); ++i) {
      const auto terms = terms_of(open_[i]);
      if (!terms || terms->size() != 1 || !is_nonzero((*terms)[0])) continue;
      const ExprId value = b_.expression(open_[i].value);
      if (const int64_t by = (*terms)[0].factor.as_constant().value_or(0); by > 1)
        phases_.push_back({value, by, 1});
      assign_divided((*terms)[0], value);
      return close(i);
    }
    return false;
  }

  /// A symbolic factor may be 0, unless an axis runs over it.
  bool is_nonzero(const Term& term) {
    if (term.factor.as_constant()) return true;
    const auto atom = term.factor.as_atom();
    return atom && std::ranges::any_of(loops_, [&](AxisId axis) {
             const Polynomial extent = b_.polynomial(b_.tidied(b_.definition().axes[axis].extent));
             return extent.terms.size() == 1 && extent.contains(*atom);
           });
  }

  void assign_divided(const Term& term, ExprId x) {
    ExprId by = b_.expression(term.factor);
    if (term.factor.as_constant().value_or(0) < 0) {
      by = b_.neg(by);
      x = b_.neg(x);
    }
    require(Operator::Equal, b_.op(Operator::FloorMod, {x, by}), b_.integer(0));
    assign(term.atom, b_.op(Operator::FloorDiv, {x, by}));
  }

  /// c*i + r = x, where i is the longer one: of r only every c-th value has an i at all.
  bool solve_phases() {
    for (size_t i = 0; i < open_.size(); ++i) {
      const auto terms = terms_of(open_[i]);
      if (!terms || terms->size() != 2) continue;
      const bool is_swapped = (*terms)[0].factor.as_constant() == 1;
      const Term& window = (*terms)[is_swapped ? 0 : 1];
      const Term& strided = (*terms)[is_swapped ? 1 : 0];
      const int64_t stride = strided.factor.as_constant().value_or(0);
      if (window.factor.as_constant() != 1 || stride < 2 || !is_longer(strided, window)) continue;
      const Axis bounds = b_.definition().axes[b_.as<AxisUse>(window.atom)->axis];
      const ExprId minimum = b_.tidied(bounds.minimum);
      const ExprId extent = b_.tidied(bounds.extent);
      const ExprId by = b_.integer(stride);
      const ExprId x = b_.sub(b_.expression(open_[i].value), minimum);
      const ExprId rounds = b_.op(Operator::FloorDiv, {b_.add(extent, b_.integer(stride - 1)), by});
      const ExprId q = new_loop(rounds);
      const ExprId first = b_.op(Operator::FloorMod, {x, by});
      const ExprId strided_atom = strided.atom;
      assign(window.atom, b_.add(minimum, b_.add(first, b_.mul(by, q))));
      assign(strided_atom, b_.sub(b_.op(Operator::FloorDiv, {x, by}), q));
      const std::optional<int64_t> length = b_.polynomial(extent).as_constant();
      phases_.push_back({x, stride, std::min(stride, length.value_or(stride))});
      return close(i);
    }
    return false;
  }

  /// c*i + d*r = x: the longest axis follows from the others.
  bool solve_window() {
    for (size_t i = 0; i < open_.size(); ++i) {
      const auto terms = terms_of(open_[i]);
      if (!terms) continue;
      const Term* longest = nullptr;
      for (const Term& term : *terms) {
        if (is_nonzero(term) && (longest == nullptr || is_longer(term, *longest))) longest = &term;
      }
      if (longest == nullptr) continue;
      const std::optional<Split> parts = autodiff::split(open_[i].index, longest->atom);
      const auto value = autodiff::add(open_[i].value, parts->rest, -1);
      if (!value) return false;
      assign_divided(*longest, b_.expression(*value));
      return close(i);
    }
    return false;
  }

  /// A symbolic extent counts as long, and a data axis as longer than a window.
  bool is_longer(const Term& a, const Term& b) const {
    const auto rank = [&](const Term& term) {
      const AxisId axis = b_.as<AxisUse>(term.atom)->axis;
      const Axis& bounds = b_.definition().axes[axis];
      const auto extent = b_.polynomial(bounds.extent).as_constant();
      const bool is_plain = term.factor.as_constant().value_or(0) != 0;
      return std::tuple(is_plain, extent.value_or(INT64_MAX), bounds.kind == AxisKind::Data);
    };
    return rank(a) > rank(b);
  }

  /// e // c = x: e = c*x + q for q in 0..c. (i + k) % c = y: i = c*q + (y - k) % c for as many q as
  /// i has.
  bool open_quotient() {
    for (Open& open : open_) {
      if (const Operation* found = as_division(open, Operator::FloorDiv)) {
        const Operation division = *found;
        if (b_.polynomial(division.operands[1]).as_constant().value_or(0) < 1) continue;
        const ExprId q = new_loop(division.operands[1]);
        const ExprId x = b_.expression(open.value);
        open = {b_.polynomial(division.operands[0]),
                b_.polynomial(b_.add(b_.mul(x, division.operands[1]), q))};
        return true;
      }
      if (open_remainder(open)) return true;
    }
    return false;
  }

  bool open_remainder(Open& open) {
    const Operation* found = as_division(open, Operator::FloorMod);
    if (found == nullptr) return false;
    const Operation division = *found;
    const ExprId by = division.operands[1];
    const std::optional<int64_t> number = b_.polynomial(by).as_constant();
    const auto shifted = axis_and_shift(b_.polynomial(division.operands[0]));
    if (!shifted || number.value_or(0) < 1) return false;
    const auto& [atom, shift] = *shifted;
    const Axis bounds = b_.definition().axes[b_.as<AxisUse>(atom)->axis];
    if (b_.polynomial(bounds.minimum) != Polynomial{}) return false;
    const ExprId extent = b_.tidied(bounds.extent);
    // A shift back by 3 of 5 is one on by 2.
    const std::optional<int64_t> back = shift.as_constant();
    const ExprId on =
        back ? b_.integer((*number - *back % *number) % *number) : b_.neg(b_.expression(shift));
    const ExprId first = b_.op(Operator::FloorMod, {b_.add(b_.expression(open.value), on), by});
    const std::optional<int64_t> count = b_.polynomial(extent).as_constant();
    if (count && *count <= *number) {
      require(Operator::LessEqual, b_.integer(0), b_.expression(open.value));
      require(Operator::Less, b_.expression(open.value), by);
      open = {Polynomial::atom(atom), b_.polynomial(first)};
      return true;
    }
    const ExprId rounds =
        b_.op(Operator::FloorDiv, {b_.add(extent, b_.sub(by, b_.integer(1))), by});
    const ExprId y = b_.expression(open.value);
    const ExprId q = new_loop(rounds);
    require(Operator::LessEqual, b_.integer(0), y);
    require(Operator::Less, y, by);
    open = {Polynomial::atom(atom), b_.polynomial(b_.add(b_.mul(q, by), first))};
    return true;
  }

  /// i + k as i and k, which no axis of the loops changes.
  std::optional<std::pair<ExprId, Polynomial>> axis_and_shift(const Polynomial& number) {
    for (const ExprId atom : number.atoms()) {
      if (!is_open(atom)) continue;
      const std::optional<Split> parts = autodiff::split(number, atom);
      const bool is_shift =
          parts && parts->factor.as_constant() == 1 &&
          std::ranges::none_of(parts->rest.atoms(), [&](ExprId a) { return depends(a); });
      if (is_shift) return std::pair(atom, parts->rest);
    }
    return std::nullopt;
  }

  ExprId new_loop(ExprId extent) {
    added_.push_back(b_.new_axis(AxisKind::Reduce, b_.integer(0), extent, "q"));
    return b_.axis(added_.back());
  }

  std::optional<Solution> result() {
    Solution solution;
    // What remains is a loop of its own; outer ones first, since bounds of inner ones may use them.
    for (const AxisId axis : loops_) {
      if (known_.contains(axis)) continue;
      const Axis bounds = b_.definition().axes[axis];
      const AxisId fresh = b_.new_axis(AxisKind::Reduce, replaced_by(solution.axes, bounds.minimum),
                                       replaced_by(solution.axes, bounds.extent),
                                       std::string(b_.names().axes[axis]));
      solution.axes[axis] = b_.axis(fresh);
      solution.loops.push_back(fresh);
      for (auto& [other, expr] : known_)
        expr = b_.substitute(expr, {.axes = {{axis, b_.axis(fresh)}}, .read = {}});
    }
    for (const auto& [axis, expr] : known_)
      solution.axes[axis] = expr;
    for (const AxisId axis : added_)
      solution.loops.push_back(axis);
    for (const ExprId condition : conditions_) {
      const ExprId said = b_.substitute(condition, {.axes = solution.axes, .read = {}});
      if (b_.as_bool(said) != true) solution.conditions.push_back(said);
    }
    for (Phase phase : phases_) {
      phase.value = b_.substitute(phase.value, {.axes = solution.axes, .read = {}});
      solution.phases.push_back(phase);
    }
    if (!solution.loops.empty() && !has_plain_bounds(solution)) return std::nullopt;
    return solution;
  }

  ExprId replaced_by(const std::map<AxisId, ExprId>& axes, ExprId expr) {
    std::map<AxisId, ExprId> all = known_;
    for (const auto& [axis, value] : axes)
      all[axis] = value;
    return b_.substitute(expr, {.axes = all, .read = {}});
  }

  /// Bounds of a loop may use loops that stand before it, and what is given, but no others.
  bool has_plain_bounds(const Solution& solution) {
    for (size_t i = 0; i < solution.loops.size(); ++i) {
      const Axis& axis = b_.definition().axes[solution.loops[i]];
      for (const ExprId bound : {axis.minimum, axis.extent}) {
        for (size_t j = i; j < solution.loops.size(); ++j) {
          if (b_.uses_axis(bound, solution.loops[j])) return false;
        }
        if (std::ranges::any_of(loops_, [&](AxisId old) { return b_.uses_axis(bound, old); }))
          return false;
      }
    }
    return true;
  }

  Builder& b_;
  const std::vector<AxisId>& loops_;
  std::vector<Open> open_;
  std::map<AxisId, ExprId> known_;
  std::vector<AxisId> added_;
  std::vector<ExprId> conditions_;
  std::vector<Phase> phases_;
};

}  // namespace

std::optional<Solution> solve(Builder& builder, const std::vector<AxisId>& loops,
                              const std::vector<Equation>& equations) {
  return Solver(builder, loops).solve(equations);
}

}  // namespace kiln::autodiff
