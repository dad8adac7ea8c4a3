// Evaluates sums and conditions in eight assignments that satisfy the facts, as testing before
// proving: most claims that are asked about are false, and one number shows it, where a search for
// a proof would run until its budget is spent. Values are the same in every run, so compiles are
// too.
#include "compiler/analysis/models.h"

#include <algorithm>

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Call;
using ir::Expr;
using ir::Operator;

constexpr int kMaxNesting = 12;                  // of operators that are evaluated
constexpr int64_t kTooLarge = int64_t{1} << 60;  // nothing is said of values beyond

/// Sizes that are and are not multiples of the usual tiles, and the small ones where things break.
constexpr std::array<int64_t, 8> kSizes = {37, 64, 100, 5, 1, 129, 0, 1000};

std::optional<int64_t> small(__int128 value) {
  if (value > kTooLarge || value < -kTooLarge) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<bool> compare(Operator op, int64_t a, int64_t b) {
  switch (op) {
    case Operator::Less: return a < b;
    case Operator::LessEqual: return a <= b;
    case Operator::Greater: return a > b;
    case Operator::GreaterEqual: return a >= b;
    case Operator::Equal: return a == b;
    case Operator::NotEqual: return a != b;
    default: return std::nullopt;
  }
}

}  // namespace

void Models::mark() {
  Mark mark;
  for (int m = 0; m < kCount; ++m)
    mark.alive[m] = models_[m].alive;
  marks_.push_back(mark);
}

void Models::pop() {
  const Mark& mark = marks_.back();
  for (int m = 0; m < kCount; ++m) {
    models_[m].alive = mark.alive[m];
    if (mark.ranged >= 0) stored(m, mark.ranged) = mark.before[m];
  }
  marks_.pop_back();
}

std::optional<int64_t>& Models::stored(int model, AtomId atom) {
  std::vector<std::optional<int64_t>>& values = models_[model].values;
  if (static_cast<int>(values.size()) <= atom) values.resize(atoms_.size());
  return values[atom];
}

/// A value for something that nothing is known of; another in each model, the same in every run.
int64_t Models::choose(int model, AtomId atom) const { return kSizes[(model + 3 * atom) % kCount]; }

void Models::add_range(AtomId var, const std::optional<Linear>& lower,
                       const std::optional<Linear>& upper) {
  marks_.back().ranged = var;
  for (int m = 0; m < kCount; ++m) {
    marks_.back().before[m] = stored(m, var);
    if (!models_[m].alive) continue;
    const std::optional<int64_t> first = lower ? value(m, *lower) : std::nullopt;
    const std::optional<int64_t> end = upper ? value(m, *upper) : std::nullopt;
    // Where one end is open, there is room enough on that side.
    const int64_t offset = choose(m, var);
    const int64_t start = first.value_or(0);
    const int64_t last = end ? end.value_or(0) - 1 : start + offset;
    const int64_t begin = first ? start : std::min(last, int64_t{0});
    models_[m].alive = first.has_value() == lower.has_value() &&
                       end.has_value() == upper.has_value() && begin <= last;
    if (!models_[m].alive) continue;
    // The first, the last, or one between: where claims are most often false.
    const int way = end ? (m + var) % 3 : 0;
    const int64_t chosen = way == 0   ? last
                           : way == 1 ? begin
                                      : begin + std::min(offset, (last - begin) / 2);
    stored(m, var) = chosen;
  }
}

void Models::add_condition(const Expr& condition) {
  for (int m = 0; m < kCount; ++m) {
    if (models_[m].alive) models_[m].alive = holds(m, condition).value_or(false);
  }
}

void Models::add_nonnegative(const Linear& sum) {
  for (int m = 0; m < kCount; ++m) {
    if (models_[m].alive) models_[m].alive = value(m, sum).value_or(-1) >= 0;
  }
}

bool Models::refutes(const Linear& sum) {
  for (int m = 0; m < kCount; ++m) {
    if (models_[m].alive && value(m, sum).value_or(0) < 0) return true;
  }
  return false;
}

std::optional<int64_t> Models::value(int model, const Linear& sum) {
  __int128 total = sum.constant;
  for (const Term& term : sum.terms) {
    std::optional<int64_t> part = term.coefficient;
    for (int i = 0; i < term.product.degree() && part; ++i) {
      const std::optional<int64_t> factor = value(model, term.product[i]);
      part = factor ? small(static_cast<__int128>(*part) * *factor) : std::nullopt;
    }
    if (!part) return std::nullopt;
    total += *part;
  }
  return small(total);
}

std::optional<int64_t> Models::value(int model, AtomId atom) {
  const Expr& expr = atoms_.expr(atom);
  const std::optional<Operator> op = operator_of(expr);
  if (op && nesting_ < kMaxNesting) {
    ++nesting_;
    const std::optional<int64_t> result = operator_value(model, *op, atom);
    --nesting_;
    return result;
  }
  const Call* call = ir::as<Call>(expr);
  if (call != nullptr && (call->op == Operator::Select || call->op == Operator::IfThenElse)) {
    const std::optional<bool> condition = holds(model, call->args[0]);
    if (!condition) return std::nullopt;
    return value(model, atoms_.read(call->args[*condition ? 1 : 2]));
  }
  std::optional<int64_t>& known = stored(model, atom);
  // A number read from memory may be any of its type; these fit all types.
  if (!known) known = ir::as<ir::Var>(expr) ? choose(model, atom) : choose(model, atom) % 2;
  return known;
}

std::optional<int64_t> Models::operator_value(int model, Operator op, AtomId atom) {
  if (op != Operator::FloorDiv && op != Operator::FloorMod && op != Operator::Min &&
      op != Operator::Max) {
    return std::nullopt;
  }
  const std::optional<int64_t> a = value(model, atoms_.operands(atom).a);
  const std::optional<int64_t> b = value(model, atoms_.operands(atom).b);
  if (!a || !b) return std::nullopt;
  switch (op) {
    case Operator::FloorDiv: return *b == 0 ? 0 : floor_div(*a, *b);
    case Operator::FloorMod: return *b == 0 ? 0 : floor_mod(*a, *b);
    case Operator::Min: return std::min(*a, *b);
    default: return std::max(*a, *b);
  }
}

// Nothing for what the models give no values to: other types, and functions.
std::optional<bool> Models::holds(int model, const Expr& condition) {
  if (const auto* imm = ir::as<ir::IntImm>(condition)) return imm->value != 0;
  if (const Binary* binary = ir::as<Binary>(condition)) {
    if (binary->op == Operator::And || binary->op == Operator::Or) {
      const std::optional<bool> a = holds(model, binary->a);
      const std::optional<bool> b = holds(model, binary->b);
      if (!a || !b) return std::nullopt;
      return binary->op == Operator::And ? *a && *b : *a || *b;
    }
    if (binary->a->type != ir::kIndexType) return std::nullopt;
    const std::optional<int64_t> a = value(model, atoms_.read(binary->a));
    const std::optional<int64_t> b = value(model, atoms_.read(binary->b));
    return a && b ? compare(binary->op, *a, *b) : std::nullopt;
  }
  const Call* call = ir::as<Call>(condition);
  if (call == nullptr || call->op != Operator::Not) return std::nullopt;
  const std::optional<bool> inner = holds(model, call->args[0]);
  return inner ? std::optional(!*inner) : std::nullopt;
}

}  // namespace kiln::analysis
