// Divides indices as unsigned numbers where neither operand is negative: rounding down is then what
// the machine does, and the code that tells the signs apart goes. GPUs have no instruction that
// divides, so each division is written out, one of signed 64 bits at great length.
//
//   if b*256 + t < m*n { .. floordiv(b*256 + t, n) .. }
//     ->
//   if b*256 + t < m*n { .. int64(truncdiv(uint64(b*256 + t), uint64(n))) .. }
//
// And in as large units as can be: floordiv(k*32 + j, 192) is floordiv(k, 6) where j < 32.
#include <algorithm>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

std::optional<Operator> truncating(Operator op) {
  switch (op) {
    case Operator::FloorDiv:
    case Operator::TruncDiv: return Operator::TruncDiv;
    case Operator::FloorMod:
    case Operator::TruncMod: return Operator::TruncMod;
    default: return std::nullopt;
  }
}

class DivideUnsigned : public Mutator {
 public:
  explicit DivideUnsigned(const Kernel& kernel) : facts_(facts_of_sizes(kernel)) {}

 private:
  using Mutator::visit;

  Expr visit(const Binary& node) override {
    // What several iterations have in common is seen to be the same then.
    const auto is_used = [&](const VarRef& var) { return uses_var(node.a, var); };
    if (node.type == kIndexType && std::ranges::any_of(serial_, is_used)) {
      if (const Expr coarser = analysis::coarser_division(node, facts_)) return (*this)(coarser);
    }
    const Expr rebuilt = Mutator::visit(node);
    const std::optional<Operator> op = truncating(node.op);
    // What is asked is asked of the operands as they were: nothing is known of casts.
    if (!op || node.type != kIndexType || !is_at_least(node.a, 0) || !is_at_least(node.b, 1)) {
      return rebuilt;
    }
    const Binary& divided = *as<Binary>(rebuilt);
    const Type natural{DType::UInt64, 1};
    const std::optional<int64_t> by = as_const_int(node.b);
    const Expr divisor = by ? IntImm::make(natural, *by) : Cast::make(natural, divided.b);
    return Cast::make(kIndexType, Binary::make(*op, Cast::make(natural, divided.a), divisor));
  }

  bool is_at_least(const Expr& expr, int64_t least) const {
    if (const std::optional<int64_t> value = as_const_int(expr)) return *value >= least;
    return analysis::can_prove(less_equal(index(least), expr), facts_);
  }

  /// The extent of a launch stays as the host computes it.
  Stmt visit(const For& loop) override {
    const bool is_launched = loop.loop_kind == LoopKind::ThreadIndex;
    const Expr extent = is_launched ? loop.extent : (*this)(loop.extent);
    const bool is_fixed = !reads_memory(loop.extent);
    facts_.push_range(loop.var, index(0), is_fixed ? loop.extent : Expr());
    if (!is_launched) serial_.push_back(loop.var);
    const Stmt body = (*this)(loop.body);
    if (!is_launched) serial_.pop_back();
    facts_.pop();
    if (extent == loop.extent && body == loop.body) return &loop;
    return For::make(loop.var, extent, loop.loop_kind, loop.thread, body);
  }

  Stmt visit(const If& node) override {
    const Expr condition = (*this)(node.condition);
    const bool is_fact = !reads_memory(node.condition);
    if (is_fact) facts_.push_condition(node.condition);
    const Stmt then_body = (*this)(node.then_body);
    if (is_fact) facts_.pop();
    const Stmt else_body = node.else_body ? (*this)(node.else_body) : Stmt();
    if (condition == node.condition && then_body == node.then_body && else_body == node.else_body) {
      return &node;
    }
    return If::make(condition, then_body, else_body, node.likely);
  }

  analysis::Facts facts_;
  std::vector<VarRef> serial_;  // of loops around
};

}  // namespace

ir::Kernel divide_unsigned(ir::Kernel kernel, const PassContext&) {
  kernel.body = DivideUnsigned(kernel)(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
