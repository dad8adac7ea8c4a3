// Keeps facts in the form in which proofs use them: sums that are at least 0, constant ranges of
// variables, models, and conditions that are about something else. All of it follows pushes and
// pops, and so do the answers kept: one that was proved stays true further in, one that was not may
// be asked again once a fact connected with it is pushed.
#include "compiler/analysis/knowledge.h"

#include <algorithm>

#include "compiler/ir/build.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Call;
using ir::Cast;
using ir::Expr;
using ir::Operator;

constexpr int kMaxNesting = 12;      // of operators that a range is computed through
constexpr size_t kMaxAnswers = 256;  // searched one by one
constexpr size_t kMaxSums = 4096;    // so that a long walk does not keep all it has seen

int64_t clamp(__int128 value) {
  if (value >= Range64::kNone) return Range64::kNone;
  if (value <= -Range64::kNone) return -Range64::kNone;
  return static_cast<int64_t>(value);
}

bool bounded(int64_t end) { return end != Range64::kNone && end != -Range64::kNone; }

/// a * b where an end without bound stays so.
int64_t times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (!bounded(a) || !bounded(b)) return (a < 0) == (b < 0) ? Range64::kNone : -Range64::kNone;
  return clamp(static_cast<__int128>(a) * b);
}

int64_t plus(int64_t a, int64_t b, int64_t none) {
  if (!bounded(a) || !bounded(b)) return none;
  return clamp(static_cast<__int128>(a) + b);
}

/// The ends of a product are among the products of the ends.
Range64 product_of(const Range64& a, const Range64& b) {
  const std::array<int64_t, 4> ends = {times(a.low, b.low), times(a.low, b.high),
                                       times(a.high, b.low), times(a.high, b.high)};
  return {*std::min_element(ends.begin(), ends.end()), *std::max_element(ends.begin(), ends.end())};
}

Range64 intersection(const Range64& a, const Range64& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

/// What a conversion to int64 can give. Of 64 bits nothing is known that an int64 does not say.
Range64 range_of_type(DType type) {
  if (type == DType::Bool) return {0, 1};
  if (is_float(type) || bits_of(type) > 32) return {};
  const int64_t span = int64_t{1} << bits_of(type);
  if (is_unsigned_int(type)) return {0, span - 1};
  return {-span / 2, span / 2 - 1};
}

int64_t divided(int64_t end, int64_t divisor) {
  return bounded(end) ? floor_div(end, divisor) : end;
}

Operator negated_comparison(Operator op) {
  switch (op) {
    case Operator::Less: return Operator::GreaterEqual;
    case Operator::LessEqual: return Operator::Greater;
    case Operator::Greater: return Operator::LessEqual;
    case Operator::GreaterEqual: return Operator::Less;
    case Operator::Equal: return Operator::NotEqual;
    case Operator::NotEqual: return Operator::Equal;
    default: return op;
  }
}

}  // namespace

Expr negated(const Expr& condition) {
  if (const Binary* binary = ir::as<Binary>(condition);
      binary != nullptr && condition->type.lanes == 1) {
    if (binary->op == Operator::And) {
      return ir::logical_or(negated(binary->a), negated(binary->b));
    }
    if (binary->op == Operator::Or) {
      return ir::logical_and(negated(binary->a), negated(binary->b));
    }
    const Operator opposite = negated_comparison(binary->op);
    const bool symmetric = binary->op == Operator::Equal || binary->op == Operator::NotEqual;
    if (opposite != binary->op && (symmetric || !is_float(binary->a->type.element))) {
      return Binary::make(opposite, binary->a, binary->b);
    }
  }
  return ir::logical_not(condition);
}

void Knowledge::follow_down(size_t count) {
  for (; followed_ > count; --followed_)
    pop();
}

void Knowledge::follow(const std::vector<Facts::Entry>& entries) {
  for (; followed_ < entries.size(); ++followed_) {
    const Facts::Entry& entry = entries[followed_];
    if (entry.range) {
      push_range(entry.range->var, entry.range->lower, entry.range->upper);
    } else {
      push_condition(entry.condition);
    }
  }
}

// Each push gets a number of its own, which what is kept for later is compared with.
void Knowledge::mark() {
  marks_.push_back({++last_state_, nonnegative_.size(), conditions_.size(), -1, {}, -1});
  models.mark();
}

void Knowledge::pop() {
  const Mark& mark = marks_.back();
  nonnegative_.resize(mark.nonnegative);
  bits_.resize(mark.nonnegative);
  conditions_.resize(mark.conditions);
  if (mark.ranged >= 0) {
    stored_range(mark.ranged) = mark.range_before;
    ranks_[mark.ranged] = mark.rank_before;
  }
  marks_.pop_back();
  models.pop();
  while (!answers_.empty() && answers_.back().depth > marks_.size())
    answers_.pop_back();
}

Range64& Knowledge::stored_range(AtomId atom) {
  if (static_cast<int>(ranges_.size()) <= atom) {
    ranges_.resize(atoms.size());
    ranks_.resize(atoms.size(), -1);
  }
  return ranges_[atom];
}

void Knowledge::push_range(const ir::VarRef& var, const Expr& lower, const Expr& upper) {
  mark();
  const AtomId atom = atoms.id_of(var);
  const Range64 before = stored_range(atom);
  marks_.back().ranged = atom;
  marks_.back().range_before = before;
  marks_.back().rank_before = ranks_[atom];
  if (lower) add_comparison(Operator::LessEqual, lower, var);
  if (upper) add_comparison(Operator::Less, var, upper);
  Range64 now = before;
  if (lower) now.low = std::max(now.low, range(atoms.read(lower)).low);
  if (upper) now.high = std::min(now.high, plus(range(atoms.read(upper)).high, -1, Range64::kNone));
  stored_range(atom) = now;
  const auto sum = [&](const Expr& end) {
    return end ? std::optional(atoms.read(end)) : std::nullopt;
  };
  models.add_range(atom, sum(lower), sum(upper));
  ranks_[atom] = static_cast<int>(marks_.size());
}

void Knowledge::push_condition(const Expr& condition) {
  mark();
  add_condition(condition);
  if (condition->type == ir::kBoolType) models.add_condition(condition);
}

void Knowledge::push_nonnegative(Linear sum) {
  mark();
  models.add_nonnegative(sum);
  add_nonnegative(std::move(sum));
}

void Knowledge::add_nonnegative(std::optional<Linear> sum) {
  if (!sum) return;
  bits_.push_back(bits_of(*sum));
  nonnegative_.push_back(std::move(*sum));
}

// Comparisons of indices become sums; of other conditions only the condition itself is known.
void Knowledge::add_condition(const Expr& condition) {
  if (condition->type != ir::kBoolType) return;
  if (const Binary* binary = ir::as<Binary>(condition)) {
    if (binary->op == Operator::And) {
      add_condition(binary->a);
      add_condition(binary->b);
      return;
    }
    if (binary->a->type == ir::kIndexType && binary->op != Operator::NotEqual) {
      add_comparison(binary->op, binary->a, binary->b);
      return;
    }
  }
  if (const Call* call = ir::as<Call>(condition); call != nullptr && call->op == Operator::Not) {
    const Expr inner = negated(call->args[0]);
    if (!(ir::as<Call>(inner) && ir::as<Call>(inner)->op == Operator::Not)) {
      add_condition(inner);
      return;
    }
  }
  conditions_.push_back(condition);
}

void Knowledge::add_comparison(Operator op, const Expr& a, const Expr& b) {
  // x < min(p, q) says two things, and so does max(p, q) <= x.
  const bool b_is_greater = op == Operator::Less || op == Operator::LessEqual;
  const Binary* greater = ir::as<Binary>(b_is_greater ? b : a);
  const Binary* smaller = ir::as<Binary>(b_is_greater ? a : b);
  if (op != Operator::Equal && greater != nullptr && greater->op == Operator::Min) {
    for (const Expr& part : {greater->a, greater->b}) {
      b_is_greater ? add_comparison(op, a, part) : add_comparison(op, part, b);
    }
    return;
  }
  if (op != Operator::Equal && smaller != nullptr && smaller->op == Operator::Max) {
    for (const Expr& part : {smaller->a, smaller->b}) {
      b_is_greater ? add_comparison(op, part, b) : add_comparison(op, a, part);
    }
    return;
  }
  const Linear x = atoms.read(a);
  const Linear y = atoms.read(b);
  const auto difference = [](const Linear& large, const Linear& small, int64_t strict) {
    std::optional<Linear> sum = add(large, small, -1);
    return sum ? add(*sum, linear_constant(strict), -1) : std::nullopt;
  };
  switch (op) {
    case Operator::Less: return add_nonnegative(difference(y, x, 1));
    case Operator::LessEqual: return add_nonnegative(difference(y, x, 0));
    case Operator::Greater: return add_nonnegative(difference(x, y, 1));
    case Operator::GreaterEqual: return add_nonnegative(difference(x, y, 0));
    case Operator::Equal:
      add_nonnegative(difference(x, y, 0));
      add_nonnegative(difference(y, x, 0));
      return;
    default: return;
  }
}

const Linear* Knowledge::find_sum(const Expr& expr) const {
  const auto found = known_sums_.find(expr);
  return found != known_sums_.end() && found->second.state == state() ? &found->second.sum
                                                                      : nullptr;
}

void Knowledge::keep_sum(const Expr& expr, const Linear& sum) {
  if (known_sums_.size() >= kMaxSums) known_sums_.clear();
  known_sums_.insert_or_assign(expr, KnownSum{state(), sum});
}

uint64_t Knowledge::bits_of(const Linear& sum) {
  uint64_t bits = 0;
  for (const Term& term : sum.terms) {
    for (int i = 0; i < term.product.degree(); ++i) {
      const AtomId atom = term.product[i];
      if (atoms.variables(atom).empty()) bits |= uint64_t{1} << (atom % 64);
      for (const AtomId var : atoms.variables(atom))
        bits |= uint64_t{1} << (var % 64);
    }
  }
  return bits;
}

// The transitive closure over the facts: what a proof could use at all.
uint64_t Knowledge::connected(const Linear& sum) {
  uint64_t bits = bits_of(sum);
  for (uint64_t before = 0; before != bits;) {
    before = bits;
    for (const uint64_t fact : bits_)
      bits |= (fact & bits) != 0 ? fact : 0;
  }
  return bits;
}

bool Knowledge::is_connected_after(size_t fact, uint64_t bits) const {
  return std::any_of(bits_.begin() + static_cast<int64_t>(fact), bits_.end(),
                     [&](uint64_t other) { return (other & bits) != 0; });
}

// A proof holds under more facts as well; a failure as long as no fact that is connected with the
// sum has come since.
std::optional<bool> Knowledge::recall(const Linear& sum) {
  for (const Answer& answer : answers_) {
    if (!(answer.sum == sum)) continue;
    if (answer.proved) return true;  // and stays so when more is known
    const size_t facts_then =
        answer.depth < marks_.size() ? marks_[answer.depth].nonnegative : nonnegative_.size();
    if (!is_connected_after(facts_then, connected(sum))) return false;
  }
  return std::nullopt;
}

void Knowledge::remember(Linear sum, bool proved) {
  if (answers_.size() >= kMaxAnswers) answers_.pop_back();
  size_t depth = marks_.size();
  if (!proved) {
    // What the sum has nothing to do with cannot have helped.
    const uint64_t bits = connected(sum);
    while (depth > 0 && !is_connected_after(marks_[depth - 1].nonnegative, bits))
      --depth;
  }
  // Kept in the order of depth, so that pop() finds at the end all that it makes untrue.
  const auto deeper = std::ranges::upper_bound(answers_, depth, {}, &Answer::depth);
  answers_.insert(deeper, {std::move(sum), proved, depth});
}

// Variables have even ranks, in the order of their ranges; what is made of them has one more, so
// that it is cancelled before them.
int Knowledge::rank(AtomId atom) {
  if (static_cast<int>(ranks_.size()) < atoms.size()) ranks_.resize(atoms.size(), -1);
  if (ir::as<ir::Var>(atoms.expr(atom))) return 2 * ranks_[atom];
  int result = -1;
  for (const AtomId var : atoms.variables(atom))
    result = std::max(result, rank(var));
  return result + 1;  // before the variables it is made of
}

int Knowledge::rank(const Product& product) {
  int result = -2;
  for (int i = 0; i < product.degree(); ++i)
    result = std::max(result, rank(product[i]));
  return result;
}

Range64 Knowledge::range(const Linear& sum) {
  Range64 total{sum.constant, sum.constant};
  for (const Term& term : sum.terms) {
    Range64 part{term.coefficient, term.coefficient};
    for (int i = 0; i < term.product.degree(); ++i) {
      part = product_of(part, range(term.product[i]));
    }
    total.low = plus(total.low, part.low, -Range64::kNone);
    total.high = plus(total.high, part.high, Range64::kNone);
  }
  return total;
}

Range64 Knowledge::range(AtomId atom) {
  if (ir::as<ir::Var>(atoms.expr(atom))) return stored_range(atom);
  if (static_cast<int>(known_ranges_.size()) <= atom) known_ranges_.resize(atoms.size());
  if (known_ranges_[atom].state == state()) return known_ranges_[atom].range;
  const bool is_whole = nesting_ == 0;  // further in, it may be cut short
  const Range64 result = computed_range(atom);
  if (is_whole) known_ranges_[atom] = {state(), result};
  return result;
}

Range64 Knowledge::computed_range(AtomId atom) {
  const Expr expr = atoms.expr(atom);
  if (const Cast* cast = ir::as<Cast>(expr)) return range_of_type(cast->value->type.element);
  if (nesting_ >= kMaxNesting) return {};
  ++nesting_;
  Range64 result;
  if (const std::optional<Operator> op = operator_of(expr)) result = range_of_operator(*op, atom);
  const Call* call = ir::as<Call>(expr);
  if (call != nullptr && (call->op == Operator::Select || call->op == Operator::IfThenElse)) {
    const Range64 a = range(atoms.read(call->args[1]));
    const Range64 b = range(atoms.read(call->args[2]));
    result = {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  --nesting_;
  return result;
}

// floormod lies in 0 .. b - 1, and is at most a dividend that is not negative; floordiv by what is
// at least 1 lies between its dividend and 0, or -1.
Range64 Knowledge::range_of_operator(Operator op, AtomId atom) {
  if (op != Operator::FloorDiv && op != Operator::FloorMod && op != Operator::Min &&
      op != Operator::Max) {
    return {};
  }
  const Atoms::Operands& operands = atoms.operands(atom);
  const Range64 b = range(operands.b);
  if (op == Operator::FloorMod) {
    if (b.low < 1) return {};
    Range64 result{0, plus(b.high, -1, Range64::kNone)};
    const Range64 a = range(operands.a);
    if (a.low >= 0) result.high = std::min(result.high, a.high);
    return result;
  }
  const Range64 a = range(operands.a);
  if (op == Operator::Min) return {std::min(a.low, b.low), std::min(a.high, b.high)};
  if (op == Operator::Max) return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (b.low < 1) return {};
  if (b.low == b.high) return {divided(a.low, b.low), divided(a.high, b.low)};
  return intersection({a.low >= 0 ? 0 : a.low, a.high <= 0 ? -1 + (a.high == 0) : a.high}, {});
}

}  // namespace kiln::analysis
