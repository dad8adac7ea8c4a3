// Random accesses as schedules make them, with every element that they touch counted out: what the
// analysis says never meets must not.
#include <algorithm>
#include <array>
#include <iostream>
#include <unordered_map>

#include <gtest/gtest.h>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

using analysis::LoopRange;
using analysis::Place;
using ir::Expr;
using ir::Operator;

/// One number for each of the points that are counted out together.
using Column = std::vector<int64_t>;
using Columns = std::unordered_map<const ir::Node*, Column>;

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

int64_t applied(Operator op, int64_t a, int64_t b) {
  switch (op) {
    case Operator::Add: return a + b;
    case Operator::Sub: return a - b;
    case Operator::Mul: return a * b;
    case Operator::FloorDiv: return floor_div(a, b);
    case Operator::FloorMod: return b == 0 ? 0 : a - floor_div(a, b) * b;
    case Operator::Less: return a < b ? 1 : 0;
    default: ADD_FAILURE(); return 0;
  }
}

Column column_of(const Expr& expr, const Columns& columns, size_t points) {
  if (const auto* imm = ir::as<ir::IntImm>(expr)) return Column(points, imm->value);
  if (ir::as<ir::Var>(expr)) return columns.at(expr.get());
  const auto* node = ir::as<ir::Binary>(expr);
  Column a = column_of(node->a, columns, points);
  const Column b = column_of(node->b, columns, points);
  for (size_t i = 0; i < points; ++i)
    a[i] = applied(node->op, a[i], b[i]);
  return a;
}

struct Case {
  std::vector<ir::VarRef> sizes;
  std::vector<ir::VarRef> asked;
  std::vector<Place> places;
};

/// Draws loops, fuses, splits and tiles their variables, and stores at what comes out.
class DrawCase {
 public:
  explicit DrawCase(Random& random) : random_(random) {}

  Case operator()() {
    case_.sizes = {ir::Var::make("m"), ir::Var::make("n")};
    const int count = random_.between(2, 4);
    for (int i = 0; i < count; ++i)
      loops_.push_back({ir::Var::make("i" + std::to_string(i)), extent(count)});
    if (random_.chance(0.15)) case_.sizes.push_back(std::exchange(loops_.back(), loops_[0]).var);
    if (case_.sizes.size() > 2) loops_.pop_back();
    for (const LoopRange& loop : loops_) {
      if (random_.chance(0.6) || case_.asked.empty()) case_.asked.push_back(loop.var);
    }
    const Place first = place();
    const int places = random_.between(1, 3);
    for (int i = 0; i < places; ++i)
      case_.places.push_back(i == 0 ? first : variant(first));
    return std::move(case_);
  }

 private:
  /// n, or an extent that is a sum, as of windows and their paddings: it may be 0 or below.
  Expr size() {
    const Expr m = case_.sizes[0];
    const Expr n = case_.sizes[1];
    switch (random_.below(20)) {
      case 0: return m + n - 1;
      case 1: return n + ir::floordiv(m - 1, ir::index(2));
      case 2: return ir::floordiv(n * 2 - m, ir::index(2)) + 1;
      default: return random_.chance(0.5) ? m : n;
    }
  }

  Expr extent(int count) {
    const int most = count > 3 ? 3 : 4;
    return random_.chance(0.35) ? size() : ir::index(random_.between(1, most));
  }

  Expr factor() { return random_.chance(0.4) ? size() : ir::index(random_.between(1, 6)); }

  /// An index made of others, of a fusion taken apart for the most part.
  Place place() {
    Place result{.loops = loops_, .is_store = true};
    std::vector<Expr>& indices = result.indices;
    for (const LoopRange& loop : loops_)
      indices.push_back(loop.var);
    random_.shuffle(indices);
    const int steps = random_.between(1, 4);
    for (int i = 0; i < steps; ++i)
      change(result);
    // An element that is touched is one of a buffer without an empty dimension.
    if (random_.chance(0.5)) result.conditions.push_back(ir::less(ir::index(0), size()));
    while (indices.size() > 3)
      fuse(indices);
    return result;
  }

  void change(Place& place) {
    std::vector<Expr>& indices = place.indices;
    switch (random_.below(7)) {
      case 0:
      case 1: return fuse(indices);
      case 2:
      case 3: return split(place);
      case 4: indices.push_back(ir::floormod(random_.pick(indices), factor())); return;
      case 5:
        indices.erase(indices.begin() + random_.below(static_cast<int>(indices.size())));
        if (indices.empty()) indices.push_back(ir::index(0));
        return;
      default: {
        Expr& index = indices[random_.below(static_cast<int>(indices.size()))];
        index = random_.chance(0.5) ? factor() - index : index * factor() + 1;
      }
    }
  }

  /// a*n + b, most often with the extent of b.
  void fuse(std::vector<Expr>& indices) {
    if (indices.size() < 2) return;
    const Expr inner = indices.back();
    indices.pop_back();
    Expr by = factor();
    for (const LoopRange& loop : loops_) {
      if (loop.var.get() == inner.get() && random_.chance(0.7)) by = loop.extent;
    }
    indices.back() = indices.back() * by + inner;
  }

  /// [floordiv(x, n), floormod(x, n)], under a guard now and then.
  void split(Place& place) {
    std::vector<Expr>& indices = place.indices;
    const int which = random_.below(static_cast<int>(indices.size()));
    const Expr whole = indices[which];
    const Expr by = factor();
    indices[which] = ir::floordiv(whole, by);
    if (random_.chance(0.9)) indices.insert(indices.begin() + which + 1, ir::floormod(whole, by));
    if (random_.chance(0.5)) place.conditions.push_back(ir::less(whole, factor() * by));
  }

  Place variant(Place place) {
    place.is_store = random_.chance(0.5);
    if (random_.chance(0.5)) {
      Expr& index = place.indices[random_.below(static_cast<int>(place.indices.size()))];
      index = index + random_.between(-1, 2);
    }
    if (random_.chance(0.3)) {
      place.conditions.push_back(
          ir::less(random_.pick(loops_).var, random_.chance(0.3) ? size() : ir::index(2)));
    }
    if (random_.chance(0.2)) place.conditions.clear();
    if (random_.chance(0.5)) rename(place);
    return place;
  }

  /// Another loop of the same extent around the place, for each that is not asked for.
  void rename(Place& place) {
    ir::Substitution fresh;
    for (LoopRange& loop : place.loops) {
      if (std::ranges::find(case_.asked, loop.var) != case_.asked.end()) continue;
      const ir::VarRef var = ir::Var::make(loop.var->name + "_");
      fresh.emplace(loop.var, var);
      loop.var = var;
    }
    for (std::vector<Expr>* list : {&place.indices, &place.conditions}) {
      for (Expr& expr : *list)
        expr = ir::substitute(expr, fresh);
    }
  }

  Random& random_;
  Case case_;
  std::vector<LoopRange> loops_;
};

/// An access at one point.
struct Touched {
  std::array<int64_t, 3> element{};
  int64_t asked = 0;  // the values, as digits
  bool is_store = false;
};

/// All points of the place, the sizes being what they are.
void count_out(const Case& drawn, const Place& place, const std::vector<int64_t>& sizes,
               std::vector<Touched>& all) {
  size_t points = 1;
  Columns columns;
  for (size_t i = 0; i < drawn.sizes.size(); ++i)
    columns[drawn.sizes[i].get()] = {sizes[i]};
  for (const LoopRange& loop : place.loops) {
    const int64_t extent = column_of(loop.extent, columns, 1)[0];
    if (extent <= 0) return;
    // Each of the points so far, once for each value.
    for (auto& [var, column] : columns) {
      Column longer;
      for (int64_t i = 0; i < extent; ++i)
        longer.insert(longer.end(), column.begin(), column.end());
      column = std::move(longer);
    }
    Column values;
    for (int64_t i = 0; i < extent; ++i)
      values.insert(values.end(), points, i);
    columns[loop.var.get()] = std::move(values);
    points *= static_cast<size_t>(extent);
  }
  std::vector<Column> conditions;
  std::vector<Column> indices;
  std::vector<Column> asked;
  for (const Expr& condition : place.conditions)
    conditions.push_back(column_of(condition, columns, points));
  for (const Expr& index : place.indices)
    indices.push_back(column_of(index, columns, points));
  for (const ir::VarRef& var : drawn.asked)
    asked.push_back(columns.at(var.get()));
  for (size_t p = 0; p < points; ++p) {
    const auto fails = [&](const Column& condition) { return condition[p] == 0; };
    if (std::ranges::any_of(conditions, fails)) continue;
    Touched touched;
    for (size_t d = 0; d < indices.size(); ++d)
      touched.element[d] = indices[d][p];
    for (size_t v = 0; v < drawn.asked.size(); ++v)
      touched.asked = touched.asked * 16 + asked[v][p];
    touched.is_store = place.is_store;
    all.push_back(touched);
  }
}

/// Whether two iterations touch one element, and one of them stores to it.
bool meet(const Case& drawn, const std::vector<int64_t>& sizes) {
  std::vector<Touched> all;
  for (const Place& place : drawn.places)
    count_out(drawn, place, sizes, all);
  std::ranges::sort(all, {}, &Touched::element);
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    bool differ = false;
    bool is_stored = false;
    for (; end < all.size() && all[end].element == all[i].element; ++end) {
      differ = differ || all[end].asked != all[i].asked;
      is_stored = is_stored || all[end].is_store;
    }
    if (differ && is_stored) return true;
    i = end;
  }
  return false;
}

std::string shown(const Case& drawn) {
  std::string text;
  for (const Place& place : drawn.places) {
    for (const LoopRange& loop : place.loops)
      text += loop.var->name + " < " + ir::print(loop.extent) + "; ";
    for (const Expr& condition : place.conditions)
      text += "if " + ir::print(condition) + "; ";
    text += place.is_store ? "store [" : "load [";
    for (const Expr& index : place.indices)
      text += ir::print(index) + "; ";
    text += "]\n";
  }
  text += "of";
  for (const ir::VarRef& var : drawn.asked)
    text += " " + var->name;
  return text;
}

TEST(AffineEnumeration, NeverSaysNeverOfWhatMeets) {
  const uint64_t first = fuzz_seed();
  const int rounds = fuzz_rounds(100000);
  const std::vector<std::vector<int64_t>> sizes = {{3, 2, 1}, {2, 4, 3}, {0, 3, 2}};
  int never = 0;
  int proved = 0;
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    const Case drawn = DrawCase(random)();
    analysis::Facts facts;
    for (const ir::VarRef& size : drawn.sizes)
      facts.push_range(size, ir::index(0), nullptr);
    const bool is_proved =
        analysis::overlap_of(drawn.places, drawn.asked, facts).touch == analysis::Touch::Never;
    const bool meets =
        std::ranges::any_of(sizes, [&](const auto& values) { return meet(drawn, values); });
    never += meets ? 0 : 1;
    proved += is_proved ? 1 : 0;
    ASSERT_FALSE(is_proved && meets)
        << "to repeat: KILN_FUZZ_ROUNDS=1 KILN_FUZZ_SEED=" << seed << "\n"
        << shown(drawn);
  }
  std::cout << rounds << " cases; never, counted out: " << never << "; proved: " << proved << "\n";
  // The rounds say something only when there is much to prove, and much of it is.
  if (rounds < 1000) return;
  EXPECT_GT(never, rounds / 10);
  EXPECT_GT(proved, never / 2);
}

}  // namespace
}  // namespace kiln::testing
