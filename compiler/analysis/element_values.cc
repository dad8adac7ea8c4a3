// What an element says of the loop variables that index it: indices taken apart into digits and
// put together again until they are variables.
//
//   [floordiv(b*256 + t, n), floormod(b*256 + t, n)]  ->  b*256 + t  ->  b and t
//   [i*8 + j, j], j < 12                              ->  j, i*8     ->  j and i
//
// The method is that of mixed-radix digits, as of the iteration maps of loop compilers: a few exact
// steps with proved side conditions, which hold for symbolic sizes too, where deciding linear
// arithmetic cannot help.
#include "compiler/analysis/element_values.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::analysis {
namespace {

using ir::Expr;
using ir::Operator;

constexpr int kMaxSteps = 48;
constexpr size_t kMaxValues = 16;

bool contains(const std::vector<AtomId>& atoms, AtomId atom) {
  return std::ranges::find(atoms, atom) != atoms.end();
}

bool is_division(const Expr& atom) {
  const std::optional<Operator> op = operator_of(atom);
  return op == Operator::FloorDiv || op == Operator::FloorMod;
}

/// The constant below which a condition keeps a variable.
std::optional<int64_t> end_in(const Expr& condition, const ir::VarRef& var) {
  const auto* binary = ir::as<ir::Binary>(condition);
  if (binary == nullptr) return std::nullopt;
  if (binary->op == Operator::And) {
    const std::optional<int64_t> a = end_in(binary->a, var);
    const std::optional<int64_t> b = end_in(binary->b, var);
    return a && b ? std::min(*a, *b) : a ? a : b;
  }
  if (binary->op != Operator::Less || binary->a.get() != var.get()) return std::nullopt;
  return ir::as_const_int(binary->b);
}

/// Where the loop ends, or where the conditions let nothing pass any more.
Expr end_of(const LoopRange& loop, const Place& place) {
  const std::optional<int64_t> extent = ir::as_const_int(loop.extent);
  if (!extent) return loop.extent;
  int64_t end = *extent;
  for (const Expr& condition : place.conditions)
    end = std::min(end, end_in(condition, loop.var).value_or(end));
  return end == *extent ? loop.extent : ir::index(end);
}

/// Where the loop begins, or where the conditions let something pass first.
int64_t begin_of(const LoopRange& loop, const Place& place) {
  int64_t first = 0;
  for (const Expr& condition : place.conditions) {
    const auto* binary = ir::as<ir::Binary>(condition);
    if (binary == nullptr || binary->op != Operator::Less || binary->b.get() != loop.var.get())
      continue;
    const std::optional<int64_t> before = ir::as_const_int(binary->a);
    if (before && *before < std::numeric_limits<int64_t>::max())
      first = std::max(first, *before + 1);
  }
  return first;
}

}  // namespace

ElementValues::ElementValues(std::vector<const Place*> places, Facts& facts)
    : places_(std::move(places)), facts_(facts), atoms_(facts.knowledge().atoms) {
  for (const Place* place : places_) {
    index_changes_ = index_changes_ || place->index_changes;
    for (const LoopRange& loop : place->loops) {
      const AtomId var = atoms_.id_of(loop.var);
      if (!contains(own_, var)) own_.push_back(var);
    }
  }
  const auto is_like_first = [&](const Place* place) {
    return are_alike_around(*places_[0], *place);
  };
  if (std::ranges::all_of(places_, is_like_first)) common_ = push_facts_of(*places_[0]);
  std::vector<Value> indices(places_[0]->indices.size(), Value(places_.size()));
  at_all_places([&](size_t p) {
    Simplifier simplifier(facts_.knowledge());
    for (size_t d = 0; d < indices.size(); ++d)
      indices[d][p] = canonical(simplifier.linear(places_[p]->indices[d]));
    return true;
  });
  for (Value& index : indices)
    keep(std::move(index));
}

ElementValues::~ElementValues() { pop_facts(common_); }

void ElementValues::pop_facts(size_t count) {
  for (size_t i = 0; i < count; ++i)
    facts_.pop();
}

/// Visits each place, under what is known there; false as soon as one visit is.
bool ElementValues::at_all_places(const std::function<bool(size_t)>& visit) {
  bool holds = true;
  for (size_t p = 0; p < places_.size() && holds;) {
    const Place& place = *places_[p];
    const size_t pushed = common_ > 0 ? 0 : push_facts_of(place);
    do {
      holds = visit(p);
      ++p;
    } while (holds && p < places_.size() && are_alike_around(place, *places_[p]));
    pop_facts(pushed);
  }
  return holds;
}

/// How many there are. What is read from memory may be something else by the time of the access.
size_t ElementValues::push_facts_of(const Place& place) {
  size_t count = 0;
  for (const LoopRange& loop : place.loops) {
    const bool is_fixed = !ir::reads_memory(loop.extent);
    facts_.push_range(loop.var, ir::index(begin_of(loop, place)),
                      is_fixed ? end_of(loop, place) : Expr());
    ++count;
  }
  for (const Expr& condition : place.conditions) {
    if (condition->type != ir::kBoolType || ir::reads_memory(condition)) continue;
    facts_.push_condition(condition);
    ++count;
  }
  return count;
}

bool ElementValues::is_still(AtomId atom) const {
  const std::vector<AtomId>& vars = atoms_.variables(atom);
  if (std::ranges::any_of(vars, [&](AtomId var) { return contains(own_, var); })) return false;
  return !index_changes_ || !ir::reads_memory(atoms_.expr(atom));
}

bool ElementValues::is_still(const Product& product) const {
  for (int i = 0; i < product.degree(); ++i) {
    if (!is_still(product[i])) return false;
  }
  return true;
}

/// Divisions of equal sums as one atom, whatever the order in which the sums were written.
AtomId ElementValues::canonical(AtomId division) {
  const std::optional<Operator> op = operator_of(atoms_.expr(division));
  const Atoms::Operands operands = atoms_.operands(division);
  for (const AtomId known : divisions_) {
    if (known == division) return known;
    const Atoms::Operands& other = atoms_.operands(known);
    const bool is_same =
        operator_of(atoms_.expr(known)) == op && other.a == operands.a && other.b == operands.b;
    if (is_same) return known;
  }
  divisions_.push_back(division);
  return division;
}

Linear ElementValues::canonical(const Linear& sum) {
  std::optional<Linear> result = linear_constant(sum.constant);
  for (const Term& term : sum.terms) {
    Product product;
    for (int i = 0; i < term.product.degree(); ++i) {
      const AtomId atom = term.product[i];
      product = *product.times(Product(is_division(atoms_.expr(atom)) ? canonical(atom) : atom));
    }
    result = add(*result, Linear{{{term.coefficient, product}}, 0});
    if (!result) return sum;
  }
  return *result;
}

/// Leaves out what is the same at all places and in all accesses; false when nothing is left.
bool ElementValues::normalise(Value& value) const {
  const std::vector<Term> first = value[0].terms;
  for (const Term& term : first) {
    const bool is_common =
        is_still(term.product) && std::ranges::all_of(value, [&](const Linear& sum) {
          const Term* match = sum.find(term.product);
          return match != nullptr && match->coefficient == term.coefficient;
        });
    if (!is_common) continue;
    for (Linear& sum : value)
      std::erase_if(sum.terms, [&](const Term& other) { return other.product == term.product; });
  }
  const int64_t least = std::ranges::min(value, {}, &Linear::constant).constant;
  for (Linear& sum : value) {
    if (__builtin_sub_overflow(sum.constant, least, &sum.constant)) return false;
  }
  return std::ranges::any_of(
      value, [](const Linear& sum) { return !sum.is_constant() || sum.constant != 0; });
}

void ElementValues::keep(Value value) {
  const bool says_something = normalise(value);
  if (says_something && values_.size() < kMaxValues) values_.push_back(std::move(value));
}

bool ElementValues::tell(const std::vector<ir::VarRef>& vars) {
  std::vector<AtomId> asked;
  for (const ir::VarRef& var : vars)
    asked.push_back(atoms_.id_of(var));
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    std::erase_if(asked, [&](AtomId var) { return !contains(own_, var); });
    if (asked.empty()) return true;
    if (step()) continue;
    if (std::ranges::none_of(asked, [&](AtomId var) { return tell_by_conditions(var); }))
      return false;
  }
  return false;
}

/// One step that leaves the values simpler; false when there is none.
bool ElementValues::step() {
  if (tell_one()) return true;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (split(i) || recombine(i) || eliminate(i)) return true;
  }
  return false;
}

/// The variable that a value is, but for a factor, at all places.
std::optional<AtomId> ElementValues::variable_of(const Value& value) const {
  const Linear& first = value[0];
  if (first.terms.size() != 1 || first.constant != 0) return std::nullopt;
  const Product& product = first.terms[0].product;
  if (product.degree() != 1 || !contains(own_, product[0])) return std::nullopt;
  const bool is_same =
      std::ranges::all_of(value, [&](const Linear& other) { return other == first; });
  return is_same ? std::optional(product[0]) : std::nullopt;
}

bool ElementValues::tell_one() {
  for (const Value& value : values_) {
    if (const std::optional<AtomId> var = variable_of(value)) {
      mark_told(*var);
      return true;
    }
  }
  return false;
}

void ElementValues::mark_told(AtomId var) {
  std::erase(own_, var);
  std::erase_if(values_, [&](Value& value) { return !normalise(value); });
}

/// A variable that conditions leave only one value, mostly its first, the same at all places.
bool ElementValues::tell_by_conditions(AtomId var) {
  std::optional<int64_t> only;
  const bool is_one = at_all_places([&](size_t p) {
    const Place& place = *places_[p];
    const auto loop = std::ranges::find_if(
        place.loops, [&](const LoopRange& each) { return atoms_.id_of(each.var) == var; });
    if (loop == place.loops.end()) return false;
    const int64_t least = begin_of(*loop, place);
    if (only.value_or(least) != least) return false;
    only = least;
    return Refuter(facts_.knowledge()).ordered(linear_atom(var), linear_constant(least));
  });
  if (is_one) mark_told(var);
  return is_one;
}

bool ElementValues::are_disjoint() {
  if (places_.size() != 2) return false;
  return std::ranges::any_of(values_, [&](const Value& value) {
    std::vector<Range64> ranges;
    at_all_places([&](size_t p) {
      ranges.push_back(facts_.knowledge().range(value[p]));
      return true;
    });
    return ranges[0].high < ranges[1].low || ranges[1].high < ranges[0].low;
  });
}

}  // namespace kiln::analysis
