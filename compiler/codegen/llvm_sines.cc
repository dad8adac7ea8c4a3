// sin, cos and tan: x less the nearest multiple of pi/2, then a polynomial for the
// quarter. Where |x| is so large that the multiple would lose bits, the C library's functions go
// on.
#include <numbers>

#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

/// A function of the module that calls one of the C library for each lane.
llvm::Function* lanes_by_library(llvm::Module& module, const std::string& name, llvm::Type* type) {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const unsigned lanes = vector != nullptr ? vector->getNumElements() : 1;
  const std::string symbol = "kiln." + name + "." + std::to_string(lanes);
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

/// `inside`, but in lanes where |x| is past the limit, what the C library says.
Value* by_library_beyond(FloatBuilder& f, std::string name, Value* x, Value* inside) {
  if (!is_double(x)) name += 'f';
  Value* const is_beyond = f.b.CreateFCmpOGT(f.magnitude(x), f.constant(x, 48000, 0x1p30));
  Value* const any = x->getType()->isVectorTy() ? f.b.CreateOrReduce(is_beyond) : is_beyond;
  llvm::BasicBlock* const before = f.b.GetInsertBlock();
  llvm::Function* const here = before->getParent();
  auto* const beyond = llvm::BasicBlock::Create(f.b.getContext(), "beyond", here);
  auto* const end = llvm::BasicBlock::Create(f.b.getContext(), "in_range", here);
  f.b.CreateCondBr(any, beyond, end);
  f.b.SetInsertPoint(beyond);
  Value* const exact =
      f.b.CreateCall(lanes_by_library(*before->getModule(), name, x->getType()), {x});
  Value* const mixed = f.b.CreateSelect(is_beyond, exact, inside);
  f.b.CreateBr(end);
  f.b.SetInsertPoint(end);
  llvm::PHINode* const result = f.b.CreatePHI(x->getType(), 2);
  result->addIncoming(inside, before);
  result->addIncoming(mixed, beyond);
  return result;
}

/// x = n pi/2 + r, where r is at most pi/4.
struct Quarter {
  Value* r;
  Value* n;  // an integer
};

/// The multiple is subtracted in three parts: the first is exact up to the limit, from where on the
/// C library goes on; of float64 it always is, but the three have bits for no larger ones.
Quarter quarter_of(FloatBuilder& f, Value* x) {
  const FloatBuilder::Whole n = f.rounded(x, 2 * std::numbers::inv_pi);
  constexpr double kNarrow[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
  constexpr double kWide[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  Value* r = x;
  for (size_t i = 0; i < std::size(kNarrow); ++i)
    r = f.fma(n.value, f.constant(x, -kNarrow[i], -kWide[i]), r);
  return {r, n.integer};
}

Value* has_bit(FloatBuilder& f, Value* n, int64_t bit) {
  llvm::Type* const whole = n->getType();
  return f.b.CreateICmpNE(f.b.CreateAnd(n, integer(whole, bit)), integer(whole, 0));
}

/// The sine or cosine of the quarter. 1.6 ulp.
Value* sine_or_cosine(FloatBuilder& f, Value* x, bool of_cosine) {
  const auto [r, n] = quarter_of(f, x);
  Value* const square = f.b.CreateFMul(r, r);
  Value* const one = f.constant(x, 1);
  Value* const s =
      f.polynomial(square, {-0x1.555556p-3, 0x1.111108p-7, -0x1.a00f14p-13, 0x1.6cb7c0p-19},
                   {-0x1.5555555555548p-3, 0x1.111111110f7c9p-7, -0x1.a01a019bfd106p-13,
                    0x1.71de35670c6d5p-19, -0x1.ae5e59f140e37p-26, 0x1.5d8fa1ed82f14p-33});
  Value* const c =
      f.polynomial(square, {0x1.55554ap-5, -0x1.6c0c04p-10, 0x1.99daacp-16},
                   {0x1.555555555554bp-5, -0x1.6c16c16c14f8ap-10, 0x1.a01a019c838ddp-16,
                    -0x1.27e4f7ea3586bp-22, 0x1.1ee9d75141f4bp-29, -0x1.8fa46549d5babp-37});
  Value* const sine = f.fma(f.b.CreateFMul(s, square), r, r);
  Value* const cosine =
      f.fma(f.b.CreateFMul(square, square), c, f.fma(f.constant(x, -0.5), square, one));
  Value* const quarter = of_cosine ? f.b.CreateAdd(n, integer(n->getType(), 1)) : n;
  Value* const value = f.b.CreateSelect(has_bit(f, quarter, 1), cosine, sine);
  Value* result = f.b.CreateSelect(has_bit(f, quarter, 2), f.b.CreateFNeg(value), value);
  if (!of_cosine) result = f.b.CreateSelect(f.b.CreateFCmpOEQ(x, f.constant(x, 0)), x, result);
  return by_library_beyond(f, of_cosine ? "cos" : "sin", x, result);
}

Value* sine(FloatBuilder& f, Value* x) { return sine_or_cosine(f, x, /*of_cosine=*/false); }

Value* cosine(FloatBuilder& f, Value* x) { return sine_or_cosine(f, x, /*of_cosine=*/true); }

/// An odd polynomial of degree 15 or 31 of r, or -1 / it. 2.2 ulp.
Value* tangent(FloatBuilder& f, Value* x) {
  const auto [r, n] = quarter_of(f, x);
  Value* const square = f.b.CreateFMul(r, r);
  Value* const p = f.polynomial(
      square,
      {0x1.555560p-2, 0x1.110d8cp-3, 0x1.badc2ap-5, 0x1.5cacc6p-6, 0x1.63225ep-7, 0x1.6c8278p-14,
       0x1.1ee3fcp-8},
      {0x1.555555555555dp-2, 0x1.1111111110674p-3, 0x1.ba1ba1bab689dp-5, 0x1.664f485f0274cp-6,
       0x1.226e3a44b63aep-7, 0x1.d6d2f1a6d8edfp-9, 0x1.7db1005025ddcp-10, 0x1.34c1b45467226p-11,
       0x1.fede1d8c2d29bp-13, 0x1.601752de64a68p-14, 0x1.16fd5d72822a9p-14, -0x1.9f0a28ba2bbe6p-16,
       0x1.91b206da61325p-15, -0x1.90fe9e6881dfcp-16, 0x1.4602342e42bd4p-17});
  Value* const value = f.fma(f.b.CreateFMul(p, square), r, r);
  Value* const turned = f.b.CreateFDiv(f.constant(x, -1), value);
  Value* const quarter = f.b.CreateSelect(has_bit(f, n, 1), turned, value);
  Value* const result = f.b.CreateSelect(f.b.CreateFCmpOEQ(x, f.constant(x, 0)), x, quarter);
  return by_library_beyond(f, "tan", x, result);
}

}  // namespace

std::span<const ElementaryFunction> sines() {
  static constexpr ElementaryFunction kFunctions[] = {
      {Operator::Sin, of_one<sine>},
      {Operator::Cos, of_one<cosine>},
      {Operator::Tan, of_one<tangent>},
  };
  return kFunctions;
}

}  // namespace kiln::codegen
