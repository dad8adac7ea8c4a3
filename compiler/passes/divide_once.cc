// Divides only the first lane of a vector of indices, where all of them lie between the same two
// multiples of the divisor: a CPU divides integers lane by lane, and a remainder that is a ramp is
// one load instead of a gather.
//
//   C[ramp(i, 1, 16)] = A[floormod(ramp(i + s, 1, 16), broadcast(n, 16))]
//     ->
//   if floormod(i + s, n) + 15 < n {
//     C[ramp(i, 1, 16)] = A[ramp(floormod(i + s, n), 1, 16)]
//   } else { the same as before }
//
// With 0 <= r = floormod(b, d) and r + s*l < d, b + s*l has the quotient of b and the remainder
// r + s*l; a divisor that is not positive never meets the condition.
//
// Before simplify, which puts the sums of such ramps together.
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// ramp(base, stride, lanes) divided by one number.
struct Division {
  const Ramp* ramp;
  Expr divisor;

  int64_t span() const { return *as_const_int(ramp->stride) * (ramp->lanes - 1); }
};

std::optional<Division> as_division(const Binary& node) {
  if (node.op != Operator::FloorDiv && node.op != Operator::FloorMod) return std::nullopt;
  const Ramp* ramp = as<Ramp>(node.a);
  const Broadcast* divisor = as<Broadcast>(node.b);
  if (ramp == nullptr || divisor == nullptr) return std::nullopt;
  constexpr int64_t kMostStride = 64;
  const int64_t stride = as_const_int(ramp->stride).value_or(0);
  if (stride < 1 || stride > kMostStride) return std::nullopt;
  if (reads_memory(ramp->base) || reads_memory(divisor->value)) return std::nullopt;
  const Division division{ramp, divisor->value};
  // By a small constant, few vectors would lie between two multiples.
  const auto constant = as_const_int(division.divisor);
  if (constant && *constant < 4 * division.span()) return std::nullopt;
  return division;
}

bool is_same(const Division& a, const Division& b) {
  return equal_trees(Expr(a.ramp), Expr(b.ramp)) && equal_trees(a.divisor, b.divisor);
}

class FindDivisions : public Visitor {
 public:
  std::vector<Division> found;

 private:
  using Visitor::visit;
  void visit(const Binary& node) override {
    Visitor::visit(node);
    const auto division = as_division(node);
    if (!division) return;
    const auto is_known = [&](const Division& each) { return is_same(each, *division); };
    if (std::ranges::none_of(found, is_known)) found.push_back(*division);
  }
};

class DivideFirstLanes : public Mutator {
  using Mutator::visit;
  Expr visit(const Binary& node) override {
    const auto division = as_division(node);
    if (!division) return Mutator::visit(node);
    const Ramp& ramp = *division->ramp;
    if (node.op == Operator::FloorDiv) {
      return Broadcast::make(floordiv(ramp.base, division->divisor), ramp.lanes);
    }
    return Ramp::make(floormod(ramp.base, division->divisor), ramp.stride, ramp.lanes);
  }
};

class DivideOnce : public Mutator {
  using Mutator::visit;
  Stmt visit(const Store& store) override {
    FindDivisions divisions;
    divisions(Stmt(&store));
    // Each doubles what there is to guess right; a definition has one or two.
    constexpr size_t kMost = 4;
    if (divisions.found.empty() || divisions.found.size() > kMost) return &store;
    Expr holds = boolean(true);
    for (const Division& each : divisions.found) {
      const Expr last = floormod(each.ramp->base, each.divisor) + each.span();
      holds = logical_and(holds, less(last, each.divisor));
    }
    return If::make(holds, DivideFirstLanes()(Stmt(&store)), &store);
  }
};

}  // namespace

Kernel divide_once(Kernel kernel, const PassContext&) {
  kernel.body = DivideOnce()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
