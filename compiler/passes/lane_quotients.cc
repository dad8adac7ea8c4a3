// What neighbours have in common: where the first one is a multiple of their number and so is the
// divisor, all have one quotient, and their remainders are neighbours as they are.
#include "compiler/passes/lane_quotients.h"

#include "compiler/analysis/affine.h"
#include "compiler/analysis/divisor.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

class OutOfQuotients : public Mutator {
 public:
  OutOfQuotients(const VarRef& var, int64_t extent) : var_(var), extent_(extent) {}

 private:
  using Mutator::visit;
  Expr visit(const Binary& node) override {
    const bool divides = node.op == Operator::FloorDiv || node.op == Operator::FloorMod;
    if (!divides || !uses_var(node.a, var_)) return Mutator::visit(node);
    const Expr a = (*this)(node.a);
    const Expr first = substitute(a, {{var_, index(0)}});
    const int64_t divisor = as_const_int(node.b).value_or(1);
    const bool is_same = analysis::stride_of(a, var_) == 1 && divisor > 0 &&
                         divisor % extent_ == 0 && analysis::divisor_of(first) % extent_ == 0;
    if (!is_same) return Binary::make(node.op, a, node.b);
    const Expr result = Binary::make(node.op, first, node.b);
    return node.op == Operator::FloorDiv ? result : result + Expr(var_);
  }

  const VarRef& var_;
  const int64_t extent_;
};

}  // namespace

Expr out_of_quotients(const Expr& expr, const VarRef& var, int64_t extent) {
  return OutOfQuotients(var, extent)(expr);
}

Stmt out_of_quotients(const Stmt& body, const VarRef& var, int64_t extent) {
  return OutOfQuotients(var, extent)(body);
}

}  // namespace kiln::passes
