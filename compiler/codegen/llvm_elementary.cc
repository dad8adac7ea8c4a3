#include "compiler/codegen/llvm_elementary.h"

#include <numbers>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm_values.h"
#include "runtime/core/error.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

constexpr double kAnchor = 12582912;      // 1.5 * 2^23: adding it rounds a float to a whole number
constexpr double kLn2High = 0.693359375;  // few bits, so that small multiples are exact
constexpr double kLn2Low = -2.12194440e-4;

}  // namespace

bool ElementaryFunctions::has(Operator op) {
  switch (op) {
    case Operator::Exp:
    case Operator::Exp2:
    case Operator::Log:
    case Operator::Log2:
    case Operator::Log10:
    case Operator::Log1p:
    case Operator::Tanh:
    case Operator::Erf:
    case Operator::Sigmoid:
    case Operator::Sin:
    case Operator::Cos:
    case Operator::Pow: return true;
    default: return false;
  }
}

Value* ElementaryFunctions::call(Operator op, const std::vector<Value*>& args) {
  Value* const x = args[0];
  switch (op) {
    case Operator::Exp: return exponential(x);
    case Operator::Exp2: return exponential2(x);
    case Operator::Log: return outside_of_logarithm(x, logarithm(x));
    case Operator::Log2: return outside_of_logarithm(x, logarithm_to(x, std::numbers::log2e, 1, 0));
    case Operator::Log10:
      return outside_of_logarithm(
          x, logarithm_to(x, std::numbers::log10e, 0.301025390625, 4.6050389811952137e-6));
    case Operator::Log1p: return logarithm1p(x);
    case Operator::Tanh: return hyperbolic_tangent(x);
    case Operator::Erf: return error_function(x);
    case Operator::Sigmoid: return sigmoid(x);
    case Operator::Sin: return sine(x, /*of_cosine=*/false);
    case Operator::Cos: return sine(x, /*of_cosine=*/true);
    case Operator::Pow: return power(x, args[1]);
    default: KILN_CHECK(!"a function that is written out");
  }
}

bool ElementaryFunctions::scales(Value* x) const {
  return arithmetic_.scales && fills_registers(x);
}

Value* ElementaryFunctions::constant(Value* like, double value) {
  return number(like->getType(), value);
}

Value* ElementaryFunctions::fma(Value* a, Value* b, Value* c) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value* ElementaryFunctions::polynomial(Value* x, std::initializer_list<double> c) {
  const double* at = c.end() - 1;
  Value* sum = constant(x, *at);
  while (at != c.begin())
    sum = fma(sum, x, constant(x, *--at));
  return sum;
}

Value* ElementaryFunctions::magnitude(Value* x) {
  return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
}

Value* ElementaryFunctions::with_sign_of(Value* x, Value* sign) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
}

Value* ElementaryFunctions::bits(Value* x) {
  const unsigned width = x->getType()->getScalarSizeInBits();
  return b_.CreateBitCast(x, like(x->getType(), b_.getIntNTy(width)));
}

Value* ElementaryFunctions::from_bits(Value* x, Value* like) {
  return b_.CreateBitCast(x, like->getType());
}

ElementaryFunctions::Whole ElementaryFunctions::round(Value* x, double factor) {
  Value* const anchor = constant(x, kAnchor);
  Value* const anchored = fma(x, constant(x, factor), anchor);
  return {b_.CreateFSub(anchored, anchor), b_.CreateSub(bits(anchored), bits(anchor))};
}

/// e^x = 2^n e^r with r in half a ln 2 around 0, where a polynomial of degree 6 is within 1 ulp.
Value* ElementaryFunctions::exponential(Value* x) {
  // Past these the result is infinity and 0; they keep n in range, and let nan through.
  Value* const low = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(x, -104)), constant(x, -104), x);
  // An instruction that scales needs no upper end: however wrong r may be, the result is infinite.
  Value* const t =
      scales(x) ? low
                : b_.CreateSelect(b_.CreateFCmpOGT(low, constant(x, 89)), constant(x, 89), low);
  const Whole n = round(t, std::numbers::log2e);
  Value* const r = fma(n.value, constant(x, -kLn2Low), fma(n.value, constant(x, -kLn2High), t));
  return scaled_exponential(r, n);
}

Value* ElementaryFunctions::exponential2(Value* x) {
  Value* const low = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(x, -151)), constant(x, -151), x);
  Value* const t = b_.CreateSelect(b_.CreateFCmpOGT(low, constant(x, 129)), constant(x, 129), low);
  const Whole n = round(t, 1);
  Value* const r = b_.CreateFMul(b_.CreateFSub(t, n.value), constant(x, std::numbers::ln2));
  return scaled_exponential(r, n);
}

Value* ElementaryFunctions::exponential_near_0(Value* r) {
  return polynomial(r, {1.0, 1.0, 4.999999345e-1, 1.666652069e-1, 4.166838736e-2, 8.368709832e-3,
                        1.381461309e-3});
}

Value* ElementaryFunctions::power_of_two(Value* exponent, Value* like) {
  llvm::Type* const whole = exponent->getType();
  Value* const biased = b_.CreateAdd(exponent, integer(whole, 127));
  return from_bits(b_.CreateShl(biased, integer(whole, 23)), like);
}

/// Without an instruction for it, the scale is applied in two steps, so that results below the
/// normal range round once more but are never lost.
Value* ElementaryFunctions::scaled_exponential(Value* r, const Whole& whole) {
  Value* const p = exponential_near_0(r);
  if (scales(r)) return scaled(b_, p, whole.value);
  Value* const n = whole.integer;
  Value* const first = b_.CreateAShr(n, integer(n->getType(), 1));
  Value* const second = b_.CreateSub(n, first);
  return b_.CreateFMul(b_.CreateFMul(p, power_of_two(first, r)), power_of_two(second, r));
}

/// x = 2^k m with m in sqrt(1/2) .. sqrt(2); numbers below the normal range are scaled up first.
ElementaryFunctions::MantissaExponent ElementaryFunctions::split(Value* x) {
  Value* const is_small = b_.CreateFCmpOLT(x, constant(x, 0x1p-126));
  Value* const scaled = b_.CreateSelect(is_small, b_.CreateFMul(x, constant(x, 0x1p23)), x);
  Value* const raw = bits(scaled);
  llvm::Type* const whole = raw->getType();
  constexpr int64_t kRootOfHalf = 0x3f3504f3;
  Value* const k =
      b_.CreateAShr(b_.CreateSub(raw, integer(whole, kRootOfHalf)), integer(whole, 23));
  Value* const m = from_bits(b_.CreateSub(raw, b_.CreateShl(k, integer(whole, 23))), x);
  Value* const exponent =
      b_.CreateSub(k, b_.CreateSelect(is_small, integer(whole, 23), integer(whole, 0)));
  return {b_.CreateFSub(m, constant(x, 1)), b_.CreateSIToFP(exponent, x->getType())};
}

Value* ElementaryFunctions::logarithm_less_first(Value* f) {
  Value* const square = b_.CreateFMul(f, f);
  Value* const p =
      polynomial(f, {0x1.555548p-2, -0x1.000006p-2, 0x1.99a4b6p-3, -0x1.555c4ep-3, 0x1.233768p-3,
                     -0x1.fc2202p-4, 0x1.e6f074p-4, -0x1.de3c38p-4, 0x1.1457c0p-4});
  return fma(constant(f, -0.5), square, b_.CreateFMul(b_.CreateFMul(f, square), p));
}

Value* ElementaryFunctions::logarithm(Value* x) {
  const MantissaExponent parts = split(x);
  Value* const f = parts.mantissa;
  Value* const square = b_.CreateFMul(f, f);
  Value* const p =
      polynomial(f, {0x1.555548p-2, -0x1.000006p-2, 0x1.99a4b6p-3, -0x1.555c4ep-3, 0x1.233768p-3,
                     -0x1.fc2202p-4, 0x1.e6f074p-4, -0x1.de3c38p-4, 0x1.1457c0p-4});
  // From the smallest to the largest.
  Value* sum =
      fma(parts.exponent, constant(x, kLn2Low), b_.CreateFMul(b_.CreateFMul(f, square), p));
  sum = b_.CreateFAdd(f, fma(constant(x, -0.5), square, sum));
  return fma(parts.exponent, constant(x, kLn2High), sum);
}

Value* ElementaryFunctions::logarithm_to(Value* x, double per_e, double high, double low) {
  const MantissaExponent parts = split(x);
  Value* const rest = logarithm_less_first(parts.mantissa);
  // The product with the first term is exact in two parts.
  Value* const factor = constant(x, per_e);
  const double rounded = static_cast<float>(per_e);
  Value* const first = b_.CreateFMul(parts.mantissa, factor);
  Value* const error = fma(parts.mantissa, factor, b_.CreateFNeg(first));
  Value* sum = fma(parts.mantissa, constant(x, per_e - rounded), error);
  sum = fma(rest, factor, sum);
  if (low != 0) sum = fma(parts.exponent, constant(x, low), sum);
  sum = b_.CreateFAdd(first, sum);
  return fma(parts.exponent, constant(x, high), sum);
}

Value* ElementaryFunctions::outside_of_logarithm(Value* x, Value* result) {
  llvm::Type* const type = x->getType();
  Value* const infinity = llvm::ConstantFP::getInfinity(type);
  Value* const zero = constant(x, 0);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, zero),
                           llvm::ConstantFP::getInfinity(type, /*Negative=*/true), result);
  result = b_.CreateSelect(b_.CreateFCmpOLT(x, zero), llvm::ConstantFP::getNaN(type), result);
  return b_.CreateSelect(b_.CreateFCmpOLT(x, infinity), result, x);
}

/// log(u) with u = 1 + x, and what was lost in rounding u.
Value* ElementaryFunctions::logarithm1p(Value* x) {
  Value* const one = constant(x, 1);
  Value* const u = b_.CreateFAdd(one, x);
  // The larger of the two is subtracted first, which is exact.
  Value* const from_x = b_.CreateFSub(x, b_.CreateFSub(u, one));
  Value* const from_one = b_.CreateFSub(one, b_.CreateFSub(u, x));
  Value* const lost = b_.CreateSelect(b_.CreateFCmpOGT(x, one), from_one, from_x);
  Value* const sum = b_.CreateFAdd(logarithm(u), b_.CreateFDiv(lost, u));
  Value* const result = outside_of_logarithm(u, sum);
  // Where u is 1 the result is x, with its sign.
  return b_.CreateSelect(b_.CreateFCmpOEQ(u, one), x, result);
}

/// Near 0 an odd polynomial of degree 11; else 1 - 2 / (e^2|x| + 1).
Value* ElementaryFunctions::hyperbolic_tangent(Value* x) {
  Value* const a = magnitude(x);
  Value* const square = b_.CreateFMul(x, x);
  Value* const p = polynomial(
      square, {-0x1.555534p-2, 0x1.110768p-3, -0x1.b84448p-5, 0x1.5256d4p-6, -0x1.76ac0ap-8});
  Value* const near = fma(b_.CreateFMul(p, square), a, a);
  // From 9.1 on the result is 1; up to there e^2|x| is in the normal range, one scale is enough.
  Value* const limit = constant(x, 9.1);
  Value* const t = b_.CreateSelect(b_.CreateFCmpOGT(a, limit), limit, a);
  const Whole n = round(t, 2 * std::numbers::log2e);
  Value* const r = fma(n.value, constant(x, -kLn2Low),
                       fma(n.value, constant(x, -kLn2High), b_.CreateFAdd(t, t)));
  Value* const e = b_.CreateFMul(exponential_near_0(r), power_of_two(n.integer, x));
  Value* const quotient = b_.CreateFDiv(constant(x, 2), b_.CreateFAdd(e, constant(x, 1)));
  Value* const far = b_.CreateFSub(constant(x, 1), quotient);
  Value* const is_near = b_.CreateFCmpOLT(a, constant(x, 0.625));
  return with_sign_of(b_.CreateSelect(is_near, near, far), x);
}

/// Near 0 an odd polynomial of degree 15; else 1 - e^q(|x|) with q close to log(erfc).
Value* ElementaryFunctions::error_function(Value* x) {
  Value* const a = magnitude(x);
  Value* const p =
      polynomial(b_.CreateFMul(x, x), {0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2df4p-4, -0x1.b80cb4p-6,
                                       0x1.54b5e4p-8, -0x1.a99ef4p-11, 0x1.5ac32ap-14});
  Value* const near = fma(p, a, a);
  // From 4 on the result is 1.
  Value* const t = b_.CreateSelect(b_.CreateFCmpOGT(a, constant(x, 4)), constant(x, 4), a);
  Value* const q = polynomial(t, {0x1.7a37bep-13, -0x1.2129acp+0, -0x1.443ed4p-1, -0x1.bbc386p-4,
                                  0x1.9c3344p-6, -0x1.12556cp-8, 0x1.cace0ep-12, -0x1.6667cap-16});
  Value* const far = b_.CreateFSub(constant(x, 1), exponential(q));
  Value* const is_near = b_.CreateFCmpOLT(a, constant(x, 0.9375));
  return with_sign_of(b_.CreateSelect(is_near, near, far), x);
}

/// By the exponential of -|x|, which cannot overflow, so that small results stay exact too.
Value* ElementaryFunctions::sigmoid(Value* x) {
  Value* const one = constant(x, 1);
  Value* const e = exponential(b_.CreateFNeg(magnitude(x)));
  Value* const above = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(x, 0)), e, one);
  return b_.CreateFDiv(above, b_.CreateFAdd(one, e));
}

/// x less the nearest multiple of pi/2, which is subtracted in three parts: the first is exact up
/// to the limit, from where on the C library goes on. Then the sine or cosine of that quarter.
Value* ElementaryFunctions::sine(Value* x, bool of_cosine) {
  constexpr double kLimit = 48000;
  const Whole n = round(x, 2 * std::numbers::inv_pi);
  Value* r = x;
  for (const double part : {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50})
    r = fma(n.value, constant(x, -part), r);
  Value* const square = b_.CreateFMul(r, r);
  Value* const one = constant(x, 1);
  Value* const s =
      polynomial(square, {-0x1.555556p-3, 0x1.111108p-7, -0x1.a00f14p-13, 0x1.6cb7c0p-19});
  Value* const c = polynomial(square, {0x1.55554ap-5, -0x1.6c0c04p-10, 0x1.99daacp-16});
  Value* const sine = fma(b_.CreateFMul(s, square), r, r);
  Value* const cosine = fma(b_.CreateFMul(square, square), c, fma(constant(x, -0.5), square, one));
  llvm::Type* const whole = n.integer->getType();
  Value* const quarter = of_cosine ? b_.CreateAdd(n.integer, integer(whole, 1)) : n.integer;
  const auto has_bit = [&](int64_t bit) {
    return b_.CreateICmpNE(b_.CreateAnd(quarter, integer(whole, bit)), integer(whole, 0));
  };
  Value* const value = b_.CreateSelect(has_bit(1), cosine, sine);
  Value* result = b_.CreateSelect(has_bit(2), b_.CreateFNeg(value), value);
  if (!of_cosine) result = b_.CreateSelect(b_.CreateFCmpOEQ(x, constant(x, 0)), x, result);
  return by_library_beyond(of_cosine ? "cosf" : "sinf", x, kLimit, result);
}

namespace {

/// A function of the module that calls one of the C library for each lane.
llvm::Function* lanes_by_library(llvm::Module& module, const char* name, llvm::Type* type) {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const unsigned lanes = vector != nullptr ? vector->getNumElements() : 1;
  const std::string symbol = std::string("kiln.") + name + "." + std::to_string(lanes);
  if (llvm::Function* known = module.getFunction(symbol)) return known;
  auto* const function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false),
                                                llvm::Function::InternalLinkage, symbol, module);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  llvm::Type* const element = type->getScalarType();
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, llvm::FunctionType::get(element, {element}, false));
  for (llvm::Function* const each : {function, llvm::cast<llvm::Function>(callee.getCallee())}) {
    each->setDoesNotThrow();
    each->setDoesNotAccessMemory();
    each->addFnAttr(llvm::Attribute::WillReturn);
  }
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  Value* const x = function->getArg(0);
  if (vector == nullptr) {
    b.CreateRet(b.CreateCall(callee, {x}));
    return function;
  }
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value* const value = b.CreateCall(callee, {b.CreateExtractElement(x, lane)});
    result = b.CreateInsertElement(result, value, lane);
  }
  b.CreateRet(result);
  return function;
}

}  // namespace

/// `inside`, but in lanes where |x| is past the limit, what the C library says.
Value* ElementaryFunctions::by_library_beyond(const char* name, Value* x, double limit,
                                              Value* inside) {
  Value* const is_beyond = b_.CreateFCmpOGT(magnitude(x), constant(x, limit));
  Value* const any = x->getType()->isVectorTy() ? b_.CreateOrReduce(is_beyond) : is_beyond;
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  llvm::Function* const here = before->getParent();
  auto* const beyond = llvm::BasicBlock::Create(b_.getContext(), "beyond", here);
  auto* const end = llvm::BasicBlock::Create(b_.getContext(), "in_range", here);
  b_.CreateCondBr(any, beyond, end);
  b_.SetInsertPoint(beyond);
  Value* const exact =
      b_.CreateCall(lanes_by_library(*before->getModule(), name, x->getType()), {x});
  Value* const mixed = b_.CreateSelect(is_beyond, exact, inside);
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  llvm::PHINode* const result = b_.CreatePHI(x->getType(), 2);
  result->addIncoming(inside, before);
  result->addIncoming(mixed, beyond);
  return result;
}

/// 2^(y log2 |x|) in float64, whose 53 bits leave room for the factor y; then C's rules about signs
/// and the cases where the product is not a number but the result is.
Value* ElementaryFunctions::power(Value* x, Value* y) {
  llvm::Type* const narrow = x->getType();
  llvm::Type* const wide = like(narrow, b_.getDoubleTy());
  Value* const infinity = llvm::ConstantFP::getInfinity(wide);
  Value* const a = b_.CreateFPExt(magnitude(x), wide);

  // log2 m = s q(s^2) with s = (m - 1) / (m + 1), m in sqrt(1/2) .. sqrt(2)
  llvm::Type* const whole = bits(a)->getType();
  constexpr int64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  Value* const k =
      b_.CreateAShr(b_.CreateSub(bits(a), integer(whole, kRootOfHalf)), integer(whole, 52));
  Value* const m = from_bits(b_.CreateSub(bits(a), b_.CreateShl(k, integer(whole, 52))), a);
  Value* const one = constant(a, 1);
  Value* const s = b_.CreateFDiv(b_.CreateFSub(m, one), b_.CreateFAdd(m, one));
  Value* const q = polynomial(b_.CreateFMul(s, s),
                              {0x1.71547652b8250p+1, 0x1.ec709dc53e4c3p-1, 0x1.2776c290e6fdbp-1,
                               0x1.a61a30c654036p-2, 0x1.4794ff877e586p-2, 0x1.21b60607d4c2bp-2});
  // The exponent fits 32 bits, from where every CPU converts vectors.
  Value* const exponent = b_.CreateTrunc(k, like(narrow, b_.getInt32Ty()));
  Value* logarithm = fma(s, q, b_.CreateSIToFP(exponent, wide));
  logarithm = b_.CreateSelect(b_.CreateFCmpOEQ(a, constant(a, 0)),
                              llvm::ConstantFP::getInfinity(wide, /*Negative=*/true), logarithm);
  logarithm = b_.CreateSelect(b_.CreateFCmpOEQ(a, infinity), infinity, logarithm);

  Value* const product = b_.CreateFMul(logarithm, b_.CreateFPExt(y, wide));
  Value* const low =
      b_.CreateSelect(b_.CreateFCmpOLT(product, constant(a, -200)), constant(a, -200), product);
  Value* const t = b_.CreateSelect(b_.CreateFCmpOGT(low, constant(a, 200)), constant(a, 200), low);
  Value* const anchor = constant(a, 6755399441055744);  // 1.5 * 2^52
  Value* const anchored = b_.CreateFAdd(t, anchor);
  Value* const r = b_.CreateFSub(t, b_.CreateFSub(anchored, anchor));
  Value* const p = polynomial(
      r, {0x1.00000002627d8p+0, 0x1.62e430c82c5a2p-1, 0x1.ebfbdadb13982p-3, 0x1.c6aed45e81603p-5,
          0x1.3b2dbc54cfd94p-7, 0x1.5f45986bcba3ep-10, 0x1.41d31fbf9865bp-13});
  Value* const scaled = b_.CreateAdd(bits(p), b_.CreateShl(bits(anchored), integer(whole, 52)));
  Value* result = b_.CreateFPTrunc(from_bits(scaled, a), narrow);

  Value* const zero = constant(x, 0);
  const auto is_whole = [&](Value* value) {
    return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value), value);
  };
  Value* const y_is_whole = is_whole(y);
  Value* const y_is_odd =
      b_.CreateAnd(y_is_whole, b_.CreateNot(is_whole(b_.CreateFMul(y, constant(y, 0.5)))));
  Value* const is_negative = b_.CreateICmpSLT(bits(x), integer(bits(x)->getType(), 0));
  result = b_.CreateSelect(b_.CreateAnd(is_negative, y_is_odd), b_.CreateFNeg(result), result);
  Value* const has_no_root =
      b_.CreateAnd(b_.CreateFCmpOLT(x, zero),
                   b_.CreateAnd(b_.CreateNot(y_is_whole), b_.CreateFCmpOLT(a, infinity)));
  Value* const is_nan = b_.CreateOr(has_no_root, b_.CreateFCmpUNO(x, y));
  result = b_.CreateSelect(is_nan, llvm::ConstantFP::getNaN(narrow), result);
  Value* const y_is_infinite =
      b_.CreateFCmpOEQ(magnitude(y), llvm::ConstantFP::getInfinity(narrow));
  Value* const unit = constant(x, 1);
  Value* const is_one =
      b_.CreateOr(b_.CreateOr(b_.CreateFCmpOEQ(y, zero), b_.CreateFCmpOEQ(x, unit)),
                  b_.CreateAnd(b_.CreateFCmpOEQ(x, constant(x, -1)), y_is_infinite));
  return b_.CreateSelect(is_one, unit, result);
}

}  // namespace kiln::codegen
