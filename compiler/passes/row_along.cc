// Reads at once what a loop over neighbours in memory reads one by one.
//
//   A[i, q*4 + k], k < 4                          ->  A[i, ramp(q*4, 1, 4)]
//   W[f, floordiv(q*2 + k, 3), floormod(q*2 + k, 3)], k < 2
//                                                 ->  the same with ramp(q*2, 1, 2) for q*2 + k
//
// A fused loop goes from the end of one row to the begin of the next: flatten_storage makes one
// ramp of its digits.
#include "compiler/passes/row_along.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/vector_index.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Index arithmetic for all values of a variable.
class OverLanes : public Mutator {
 public:
  OverLanes(const VarRef& var, int lanes) : var_(var), lanes_(lanes) {}

 private:
  using Mutator::visit;

  Expr visit(const Var& var) override {
    return &var == var_.get() ? Ramp::make(index(0), index(1), lanes_) : Expr(&var);
  }
  Expr visit(const Binary& node) override {
    return vector_binary(node.op, (*this)(node.a), (*this)(node.b));
  }

  const VarRef& var_;
  const int lanes_;
};

}  // namespace

Expr row_along(const Load& load, const VarRef& k, int count) {
  std::vector<Expr> indices = load.indices;
  const bool is_in_row = std::ranges::none_of(indices.begin(), indices.end() - 1,
                                              [&](const Expr& each) { return uses_var(each, k); });
  if (is_in_row) {
    const Expr first = analysis::simplify(substitute(indices.back(), {{k, index(0)}}));
    indices.back() = Ramp::make(first, index(1), count);
    return Load::make(load.buffer, std::move(indices));
  }
  for (Expr& each : indices) {
    if (uses_var(each, k)) each = widened(OverLanes(k, count)(each), count);
  }
  return Load::make(load.buffer, std::move(indices));
}

}  // namespace kiln::passes
