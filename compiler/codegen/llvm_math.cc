// The operator table in LLVM's instructions. Where LLVM leaves a result undefined or the CPU traps,
// operands are replaced before and the result is put right behind, without branches, so that
// vectors are computed in the same way; for constant operands LLVM folds all of that away.
// Functions of floats are written out elsewhere, others are calls of the C library lane by lane.
#include "compiler/codegen/llvm_math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_values.h"
#include "compiler/codegen/operator_code.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

using language::Operator;
using llvm::Value;

bool is_comparison(Operator op) {
  return language::row_of(op).type_rule == language::TypeRule::Compare;
}

}  // namespace

Value* MathEmitter::binary(Operator op, Value* x, Value* y, DType type) {
  if (is_small_float(type)) {
    Value* const a = widen_small_float(b_, x, type);
    Value* const b = widen_small_float(b_, y, type);
    Value* const result = binary(op, a, b, DType::Float32);
    return is_comparison(op) ? result : round_to_small_float(b_, result, type);
  }
  if (is_comparison(op)) return compare(op, x, y, type);
  return is_float(type) ? float_binary(op, x, y) : integer_binary(op, x, y, type);
}

Value* MathEmitter::call(Operator op, const std::vector<Value*>& args, DType type) {
  if (op == Operator::NextAfter) return next_after(args[0], args[1], type);
  if (op == Operator::BitsOf) return bits_of_number(args[0]);
  if (const auto made = language::type_of_bits(op)) {
    return b_.CreateBitCast(
        args[0], like(args[0]->getType(), value_type(b_.getContext(), ir::Type{*made, 1})));
  }
  if (is_small_float(type)) {
    std::vector<Value*> wide;
    for (Value* arg : args) {
      wide.push_back(widen_small_float(b_, arg, type));
    }
    Value* const result = call(op, wide, DType::Float32);
    const bool is_test = language::row_of(op).type_rule == language::TypeRule::FloatTest;
    return is_test ? result : round_to_small_float(b_, result, type);
  }
  if (is_float(type)) return float_call(op, args);
  return integer_call(op, args, type);
}

Value* MathEmitter::division_by_one(Value* x, Value* y) {
  // Of a few lanes the division itself is as fast.
  constexpr unsigned kManyLanes = 16;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
  const auto* const constant = llvm::dyn_cast<llvm::ConstantFP>(y);
  const bool is_exact = constant != nullptr && constant->getValueAPF().getExactInverse(nullptr);
  if (arithmetic_.fuses && lanes >= kManyLanes && !is_exact) return divided_by_one(b_, x, y);
  return b_.CreateFDiv(x, b_.CreateVectorSplat(lanes, y));
}

Value* MathEmitter::integer_binary(Operator op, Value* x, Value* y, DType type) {
  const bool is_signed = is_signed_int(type);
  switch (op) {
    case Operator::Add: return b_.CreateAdd(x, y);
    case Operator::Sub: return b_.CreateSub(x, y);
    case Operator::Mul: return b_.CreateMul(x, y);
    case Operator::FloorDiv:
    case Operator::FloorMod:
    case Operator::TruncDiv:
    case Operator::TruncMod: return integer_division(op, x, y, type);
    case Operator::Min:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x,
                                      y);
    case Operator::Max:
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x,
                                      y);
    case Operator::And:
    case Operator::BitAnd: return b_.CreateAnd(x, y);
    case Operator::Or:
    case Operator::BitOr: return b_.CreateOr(x, y);
    case Operator::BitXor: return b_.CreateXor(x, y);
    case Operator::ShiftLeft:
    case Operator::ShiftRight: return shift(op, x, y, type);
    default: KILN_CHECK(!"a binary operator of integers");
  }
}

Value* MathEmitter::integer_division(Operator op, Value* x, Value* y, DType type) {
  const bool is_signed = is_signed_int(type);
  const bool wants_quotient = op == Operator::FloorDiv || op == Operator::TruncDiv;
  llvm::Constant* const zero = integer(x->getType(), 0);
  llvm::Constant* const one = integer(x->getType(), 1);
  llvm::Constant* const minus_one = integer(x->getType(), -1);

  // The CPU traps on a zero divisor, and on the smallest number by -1: divide by 1 instead and put
  // the result right afterwards. For constant divisors all of this folds away.
  Value* const by_zero = b_.CreateICmpEQ(y, zero);
  Value* const by_minus_one = is_signed ? b_.CreateICmpEQ(y, minus_one) : nullptr;
  Value* const unsafe = is_signed ? b_.CreateOr(by_zero, by_minus_one) : by_zero;
  Value* const divisor = b_.CreateSelect(unsafe, one, y);
  Value* quotient = is_signed ? b_.CreateSDiv(x, divisor) : b_.CreateUDiv(x, divisor);
  Value* remainder = b_.CreateSub(x, b_.CreateMul(quotient, divisor));
  if (is_signed && (op == Operator::FloorDiv || op == Operator::FloorMod)) {
    Value* const signs_differ = b_.CreateICmpSLT(b_.CreateXor(remainder, divisor), zero);
    Value* const adjust = b_.CreateAnd(b_.CreateICmpNE(remainder, zero), signs_differ);
    quotient = b_.CreateSub(quotient, b_.CreateZExt(adjust, x->getType()));
    remainder = b_.CreateAdd(remainder, b_.CreateSelect(adjust, divisor, zero));
  }
  if (!wants_quotient) return remainder;  // of a division by 1 it is 0
  if (is_signed) quotient = b_.CreateSelect(by_minus_one, b_.CreateNeg(x), quotient);
  return b_.CreateSelect(by_zero, zero, quotient);
}

Value* MathEmitter::natural_division(Operator op, Value* x, Value* y) {
  return op == Operator::FloorDiv ? b_.CreateUDiv(x, y) : b_.CreateURem(x, y);
}

// By a count past the width LLVM gives poison: the count is replaced by 0, and the result by 0 or
// the sign.
Value* MathEmitter::shift(Operator op, Value* x, Value* y, DType type) {
  const int64_t width = bits_of(type);
  Value* const in_range = b_.CreateICmpULT(y, integer(y->getType(), width));
  Value* const count = b_.CreateSelect(in_range, y, integer(y->getType(), 0));
  llvm::Constant* const zero = integer(x->getType(), 0);
  if (op == Operator::ShiftLeft) return b_.CreateSelect(in_range, b_.CreateShl(x, count), zero);
  if (!is_signed_int(type)) return b_.CreateSelect(in_range, b_.CreateLShr(x, count), zero);
  Value* const fill = b_.CreateAShr(x, integer(x->getType(), width - 1));
  return b_.CreateSelect(in_range, b_.CreateAShr(x, count), fill);
}

Value* MathEmitter::float_binary(Operator op, Value* x, Value* y) {
  switch (op) {
    case Operator::Add: return b_.CreateFAdd(x, y);
    case Operator::Sub: return b_.CreateFSub(x, y);
    case Operator::Mul: return b_.CreateFMul(x, y);
    case Operator::Div: return b_.CreateFDiv(x, y);
    case Operator::FloorDiv:
    case Operator::FloorMod: return floor_division(op, x, y);
    case Operator::Min:
    case Operator::Max: {
      // One minps or maxps, which gives x when either is nan; then y when y is nan. Where y is a
      // constant the second part folds away. The freeze keeps LLVM from joining the two conditions,
      // which it has no such instruction for.
      Value* const takes_y = op == Operator::Min ? b_.CreateFCmpOLT(y, x) : b_.CreateFCmpOGT(y, x);
      Value* chosen = b_.CreateSelect(takes_y, y, x);
      if (!llvm::isa<llvm::Constant>(y)) chosen = b_.CreateFreeze(chosen);
      return b_.CreateSelect(b_.CreateFCmpUNO(y, y), y, chosen);
    }
    default: KILN_CHECK(!"a binary operator of floats");
  }
}

/// As numpy.floor_divide and numpy.remainder: the remainder is exact and has the sign of y; the
/// quotient is the whole number nearest to (x - remainder) / y.
Value* MathEmitter::floor_division(Operator op, Value* x, Value* y) {
  llvm::Constant* const zero = number(x->getType(), 0);
  llvm::Constant* const one = number(x->getType(), 1);
  const auto signed_zero = [&](Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, sign);
  };
  Value* const rest = library_call("fmod", {x, y});
  Value* const signs_differ = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(y, zero));
  Value* const adjusts = b_.CreateAnd(b_.CreateFCmpONE(rest, zero), signs_differ);
  if (op == Operator::FloorMod) {
    Value* const remainder = b_.CreateSelect(adjusts, b_.CreateFAdd(rest, y), rest);
    return b_.CreateSelect(b_.CreateFCmpOEQ(rest, zero), signed_zero(y), remainder);
  }
  Value* const ratio = b_.CreateFDiv(b_.CreateFSub(x, rest), y);
  Value* const lower = b_.CreateSelect(adjusts, b_.CreateFSub(ratio, one), ratio);
  Value* const whole = b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, lower);
  Value* const short_of = b_.CreateFCmpOGT(b_.CreateFSub(lower, whole), number(x->getType(), 0.5));
  Value* const nearest = b_.CreateSelect(short_of, b_.CreateFAdd(whole, one), whole);
  Value* const plain = b_.CreateFDiv(x, y);
  Value* const quotient =
      b_.CreateSelect(b_.CreateFCmpOEQ(lower, zero), signed_zero(plain), nearest);
  return b_.CreateSelect(b_.CreateFCmpOEQ(y, zero), plain, quotient);
}

// nan compares false, but for != .
Value* MathEmitter::compare(Operator op, Value* x, Value* y, DType type) {
  using Predicate = llvm::CmpInst::Predicate;
  const bool of_floats = is_float(type);
  const bool is_signed = is_signed_int(type);
  const auto pick = [&](Predicate floating, Predicate with_sign, Predicate without) {
    return of_floats ? floating : is_signed ? with_sign : without;
  };
  Predicate predicate = Predicate::ICMP_EQ;
  switch (op) {
    case Operator::Equal:
      predicate = pick(Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ);
      break;
    case Operator::NotEqual:
      predicate = pick(Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE);
      break;
    case Operator::Less:
      predicate = pick(Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT);
      break;
    case Operator::LessEqual:
      predicate = pick(Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE);
      break;
    case Operator::Greater:
      predicate = pick(Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT);
      break;
    case Operator::GreaterEqual:
      predicate = pick(Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE);
      break;
    default: KILN_CHECK(!"a comparison");
  }
  return b_.CreateCmp(predicate, x, y);
}

Value* MathEmitter::integer_call(Operator op, const std::vector<Value*>& args, DType type) {
  Value* const x = args[0];
  switch (op) {
    case Operator::Negative: return b_.CreateNeg(x);
    case Operator::Abs:
      // The smallest number has no positive counterpart and stays itself.
      return is_signed_int(type) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse())
                                 : x;
    case Operator::Not:
    case Operator::BitNot: return b_.CreateNot(x);
    case Operator::PopCount: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x);
    case Operator::Pow: return integer_power(x, args[1], type);
    case Operator::Clz: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b_.getFalse());
    default: KILN_CHECK(!"an operator of integers");
  }
}

Value* MathEmitter::float_call(Operator op, const std::vector<Value*>& args) {
  Value* const x = args[0];
  llvm::Type* const type = x->getType();
  if (const ElementaryFunction* function = find_elementary(op, is_double(x))) {
    FloatBuilder builder{b_, arithmetic_};
    return function->emit(builder, args);
  }
  const auto intrinsic = [&](llvm::Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, x); };
  const auto magnitude = [&] { return intrinsic(llvm::Intrinsic::fabs); };
  llvm::Constant* const infinity = llvm::ConstantFP::getInfinity(type);
  switch (op) {
    case Operator::Negative: return b_.CreateFNeg(x);
    case Operator::Abs: return magnitude();
    case Operator::Sqrt: return intrinsic(llvm::Intrinsic::sqrt);
    case Operator::Rsqrt: return b_.CreateFDiv(number(type, 1), intrinsic(llvm::Intrinsic::sqrt));
    case Operator::Ldexp: {
      llvm::Type* const whole = like(type, b_.getInt32Ty());
      Value* const exponent =
          b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {whole, type}, {args[1]});
      return b_.CreateIntrinsic(llvm::Intrinsic::ldexp, {type, whole}, {x, exponent});
    }
    case Operator::Fma: return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, args);
    case Operator::CopySign: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, args[1]);
    case Operator::Floor: return intrinsic(llvm::Intrinsic::floor);
    case Operator::Ceil: return intrinsic(llvm::Intrinsic::ceil);
    case Operator::Trunc: return intrinsic(llvm::Intrinsic::trunc);
    case Operator::Round: return intrinsic(llvm::Intrinsic::roundeven);
    case Operator::Tf32: return tensor_float(x);
    case Operator::IsNan: return b_.CreateFCmpUNO(x, x);
    case Operator::IsInf: return b_.CreateFCmpOEQ(magnitude(), infinity);
    case Operator::IsFinite: return b_.CreateFCmpONE(magnitude(), infinity);
    default: break;
  }
  return library_call(c_function(op), args);
}

/// The 13 lower bits of the mantissa of a float32 are 0; nan stays one.
Value* MathEmitter::tensor_float(Value* x) {
  if (is_double(x)) return x;
  llvm::Type* const type = x->getType();
  llvm::Type* const whole = like(type, b_.getInt32Ty());
  Value* const kept = b_.CreateAnd(b_.CreateBitCast(x, whole), integer(whole, ~int64_t{0x1fff}));
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, b_.CreateBitCast(kept, type));
}

namespace {

/// x^y by squares, as a function of the module, since it needs a loop.
llvm::Function* power_function(llvm::Module& module, llvm::Type* type, bool is_signed) {
  const unsigned width = type->getIntegerBitWidth();
  const std::string name = "kiln.pow." + std::string(is_signed ? "i" : "u") + std::to_string(width);
  if (llvm::Function* known = module.getFunction(name)) return known;
  auto* const function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                                llvm::Function::InternalLinkage, name, module);
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->addFnAttr(llvm::Attribute::WillReturn);
  llvm::LLVMContext& context = module.getContext();
  auto* const entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* const loop = llvm::BasicBlock::Create(context, "loop", function);
  auto* const done = llvm::BasicBlock::Create(context, "done", function);
  llvm::Value* const x = function->getArg(0);
  llvm::Value* const y = function->getArg(1);
  llvm::Constant* const zero = integer(type, 0);
  llvm::Constant* const one = integer(type, 1);

  llvm::IRBuilder<> b(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* const base = b.CreatePHI(type, 2);
  llvm::PHINode* const rest = b.CreatePHI(type, 2);
  llvm::PHINode* const product = b.CreatePHI(type, 2);
  llvm::Value* const is_odd = b.CreateTrunc(rest, b.getInt1Ty());
  llvm::Value* const next = b.CreateMul(product, b.CreateSelect(is_odd, base, one));
  llvm::Value* const halved = b.CreateLShr(rest, one);
  base->addIncoming(x, entry);
  base->addIncoming(b.CreateMul(base, base), loop);
  rest->addIncoming(y, entry);
  rest->addIncoming(halved, loop);
  product->addIncoming(one, entry);
  product->addIncoming(next, loop);
  b.CreateCondBr(b.CreateICmpNE(halved, zero), loop, done);

  b.SetInsertPoint(done);
  if (!is_signed) {
    b.CreateRet(next);
    return function;
  }
  // 1 / x^-y: of 1 and -1 it is a whole number, of others it is rounded to 0.
  llvm::Value* const alternating = b.CreateSelect(b.CreateTrunc(y, b.getInt1Ty()), x, one);
  llvm::Value* const is_unit = b.CreateICmpULE(b.CreateAdd(x, one), integer(type, 2));
  llvm::Value* const of_unit = b.CreateSelect(b.CreateICmpEQ(x, zero), zero, alternating);
  llvm::Value* const inverse = b.CreateSelect(is_unit, of_unit, zero);
  b.CreateRet(b.CreateSelect(b.CreateICmpSLT(y, zero), inverse, next));
  return function;
}

}  // namespace

Value* MathEmitter::integer_power(Value* x, Value* y, DType type) {
  llvm::Function* const function = power_function(
      *b_.GetInsertBlock()->getModule(), x->getType()->getScalarType(), is_signed_int(type));
  return by_lanes(function, {x, y});
}

// Said to touch no memory, since nobody reads errno: LLVM may then move and merge calls.
Value* MathEmitter::library_call(std::string_view name, const std::vector<Value*>& args) {
  llvm::Type* const type = args[0]->getType();
  llvm::Type* const element = type->getScalarType();
  const std::string symbol = std::string(name) + (element->isFloatTy() ? "f" : "");
  llvm::Module* const module = b_.GetInsertBlock()->getModule();
  const std::vector<llvm::Type*> types(args.size(), element);
  llvm::FunctionCallee callee =
      module->getOrInsertFunction(symbol, llvm::FunctionType::get(element, types, false));
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->addFnAttr(llvm::Attribute::WillReturn);

  return by_lanes(callee, args);
}

// A call has no vector form here; LLVM would not know of one either without a library of vectors.
Value* MathEmitter::by_lanes(llvm::FunctionCallee callee, const std::vector<Value*>& args) {
  llvm::Type* const type = args[0]->getType();
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr) return b_.CreateCall(callee, args);
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    std::vector<Value*> scalars;
    for (Value* arg : args) {
      scalars.push_back(b_.CreateExtractElement(arg, lane));
    }
    result = b_.CreateInsertElement(result, b_.CreateCall(callee, scalars), lane);
  }
  return result;
}

Value* MathEmitter::bits_of_number(Value* x) {
  llvm::Type* const element = x->getType()->getScalarType();
  if (element->isIntegerTy()) return x;  // the formats that LLVM code keeps as bits
  return b_.CreateBitCast(x, like(x->getType(), b_.getIntNTy(element->getScalarSizeInBits())));
}

/// One step in the bits, which are in the order of the magnitudes.
Value* MathEmitter::next_after(Value* x, Value* y, DType type) {
  const auto wide = [&](Value* value) {
    return is_small_float(type) ? widen_small_float(b_, value, type) : value;
  };
  Value* const a = wide(x);
  Value* const b = wide(y);
  llvm::Constant* const zero = number(a->getType(), 0);
  Value* const from = bits_of_number(x);
  Value* const to = bits_of_number(y);
  llvm::Type* const raw = from->getType();
  Value* const grows = b_.CreateICmpEQ(b_.CreateFCmpOLT(a, b), b_.CreateFCmpOGT(a, zero));
  Value* const moved =
      b_.CreateAdd(from, b_.CreateSelect(grows, integer(raw, 1), integer(raw, -1)));
  Value* const sign =
      b_.CreateAnd(to, b_.CreateShl(integer(raw, 1), integer(raw, bits_of(type) - 1)));
  Value* const smallest = b_.CreateOr(sign, integer(raw, 1));
  Value* result = b_.CreateSelect(b_.CreateFCmpOEQ(a, zero), smallest, moved);
  // One that compares equal, or nan, is the result itself.
  result = b_.CreateSelect(b_.CreateFCmpUEQ(a, b), to, result);
  result = b_.CreateSelect(b_.CreateFCmpUNO(a, a), from, result);
  return b_.CreateBitCast(result, x->getType());
}

}  // namespace kiln::codegen
