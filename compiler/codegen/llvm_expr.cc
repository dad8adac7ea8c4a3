// Emits expressions. Index arithmetic is kept apart from arithmetic on data: it does not overflow,
// so it carries nsw, divisions of naturals are unsigned, and equal parts of the copies of an
// unrolled loop are emitted once (llvm_known.h). What lanes make of a choice, and in which order
// lanes are added up, is decided here too.
#include "compiler/codegen/llvm_expr.h"

#include <algorithm>
#include <bit>

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm_values.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using ir::as;
using ir::Expr;
using language::Operator;
using llvm::Value;

namespace {

std::optional<int64_t> constant_of(const Expr& expr) {
  if (const auto* imm = as<ir::IntImm>(expr)) return imm->value;
  return std::nullopt;
}

bool is_linear(Operator op) {
  return op == Operator::Add || op == Operator::Sub || op == Operator::Mul;
}

/// The same four lanes, about which LLVM knows nothing. LLVM 19 makes vpdpbusd of the sum of
/// products of uint8 and int8 where a CPU has it, and gets the sums of 8 and more lanes wrong.
Value* hidden_from_llvm(llvm::IRBuilderBase& b, Value* lanes) {
  auto* const type = llvm::FunctionType::get(lanes->getType(), {lanes->getType()}, false);
  return b.CreateCall(llvm::InlineAsm::get(type, "", "=x,0", /*hasSideEffects=*/false), {lanes});
}

}  // namespace

void ExprEmitter::bind(const ir::VarRef& var, Value* value, bool is_natural) {
  vars_[var] = value;
  if (is_natural) naturals_.insert(var);
}

void ExprEmitter::bind(const ir::BufferRef& buffer, BufferPlace place) { places_[buffer] = place; }

Value* ExprEmitter::value_of(const ir::VarRef& var) const {
  const auto found = vars_.find(var);
  KILN_CHECK(found != vars_.end());
  return found->second;
}

const BufferPlace& ExprEmitter::place_of(const ir::BufferRef& buffer) const {
  const auto found = places_.find(buffer);
  KILN_CHECK(found != places_.end());
  return found->second;
}

// What was computed in front of a branch is known in it, and what is computed inside is forgotten
// behind it: hence a memo for each level.
Value* ExprEmitter::emit(const Expr& expr, Use use) {
  for (const Memo& memo : memo_) {
    const auto known = memo.find({expr, use});
    if (known != memo.end()) return known->second;
  }
  Value* const value = compute(expr, use);
  memo_.back()[{expr, use}] = value;
  return value;
}

Value* ExprEmitter::compute(const Expr& expr, Use use) {
  llvm::Type* const type = value_type(b_.getContext(), expr->type);
  switch (expr->kind) {
    case ir::NodeKind::IntImm: return integer(type, as<ir::IntImm>(expr)->value);
    case ir::NodeKind::FloatImm: {
      const DType element = expr->type.element;
      llvm::Type* const wide = like(type, b_.getDoubleTy());
      return convert(b_, number(wide, as<ir::FloatImm>(expr)->value), DType::Float64, element);
    }
    case ir::NodeKind::Var: return value_of(as<ir::Var>(expr));
    case ir::NodeKind::Binary: return binary(*as<ir::Binary>(expr), expr, use);
    case ir::NodeKind::Call: return call(*as<ir::Call>(expr), use);
    case ir::NodeKind::Cast: {
      const Expr& inner = as<ir::Cast>(expr)->value;
      return convert(b_, emit(inner, use), inner->type.element, expr->type.element);
    }
    case ir::NodeKind::Load: return load(*as<ir::Load>(expr));
    case ir::NodeKind::Ramp: return ramp(*as<ir::Ramp>(expr));
    case ir::NodeKind::Broadcast: {
      const auto* node = as<ir::Broadcast>(expr);
      return splat(emit(node->value, use), node->lanes);
    }
    case ir::NodeKind::VectorReduce: return vector_reduce(*as<ir::VectorReduce>(expr));
    case ir::NodeKind::Dot: return dot(*as<ir::Dot>(expr));
    default: KILN_CHECK(!"an expression of lowered kernels");
  }
}

// Special forms first: division by one value for all lanes, a product and a sum rounded once, index
// arithmetic that cannot overflow, unsigned division. All else has the meaning of the operator
// table.
Value* ExprEmitter::binary(const ir::Binary& node, const Expr& expr, Use use) {
  const DType type = node.a->type.element;
  const auto* const same = as<ir::Broadcast>(node.b);
  if (node.op == Operator::Div && type == DType::Float32 && same != nullptr) {
    Value* const dividend = emit(node.a, use);
    return math_.division_by_one(dividend, emit(same->value, use));
  }
  if (Value* const sum = add_product(node, use)) return sum;
  Value* const x = emit(node.a, use);
  Value* const y = emit(node.b, use);
  if (use == Use::Index && type == DType::Int64 && is_linear(node.op) && is_plain_index(expr)) {
    return linear(node.op, x, y);
  }
  const bool is_division = node.op == Operator::FloorDiv || node.op == Operator::FloorMod ||
                           node.op == Operator::TruncDiv || node.op == Operator::TruncMod;
  if (is_division && type == DType::Int64 && is_natural(node.a)) {
    const std::optional<int64_t> divisor = as<ir::Broadcast>(node.b) != nullptr
                                               ? constant_of(as<ir::Broadcast>(node.b)->value)
                                               : constant_of(node.b);
    if (divisor && *divisor > 0) {
      const bool quotient = node.op == Operator::FloorDiv || node.op == Operator::TruncDiv;
      return math_.natural_division(quotient ? Operator::FloorDiv : Operator::FloorMod, x, y);
    }
  }
  return math_.binary(node.op, x, y, type);
}

/// x * y + z in one instruction, where just one of the terms is a product; null elsewhere. Which
/// sums are rounded once then follows from the expression alone.
Value* ExprEmitter::add_product(const ir::Binary& node, Use use) {
  const DType type = node.type.element;
  const bool is_wide = type == DType::Float32 || type == DType::Float64;
  if (!lane_access_.adds_products || node.op != Operator::Add || !is_wide) return nullptr;
  const auto product = [](const Expr& expr) {
    const auto* const binary = as<ir::Binary>(expr);
    return binary != nullptr && binary->op == Operator::Mul ? binary : nullptr;
  };
  const ir::Binary* const a = product(node.a);
  const ir::Binary* const b = product(node.b);
  if ((a == nullptr) == (b == nullptr)) return nullptr;
  const ir::Binary& factors = a != nullptr ? *a : *b;
  Value* const x = emit(factors.a, use);
  Value* const y = emit(factors.b, use);
  Value* const z = emit(a != nullptr ? node.b : node.a, use);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

/// Of indices, which do not overflow.
Value* ExprEmitter::linear(Operator op, Value* x, Value* y) {
  switch (op) {
    case Operator::Add:
      return known_.once(KnownValues::Kind::Add, x, y, 0, [&] { return b_.CreateNSWAdd(x, y); });
    case Operator::Sub:
      return known_.once(KnownValues::Kind::Sub, x, y, 0, [&] { return b_.CreateNSWSub(x, y); });
    default:
      return known_.once(KnownValues::Kind::Mul, x, y, 0, [&] { return b_.CreateNSWMul(x, y); });
  }
}

Value* ExprEmitter::splat(Value* value, int lanes) {
  return known_.once(KnownValues::Kind::Splat, value, nullptr, lanes,
                     [&] { return b_.CreateVectorSplat(static_cast<unsigned>(lanes), value); });
}

Value* ExprEmitter::call(const ir::Call& node, Use use) {
  if (node.op == Operator::IfThenElse) return choose(node, use);
  std::vector<Value*> args;
  for (const Expr& arg : node.args) {
    args.push_back(emit(arg, use));
  }
  if (node.op == Operator::Select) return b_.CreateSelect(args[0], args[1], args[2]);
  return math_.call(node.op, args, node.args[0]->type.element);
}

/// A select where computing the other side is harmless, a branch where it would read memory that
/// may not be there.
Value* ExprEmitter::choose(const ir::Call& node, Use use) {
  Expr condition = node.args[0];
  if (!reads_memory(node.args[1]) && !reads_memory(node.args[2])) {
    return b_.CreateSelect(emit(condition, Use::Data), emit(node.args[1], use),
                           emit(node.args[2], use));
  }
  if (const auto* same = as<ir::Broadcast>(condition)) condition = same->value;
  if (condition->type.lanes > 1) return choose_lanes(node, use);

  Value* const test = emit(condition, Use::Data);
  llvm::Function* const function = b_.GetInsertBlock()->getParent();
  auto* const yes = llvm::BasicBlock::Create(b_.getContext(), "then", function);
  auto* const no = llvm::BasicBlock::Create(b_.getContext(), "else", function);
  auto* const end = llvm::BasicBlock::Create(b_.getContext(), "chosen", function);
  b_.CreateCondBr(test, yes, no);
  const auto branch = [&](llvm::BasicBlock* block, const Expr& expr) {
    b_.SetInsertPoint(block);
    const KnownValues::Region region(known_);
    memo_.emplace_back();
    Value* const value = emit(expr, use);
    memo_.pop_back();
    llvm::BasicBlock* const last = b_.GetInsertBlock();
    b_.CreateBr(end);
    return std::pair(value, last);
  };
  const auto [a, a_block] = branch(yes, node.args[1]);
  const auto [b, b_block] = branch(no, node.args[2]);
  b_.SetInsertPoint(end);
  llvm::PHINode* const chosen = b_.CreatePHI(a->getType(), 2);
  chosen->addIncoming(a, a_block);
  chosen->addIncoming(b, b_block);
  return chosen;
}

/// Both sides, each with the loads of only those lanes that take it.
Value* ExprEmitter::choose_lanes(const ir::Call& node, Use use) {
  Value* const test = emit(node.args[0], Use::Data);
  Value* const outer = mask_;
  const auto side = [&](Value* lanes, const Expr& expr) {
    mask_ = outer != nullptr ? b_.CreateAnd(outer, lanes) : lanes;
    memo_.emplace_back();
    Value* const value = emit(expr, use);
    memo_.pop_back();
    mask_ = outer;
    return value;
  };
  Value* const a = side(test, node.args[1]);
  Value* const b = side(b_.CreateNot(test), node.args[2]);
  return b_.CreateSelect(test, a, b);
}

// As a vector of indices, for gathers; contiguous accesses do not come here.
Value* ExprEmitter::ramp(const ir::Ramp& node) {
  const auto lanes = static_cast<unsigned>(node.lanes);
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    steps.push_back(b_.getInt64(lane));
  }
  Value* const base = b_.CreateVectorSplat(lanes, emit(node.base, Use::Index));
  Value* const stride = b_.CreateVectorSplat(lanes, emit(node.stride, Use::Index));
  return b_.CreateAdd(base, b_.CreateMul(llvm::ConstantVector::get(steps), stride));
}

// In the order of the lanes where that matters, as the interpreter adds; else as a tree.
Value* ExprEmitter::vector_reduce(const ir::VectorReduce& node) {
  const DType type = node.start->type.element;
  const Operator op = language::row_of(node.combiner).op;
  Value* result = emit(node.start, Use::Data);
  Value* vector = emit(node.vector, Use::Data);
  int lanes = node.vector->type.lanes;
  const bool any_order = node.reassociate || !is_float(type);
  if (any_order && std::has_single_bit(static_cast<unsigned>(lanes))) {
    // Halves onto halves: the order is fixed, so results do not depend on how this is compiled.
    for (lanes /= 2; lanes >= 1; lanes /= 2) {
      if (lanes == 2 && op == Operator::Add && size_of(type) == 4 && !is_float(type)) {
        vector = hidden_from_llvm(b_, vector);
      }
      vector = math_.binary(op, slice(b_, vector, 0, lanes), slice(b_, vector, lanes, lanes), type);
    }
    return math_.binary(op, result, b_.CreateExtractElement(vector, uint64_t{0}), type);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    Value* const element = b_.CreateExtractElement(vector, static_cast<uint64_t>(lane));
    result = math_.binary(op, result, element, type);
  }
  return result;
}

// Seen through sums and multiples: ramp(i*4, 1, 8)*2 + broadcast(k, 8) is a progression of
// stride 2.
std::optional<ExprEmitter::Progression> ExprEmitter::progression(const Expr& index) {
  if (const auto* node = as<ir::Ramp>(index)) {
    const std::optional<int64_t> stride = constant_of(node->stride);
    if (!stride) return std::nullopt;
    return Progression{place_in(node->base), *stride};
  }
  if (const auto* node = as<ir::Broadcast>(index)) {
    return Progression{place_in(node->value), 0};
  }
  const auto* node = as<ir::Binary>(index);
  if (node == nullptr || !is_linear(node->op) || !is_plain_index(index)) return std::nullopt;
  if (node->op == Operator::Mul) {
    const auto* factor = as<ir::Broadcast>(node->b);
    const std::optional<int64_t> times =
        factor != nullptr ? constant_of(factor->value) : std::nullopt;
    const auto a = times ? progression(node->a) : std::nullopt;
    if (!a) return std::nullopt;
    Value* const base =
        linear(Operator::Mul, a->first.base, b_.getInt64(static_cast<uint64_t>(*times)));
    return Progression{{base, a->first.constant * *times}, a->stride * *times};
  }
  const auto a = progression(node->a);
  const auto b = a ? progression(node->b) : std::nullopt;
  if (!b) return std::nullopt;
  const int64_t sign = node->op == Operator::Add ? 1 : -1;
  return Progression{{linear(node->op, a->first.base, b->first.base),
                      a->first.constant + sign * b->first.constant},
                     a->stride + sign * b->stride};
}

bool ExprEmitter::is_plain_index(const Expr& expr) {
  const auto known = plain_.find(expr);
  if (known != plain_.end()) return known->second;
  bool plain = false;
  switch (expr->kind) {
    case ir::NodeKind::IntImm:
    case ir::NodeKind::Var: plain = true; break;
    case ir::NodeKind::Binary:
    case ir::NodeKind::Ramp:
    case ir::NodeKind::Broadcast:
      plain = std::ranges::all_of(ir::operands_of(expr),
                                  [this](const Expr& each) { return is_plain_index(each); });
      break;
    default: break;
  }
  plain_[expr] = plain;
  return plain;
}

bool ExprEmitter::is_natural(const Expr& expr) const {
  if (const auto* imm = as<ir::IntImm>(expr)) return imm->value >= 0;
  if (const auto* var = as<ir::Var>(expr)) return naturals_.contains(ir::VarRef(var));
  if (const auto* node = as<ir::Broadcast>(expr)) return is_natural(node->value);
  if (const auto* node = as<ir::Ramp>(expr)) {
    return is_natural(node->base) && is_natural(node->stride);
  }
  const auto* node = as<ir::Binary>(expr);
  if (node == nullptr || !is_natural(node->a)) return false;
  switch (node->op) {
    case Operator::Add:
    case Operator::Mul:
    case Operator::FloorDiv:
    case Operator::FloorMod:
    case Operator::Min:
    case Operator::Max: return is_natural(node->b);
    default: return false;
  }
}

bool ExprEmitter::reads_memory(const Expr& expr) {
  const auto known = reads_.find(expr);
  if (known != reads_.end()) return known->second;
  const bool reads = as<ir::Load>(expr) != nullptr ||
                     std::ranges::any_of(ir::operands_of(expr),
                                         [this](const Expr& each) { return reads_memory(each); });
  reads_[expr] = reads;
  return reads;
}

}  // namespace kiln::codegen
