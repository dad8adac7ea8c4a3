// Whether iterations of loops touch the same elements: first for all places of a buffer at once,
// then, where that is not shown, for two at a time.
//
//   C[i*4 + j] for j < 4, of which variable i?   never: i is the index divided by 4
//   A[i] and A[i + 1], of which variable i?      may, and these two are named
#include "compiler/analysis/affine.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/analysis/element_values.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"

namespace kiln::analysis {
namespace {

using ir::Expr;
using ir::Operator;

constexpr size_t kMaxPairs = 128;

bool are_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal_trees(x, y); });
}

/// Whether what holds for the one holds for the other.
bool is_covered(const Place& place, const Place& by) {
  return (by.is_store || !place.is_store) && (place.is_atomic || !by.is_atomic) &&
         place.index_changes == by.index_changes && are_equal(place.indices, by.indices) &&
         are_alike_around(place, by);
}

/// The places but for those that say nothing more, by number.
std::vector<size_t> distinct(const std::vector<Place>& places) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto covers = [&](size_t j) {
      return j != i && is_covered(places[i], places[j]) &&
             (j < i || !is_covered(places[j], places[i]));
    };
    bool is_left_out = false;
    for (size_t j = 0; j < places.size() && !is_left_out; ++j)
      is_left_out = covers(j);
    if (!is_left_out) kept.push_back(i);
  }
  return kept;
}

bool is_unconditional(const Place& place) {
  return place.conditions.empty() && std::ranges::all_of(place.loops, [](const LoopRange& loop) {
           return ir::as_const_int(loop.extent).value_or(0) >= 1;
         });
}

/// Whether all iterations touch one element, and there are several.
bool is_one_element(const Place& a, const Place& b, const std::vector<ir::VarRef>& vars) {
  const auto moves = [&](const Expr& index) {
    return std::ranges::any_of(
        a.loops, [&](const LoopRange& loop) { return ir::uses_var(index, loop.var); });
  };
  const bool is_fixed = !a.index_changes && is_unconditional(a) && is_unconditional(b) &&
                        are_equal(a.indices, b.indices) && std::ranges::none_of(a.indices, moves);
  return is_fixed && std::ranges::any_of(a.loops, [&](const LoopRange& loop) {
           return std::ranges::find(vars, loop.var) != vars.end() &&
                  ir::as_const_int(loop.extent).value_or(0) >= 2;
         });
}

/// Whether an element at any of the places tells the variables.
bool tell(std::vector<const Place*> places, const std::vector<ir::VarRef>& vars, Facts& facts) {
  return ElementValues(std::move(places), facts).tell(vars);
}

/// Whether the index is the same number however the loops of the place run.
bool stands_still(const Place& place, const Expr& index) {
  return !ir::reads_memory(index) && std::ranges::none_of(place.loops, [&](const LoopRange& loop) {
    return ir::uses_var(index, loop.var);
  });
}

/// The divisor of an index that is a remainder of it.
std::optional<int64_t> divisor_of(const Expr& index) {
  const auto* remainder = ir::as<ir::Binary>(index);
  if (remainder == nullptr || remainder->op != Operator::FloorMod) return std::nullopt;
  return ir::as_const_int(remainder->b);
}

/// What the index is congruent to by its divisor: of a % n that is a, of any other the index.
Expr congruent_to(const Expr& index) {
  return divisor_of(index) ? ir::as<ir::Binary>(index)->a : index;
}

/// Whether the two are in different slots of a ring: S[t % 2, i] and S[(t + 1) % 2, j], or S[t, i]
/// and S[(t + 1) % 2, j]. Equal ones would be congruent by the divisor.
bool are_in_two_slots(const Place& a, const Place& b, const Facts& facts) {
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const Expr& x = a.indices[d];
    const Expr& y = b.indices[d];
    const std::optional<int64_t> of_x = divisor_of(x);
    const std::optional<int64_t> of_y = divisor_of(y);
    if (!of_x && !of_y) continue;
    const int64_t divisor = of_x ? *of_x : *of_y;
    if (divisor <= 1 || (of_x && of_y && *of_x != *of_y)) continue;
    if (!stands_still(a, x) || !stands_still(b, y)) continue;
    const auto apart = ir::as_const_int(simplify(congruent_to(x) - congruent_to(y), facts));
    if (apart && *apart % divisor != 0) return true;
  }
  return false;
}

/// Whether the two of them are never one element for different values of the variables; each of
/// them alone may be.
bool are_never_one(const Place& a, const Place& b, const std::vector<ir::VarRef>& vars,
                   Facts& facts) {
  if (&a == &b) return tell({&a}, vars, facts);
  if (are_in_two_slots(a, b, facts)) return true;
  ElementValues values({&a, &b}, facts);
  return values.tell(vars) || values.are_disjoint();
}

}  // namespace

bool are_alike_around(const Place& a, const Place& b) {
  const auto is_same = [](const LoopRange& x, const LoopRange& y) {
    return x.var == y.var && equal_trees(x.extent, y.extent);
  };
  return std::ranges::equal(a.loops, b.loops, is_same) && are_equal(a.conditions, b.conditions);
}

Place place_of(const Access& access, std::vector<LoopRange> loops) {
  return {access.indices,  std::move(loops), access.conditions,
          access.is_store, access.is_atomic, access.index_changes};
}

Place place_in(const ir::For& loop, const Access& access) {
  std::vector<LoopRange> loops = {{loop.var, loop.extent}};
  for (const ir::For* inner : access.loops)
    loops.push_back({inner->var, inner->extent});
  return place_of(access, std::move(loops));
}

Overlap overlap_of(const std::vector<Place>& places, const std::vector<ir::VarRef>& vars,
                   Facts& facts) {
  const std::vector<size_t> kept = distinct(places);
  if (kept.empty() || vars.empty()) return {};
  std::vector<const Place*> all;
  for (const size_t i : kept)
    all.push_back(&places[i]);
  if (tell(all, vars, facts)) return {};

  size_t pairs = 0;
  for (size_t a = 0; a < kept.size(); ++a) {
    for (size_t b = a; b < kept.size(); ++b) {
      const Place& x = *all[a];
      const Place& y = *all[b];
      if ((!x.is_store && !y.is_store) || (x.is_atomic && y.is_atomic)) continue;
      const bool is_asked = kept.size() > 1 && ++pairs <= kMaxPairs;
      if (is_asked && are_never_one(x, y, vars, facts)) continue;
      return {is_one_element(x, y, vars) ? Touch::Always : Touch::May, kept[a], kept[b]};
    }
  }
  return {};
}

bool are_distinct(const std::vector<Expr>& indices, const std::vector<LoopRange>& vars,
                  const std::vector<LoopRange>& others) {
  std::vector<LoopRange> loops = others;
  loops.insert(loops.end(), vars.begin(), vars.end());
  std::vector<ir::VarRef> asked;
  for (const LoopRange& loop : vars)
    asked.push_back(loop.var);
  const Place place{indices, std::move(loops), {}, true, false};
  Facts facts;
  return asked.empty() || tell({&place}, asked, facts);
}

std::string in_words(std::string_view buffer, const Place& a, const Place& b) {
  return fmt::format("{}[{}] and {}[{}]", buffer, fmt::join(a.indices, ", "), buffer,
                     fmt::join(b.indices, ", "));
}

std::optional<int64_t> stride_of(const Expr& expr, const ir::VarRef& var) {
  if (expr.get() == var.get()) return 1;
  if (!ir::uses_var(expr, var)) return 0;
  const auto* node = ir::as<ir::Binary>(expr);
  if (node == nullptr) return std::nullopt;

  const std::optional<int64_t> a = stride_of(node->a, var);
  const std::optional<int64_t> b = stride_of(node->b, var);
  if (!a || !b) return std::nullopt;
  int64_t result = 0;
  switch (node->op) {
    case Operator::Add:
      if (__builtin_add_overflow(*a, *b, &result)) return std::nullopt;
      return result;
    case Operator::Sub:
      if (__builtin_sub_overflow(*a, *b, &result)) return std::nullopt;
      return result;
    case Operator::Mul: {
      const std::optional<int64_t> factor = ir::as_const_int(*a == 0 ? node->a : node->b);
      if (!factor || __builtin_mul_overflow(*a == 0 ? *b : *a, *factor, &result)) {
        return std::nullopt;
      }
      return result;
    }
    default: return std::nullopt;
  }
}

}  // namespace kiln::analysis
