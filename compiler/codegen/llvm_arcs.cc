// asin, acos, atan and atan2: odd polynomials near 0, elsewhere pi/2 less the arc of
// what is near 0: asin x = pi/2 - 2 asin sqrt((1 - x) / 2), atan x = pi/2 - atan(1 / x). pi/2 is
// added in two parts.
#include <numbers>

#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm_elementary.h"
#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/codegen/llvm_values.h"

namespace kiln::codegen {

using language::Operator;
using llvm::Value;

namespace {

/// So many quarters of a turn; and what their number in the format of `like` lacks.
Value* quarters(FloatBuilder& f, int count, Value* like) {
  return f.constant(like, count * 0x1.921fb6p+0, count * 0x1.921fb54442d18p+0);
}
Value* rest_of_quarters(FloatBuilder& f, int count, Value* like) {
  return f.constant(like, count * -0x1.777a5cp-25, count * 0x1.1a62633145c07p-54);
}

/// So many quarters of a turn, less an angle.
Value* quarters_less(FloatBuilder& f, int count, Value* angle) {
  return f.b.CreateFAdd(quarters(f, count, angle),
                        f.b.CreateFSub(rest_of_quarters(f, count, angle), angle));
}

/// (asin t - t) / t for t^2 = z up to 1/4
Value* sine_series(FloatBuilder& f, Value* z) {
  Value* const p = f.polynomial(
      z, {0x1.55554cp-3, 0x1.33387cp-4, 0x1.6caed2p-5, 0x1.0491a2p-5, 0x1.d91f98p-7, 0x1.3355c6p-5},
      {0x1.5555555555577p-3, 0x1.333333332e08ap-4, 0x1.6db6db721a030p-5, 0x1.f1c71a9218cc9p-6,
       0x1.6e8bdf316edb2p-6, 0x1.1c49ea947a7ecp-6, 0x1.ca201a84fb1e8p-7, 0x1.7580f1b26cd85p-7,
       0x1.6156ca7dd8077p-7, 0x1.e46158b8d8ba8p-9, 0x1.6419c03f9e704p-6, -0x1.58b23553aa6d2p-6,
       0x1.0b805164fd3e7p-5});
  return f.b.CreateFMul(p, z);
}

/// Of |x|: whether it is near 0, and the arc asin t, where t is |x| there, else sqrt((1 - |x|) /
/// 2).
struct Arc {
  Value* is_near;
  Value* angle;
};

Arc arc_of_sine(FloatBuilder& f, Value* a) {
  Value* const is_near = f.b.CreateFCmpOLE(a, f.constant(a, 0.5));
  Value* const rest = f.fma(f.constant(a, -0.5), a, f.constant(a, 0.5));
  Value* const z = f.b.CreateSelect(is_near, f.b.CreateFMul(a, a), rest);
  Value* const root = f.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, rest);
  Value* const t = f.b.CreateSelect(is_near, a, root);
  return {is_near, f.fma(sine_series(f, z), t, t)};
}

/// 2.3 ulp.
Value* arc_sine(FloatBuilder& f, Value* x) {
  const Arc arc = arc_of_sine(f, f.magnitude(x));
  Value* const rest = f.fma(f.constant(x, -2), arc.angle, rest_of_quarters(f, 1, x));
  Value* const far = f.b.CreateFAdd(rest, quarters(f, 1, x));
  return f.with_sign_of(f.b.CreateSelect(arc.is_near, arc.angle, far), x);
}

/// 1.0 ulp.
Value* arc_cosine(FloatBuilder& f, Value* x) {
  const Arc arc = arc_of_sine(f, f.magnitude(x));
  Value* const is_negative = f.b.CreateFCmpOLT(x, f.constant(x, 0));
  Value* const angle = f.with_sign_of(arc.angle, x);
  Value* const near = quarters_less(f, 1, angle);
  Value* const twice = f.b.CreateFAdd(arc.angle, arc.angle);
  Value* const far = f.b.CreateSelect(is_negative, quarters_less(f, 2, twice), twice);
  return f.b.CreateSelect(arc.is_near, near, far);
}

/// atan t for 0 <= t <= 1
Value* arc_of_tangent(FloatBuilder& f, Value* t) {
  Value* const z = f.b.CreateFMul(t, t);
  Value* const p = f.polynomial(
      z,
      {-0x1.555552p-2, 0x1.9997e0p-3, -0x1.247374p-3, 0x1.c4f1e2p-4, -0x1.68e704p-4, 0x1.1422d4p-4,
       -0x1.6e19c2p-5, 0x1.714b52p-6, -0x1.df9770p-8, 0x1.23f97ep-10},
      {-0x1.555555555554dp-2, 0x1.9999999998c27p-3, -0x1.2492492456ac0p-3,  0x1.c71c71b6292e1p-4,
       -0x1.745d15d0322fcp-4, 0x1.3b139bce93351p-4, -0x1.111032679ffb1p-4,  0x1.e1d487034adb3p-5,
       -0x1.aeda51716b34fp-5, 0x1.84b44d7e01bb2p-5, -0x1.5f241a6b4cb46p-5,  0x1.39043e9f37604p-5,
       -0x1.0c93e830c4509p-5, 0x1.ac77b48ddab3fp-6, -0x1.30f93ffcf4d17p-6,  0x1.72dabf0321c85p-7,
       -0x1.6fcf831265b14p-8, 0x1.1a02aa679365cp-9, -0x1.36d7fb35a260ap-11, 0x1.b3aa5ee5a955cp-14,
       -0x1.2262310f73c8dp-17});
  return f.fma(f.b.CreateFMul(p, z), t, t);
}

/// 1.1 ulp.
Value* arc_tangent(FloatBuilder& f, Value* x) {
  Value* const one = f.constant(x, 1);
  Value* const a = f.magnitude(x);
  Value* const is_far = f.b.CreateFCmpOGT(a, one);
  Value* const t = f.b.CreateSelect(is_far, f.b.CreateFDiv(one, a), a);
  Value* const angle = arc_of_tangent(f, t);
  return f.with_sign_of(f.b.CreateSelect(is_far, quarters_less(f, 1, angle), angle), x);
}

/// The angle of (|x|, |y|) by the smaller over the larger; then the quadrant. At most 2.5 ulp.
Value* arc_tangent2(FloatBuilder& f, Value* y, Value* x) {
  Value* const a = f.magnitude(x);
  Value* const b = f.magnitude(y);
  Value* const is_steep = f.b.CreateFCmpOGT(b, a);
  Value* const smaller = f.b.CreateSelect(is_steep, a, b);
  Value* const larger = f.b.CreateSelect(is_steep, b, a);
  // Of two zeros it is 0, of two infinities 1.
  Value* quotient = f.b.CreateFDiv(smaller, larger);
  Value* const infinity = llvm::ConstantFP::getInfinity(x->getType());
  quotient = f.b.CreateSelect(f.b.CreateFCmpOEQ(larger, f.constant(x, 0)), smaller, quotient);
  quotient = f.b.CreateSelect(f.b.CreateFCmpOEQ(smaller, infinity), f.constant(x, 1), quotient);
  Value* angle = arc_of_tangent(f, quotient);
  angle = f.b.CreateSelect(is_steep, quarters_less(f, 1, angle), angle);
  Value* const is_left = f.b.CreateICmpSLT(f.bits(x), integer(f.bits(x)->getType(), 0));
  angle = f.with_sign_of(f.b.CreateSelect(is_left, quarters_less(f, 2, angle), angle), y);
  return f.b.CreateSelect(f.b.CreateFCmpUNO(x, y), llvm::ConstantFP::getNaN(x->getType()), angle);
}

}  // namespace

std::span<const ElementaryFunction> arcs() {
  static constexpr ElementaryFunction kFunctions[] = {
      {Operator::Asin, of_one<arc_sine>},
      {Operator::Acos, of_one<arc_cosine>},
      {Operator::Atan, of_one<arc_tangent>},
      {Operator::Atan2, of_two<arc_tangent2>},
  };
  return kFunctions;
}

}  // namespace kiln::codegen
