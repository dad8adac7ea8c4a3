// Dispatches on what an expression is: indices become sums and are written back, conditions are
// decided, lanes are folded as ramps, integer constants as the reference interpreter computes them.
// Floats are left alone, since any other order rounds differently.
#include "compiler/analysis/simplifier.h"

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/language/evaluate/scalar.h"

namespace kiln::analysis {
namespace {

using ir::Binary;
using ir::Broadcast;
using ir::Call;
using ir::Cast;
using ir::Expr;
using ir::FloatImm;
using ir::IntImm;
using ir::Load;
using ir::Operator;
using ir::Ramp;

language::Scalar scalar(const IntImm& imm) {
  return language::Scalar::of_int(imm.type.element, imm.value);
}

/// The operator on constants of integers.
Expr fold(Operator op, const std::vector<language::Scalar>& operands) {
  const language::Scalar value = language::apply_operator(op, operands);
  return IntImm::make({value.type, 1}, value.integer);
}

/// Integer arithmetic on constants, and what does nothing: x + 0, x * 1.
Expr folded(const Binary& node) {
  const IntImm* a = ir::as<IntImm>(node.a);
  const IntImm* b = ir::as<IntImm>(node.b);
  if (a != nullptr && b != nullptr) {
    return fold(node.op, {scalar(*a), scalar(*b)});
  }
  const bool adds = node.op == Operator::Add;
  const bool multiplies = node.op == Operator::Mul;
  if (b != nullptr && b->value == 0 && (adds || node.op == Operator::Sub)) return node.a;
  if (a != nullptr && a->value == 0 && adds) return node.b;
  if (b != nullptr && b->value == 1 && multiplies) return node.a;
  if (a != nullptr && a->value == 1 && multiplies) return node.b;
  return &node;
}

/// The form base + stride*lane of a vector.
struct Lanes {
  Expr base;
  Expr stride;  // null for a broadcast
};
std::optional<Lanes> lanes_of(const Expr& expr) {
  if (const Ramp* ramp = ir::as<Ramp>(expr)) return Lanes{ramp->base, ramp->stride};
  if (const Broadcast* broadcast = ir::as<Broadcast>(expr)) return Lanes{broadcast->value, nullptr};
  return std::nullopt;
}

/// Arithmetic on ramps and broadcasts, done on what they are made of. Null when there is no such
/// way.
Expr folded_lanes(const Binary& node) {
  const std::optional<Lanes> a = lanes_of(node.a);
  const std::optional<Lanes> b = lanes_of(node.b);
  if (!a || !b) return nullptr;
  const int lanes = node.a->type.lanes;
  const Expr base = Binary::make(node.op, a->base, b->base);
  if (!a->stride && !b->stride) return Broadcast::make(base, lanes);

  const Expr zero = ir::index(0);
  const Expr a_stride = a->stride ? a->stride : zero;
  const Expr b_stride = b->stride ? b->stride : zero;
  if (node.op == Operator::Add) return Ramp::make(base, a_stride + b_stride, lanes);
  if (node.op == Operator::Sub) return Ramp::make(base, a_stride - b_stride, lanes);
  if (node.op == Operator::Mul && !b->stride) {
    return Ramp::make(base, a_stride * b->base, lanes);
  }
  if (node.op == Operator::Mul && !a->stride) {
    return Ramp::make(base, b_stride * a->base, lanes);
  }
  return nullptr;
}

}  // namespace

// A variable with one value is that value.
Expr Simplifier::visit(const ir::Var& node) {
  if (node.type != ir::kIndexType) {
    const auto value = node.type == ir::kBoolType ? known(&node) : std::nullopt;
    return value ? ir::boolean(*value) : Expr(&node);
  }
  const Range64 range = knowledge_.range(atoms_.id_of(Expr(&node)));
  return range.low == range.high ? ir::index(range.low) : Expr(&node);
}

Expr Simplifier::visit(const Binary& node) {
  if (node.type == ir::kIndexType) return as_sum(&node);
  if (node.type == ir::kBoolType) {
    if (node.op == Operator::And) return conjunction(node);
    if (node.op == Operator::Or) return disjunction(node);
    if (node.a->type == ir::kIndexType) return comparison(node);
  }
  const Expr rebuilt = Mutator::visit(node);
  const Binary* binary = ir::as<Binary>(rebuilt);
  if (binary == nullptr) return rebuilt;
  if (node.type.lanes > 1) {
    const Expr lanes = folded_lanes(*binary);
    return lanes ? (*this)(lanes) : rebuilt;
  }
  const Expr result = folded(*binary);
  const auto value = node.type == ir::kBoolType ? known(result) : std::nullopt;
  return value ? ir::boolean(*value) : result;
}

Expr Simplifier::visit(const Call& node) {
  const bool chooses = node.op == Operator::Select || node.op == Operator::IfThenElse;
  if (chooses && node.args[0]->type == ir::kBoolType) return conditional(node);
  if (node.op == Operator::Negative && node.type == ir::kIndexType) return as_sum(&node);
  const Expr rebuilt = Mutator::visit(node);
  const Call* call = ir::as<Call>(rebuilt);
  if (call == nullptr) return rebuilt;
  if (call->op == Operator::Not && node.type.lanes == 1) {
    const Expr opposite = negated(call->args[0]);
    if (!ir::equal_trees(opposite, rebuilt)) return opposite;
  }
  const IntImm* imm = ir::as<IntImm>(call->args[0]);
  const bool makes_float = language::type_of_bits(call->op).has_value();
  if (imm != nullptr && call->args.size() == 1 && !makes_float)
    return fold(call->op, {scalar(*imm)});
  return rebuilt;
}

Expr Simplifier::visit(const Cast& node) {
  const Expr value = (*this)(node.value);
  if (value->type == node.type) return value;
  const DType to = node.type.element;
  if (const IntImm* imm = ir::as<IntImm>(value)) {
    if (!is_float(to)) {
      return IntImm::make(node.type, language::convert(to, scalar(*imm)).integer);
    }
    const bool exact = imm->value >= -256 && imm->value <= 256;  // in every floating type but fp8
    if (exact && bits_of(to) > 8) {
      return FloatImm::make(node.type, static_cast<double>(imm->value));
    }
  }
  return value == node.value ? Expr(&node) : Cast::make(node.type, value);
}

// A predicate that is always true goes.
Expr Simplifier::visit(const Load& node) {
  const Expr rebuilt = Mutator::visit(node);
  const Load* load = ir::as<Load>(rebuilt);
  const Broadcast* always = ir::as<Broadcast>(load->predicate);
  const Expr scalar = always != nullptr ? always->value : load->predicate;
  if (scalar && ir::is_const(scalar, 1)) return Load::make(load->buffer, load->indices);
  return rebuilt;
}

}  // namespace kiln::analysis
