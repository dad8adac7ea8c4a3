// Which divisions of a thread are worth a variable. NVRTC finds out itself that two are the same,
// but not before it has copied each into all iterations that it unrolls, and it leaves one in a
// loop that may divide by zero.
//
//   for k { s[k] = A[blockIdx_x / ((m + 63) / 64) * 64 + k] }
//     ->
//   quotient = blockIdx_x / ((m + 63) / 64);  for k { s[k] = A[quotient * 64 + k] }
#include "compiler/codegen/cuda_divisions.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {
namespace {

using namespace ir;

bool is_division(Operator op) {
  return op == Operator::FloorDiv || op == Operator::FloorMod || op == Operator::TruncDiv ||
         op == Operator::TruncMod;
}

/// A division by what the compiler does not know, perhaps of natural numbers and cast back.
const Binary* division_in(const Expr& expr) {
  const Cast* cast = as<Cast>(expr);
  const Binary* node = as<Binary>(cast != nullptr ? cast->value : expr);
  const bool is_index = expr->type == kIndexType;
  if (node == nullptr || !is_index || !is_division(node->op)) return nullptr;
  return as<IntImm>(node->b) == nullptr ? node : nullptr;
}

/// Whether an expression is made of variables alone, and of those that change in no loop.
class IsFixed : public Visitor {
 public:
  explicit IsFixed(const std::unordered_set<const Var*>& loops) : loops_(loops) {}
  bool holds = true;

 private:
  using Visitor::visit;
  void visit(const Var& var) override { holds = holds && !loops_.contains(&var); }
  void visit(const Load&) override { holds = false; }
  void visit(const ir::Call&) override { holds = false; }

  const std::unordered_set<const Var*>& loops_;
};

class FindDivisions : public Visitor {
 public:
  struct Found {
    Expr expr;
    int uses = 0;
  };
  std::vector<Found> found;

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    (*this)(loop.extent);
    loops_.insert(loop.var.get());
    ++depth_;
    (*this)(loop.body);
    --depth_;
  }
  void visit(const Cast& node) override {
    if (!is_noted(Expr(&node))) Visitor::visit(node);
  }
  void visit(const Binary& node) override {
    if (!is_noted(Expr(&node))) Visitor::visit(node);
  }

  bool is_noted(const Expr& expr) {
    if (division_in(expr) == nullptr) return false;
    IsFixed walk(loops_);
    walk(expr);
    if (!walk.holds) return false;
    auto same = std::ranges::find_if(
        found, [&](const Found& other) { return equal_trees(other.expr, expr); });
    if (same == found.end()) same = found.insert(found.end(), {expr});
    same->uses += depth_ > 0 ? 2 : 1;  // a loop needs it more than once
    return true;
  }

  std::unordered_set<const Var*> loops_;  // around, and those before: none has two
  int depth_ = 0;
};

}  // namespace

std::vector<KnownValue> repeated_divisions(const LaunchNest& nest) {
  FindDivisions walk;
  walk(nest.body);
  std::vector<KnownValue> values;
  for (const FindDivisions::Found& found : walk.found) {
    if (found.uses < 2) continue;
    const Operator op = division_in(found.expr)->op;
    const bool is_quotient = op == Operator::FloorDiv || op == Operator::TruncDiv;
    values.push_back({found.expr, Var::make(is_quotient ? "quotient" : "remainder")});
  }
  return values;
}

}  // namespace kiln::codegen
