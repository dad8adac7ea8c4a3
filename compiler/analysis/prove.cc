// The entrance to the analysis: facts as they are pushed, and the questions that passes ask. What
// follows from the facts is computed when it is first asked for, and kept while they stand.
#include "compiler/analysis/prove.h"

#include "compiler/analysis/knowledge.h"
#include "compiler/analysis/simplifier.h"
#include "compiler/ir/build.h"
#include "runtime/core/error.h"

namespace kiln::analysis {

Facts::Facts() = default;
Facts::Facts(const Facts& other) : entries_(other.entries_) {}
Facts& Facts::operator=(const Facts& other) {
  entries_ = other.entries_;
  knowledge_.reset();
  return *this;
}
Facts::Facts(Facts&&) noexcept = default;
Facts& Facts::operator=(Facts&&) noexcept = default;
Facts::~Facts() = default;

void Facts::push_range(const ir::VarRef& var, ir::Expr lower, ir::Expr upper) {
  KILN_CHECK(var && var->type == ir::kIndexType);
  entries_.push_back({Range{var, std::move(lower), std::move(upper)}, nullptr});
}

void Facts::push_condition(ir::Expr condition) {
  KILN_CHECK(condition && condition->type.element == DType::Bool);
  entries_.push_back({std::nullopt, std::move(condition)});
}

void Facts::pop() {
  KILN_CHECK(!entries_.empty());
  entries_.pop_back();
  // At once: what is pushed next must not be taken for what was here.
  if (knowledge_) knowledge_->follow_down(entries_.size());
}

Knowledge& Facts::knowledge() const {
  if (!knowledge_) knowledge_ = std::make_unique<Knowledge>();
  knowledge_->follow(entries_);
  return *knowledge_;
}

bool can_prove(const ir::Expr& condition, const Facts& facts) {
  return Simplifier(facts.knowledge()).proves(condition);
}

ir::Expr simplify(const ir::Expr& expr, const Facts& facts) {
  return Simplifier(facts.knowledge()).simplify(expr);
}

ir::Expr coarser_division(const ir::Binary& division, const Facts& facts) {
  const std::optional<int64_t> divisor = ir::as_const_int(division.b);
  if (!divisor || *divisor < 2) return nullptr;
  Simplifier simplifier(facts.knowledge());
  const Linear dividend = simplifier.linear(division.a);
  if (facts.knowledge().atoms.trust(dividend) == Trust::Wild) return nullptr;
  std::optional<Linear> result;
  if (division.op == ir::Operator::FloorDiv)
    result = simplifier.coarser_quotient(dividend, *divisor);
  if (division.op == ir::Operator::FloorMod)
    result = simplifier.coarser_remainder(dividend, *divisor);
  return result ? simplifier.written(*result) : nullptr;
}

}  // namespace kiln::analysis
