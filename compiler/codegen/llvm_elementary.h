#pragma once

#include <initializer_list>
#include <optional>

#include <llvm/IR/IRBuilder.h>

#include "compiler/codegen/llvm_arithmetic.h"
#include "compiler/language/tables/operator.h"

namespace kiln::codegen {

/// exp, log, tanh and their like of float32, written out for vectors.
///
/// Each is an argument reduction and a polynomial, the same instructions for one lane and for many,
/// so that results do not depend on how a loop is vectorised. Infinities, nan, signed zeros and the
/// numbers below the normal range are as in C.
///
/// The polynomials are minimax approximations by Remez's exchange algorithm, in 40 digits, of the
/// relative error of the function over the reduced range; their own error is below 2^-28.
class ElementaryFunctions {
 public:
  ElementaryFunctions(llvm::IRBuilderBase& builder, Arithmetic arithmetic)
      : b_(builder), arithmetic_(arithmetic) {}

  /// Whether the operator on float32 is written out here.
  static bool has(language::Operator op);
  /// `args` are float32, or vectors of it. Accuracies, as measured over all arguments, in ulp:
  /// exp 0.83, exp2 0.8, log 0.81, log2 and log10 1.6, log1p 1.3, tanh 1.3, erf 1.2, sigmoid 2.3,
  /// sin and cos 1.6, pow 0.53.
  llvm::Value* call(language::Operator op, const std::vector<llvm::Value*>& args);

 private:
  using Value = llvm::Value;

  /// Rounded to a whole number, twice: as a float, and as an integer.
  struct Whole {
    Value* value;
    Value* integer;
  };
  /// |x| < 2^22, or nan, which gives any integer.
  Whole round(Value* x, double factor);
  struct MantissaExponent {
    Value* mantissa;  // less 1; in -0.3 .. 0.42
    Value* exponent;
  };
  MantissaExponent split(Value* x);

  Value* exponential(Value* x);
  Value* exponential2(Value* x);
  /// e^r for |r| < 0.35
  Value* exponential_near_0(Value* r);
  /// 2^n for -126 <= n <= 127
  Value* power_of_two(Value* exponent, Value* like);
  /// Whether x 2^n is one instruction.
  bool scales(Value* x) const;
  /// e^r 2^n
  Value* scaled_exponential(Value* r, const Whole& n);
  Value* logarithm(Value* x);
  /// The logarithm to a base: `per_e` is its logarithm of e, `high + low` that of 2.
  Value* logarithm_to(Value* x, double per_e, double high, double low);
  Value* logarithm1p(Value* x);
  /// log(1 + f) - f for f as split() gives it
  Value* logarithm_less_first(Value* f);
  /// The result where the argument of a logarithm is not positive and finite.
  Value* outside_of_logarithm(Value* x, Value* result);
  Value* hyperbolic_tangent(Value* x);
  Value* error_function(Value* x);
  Value* sigmoid(Value* x);
  Value* sine(Value* x, bool of_cosine);
  Value* power(Value* x, Value* y);
  Value* by_library_beyond(const char* name, Value* x, double limit, Value* inside);

  Value* constant(Value* like, double value);
  Value* fma(Value* a, Value* b, Value* c);
  /// c[0] + c[1] x + ..
  Value* polynomial(Value* x, std::initializer_list<double> c);
  Value* magnitude(Value* x);
  Value* with_sign_of(Value* x, Value* sign);
  Value* bits(Value* x);
  Value* from_bits(Value* x, Value* like);

  llvm::IRBuilderBase& b_;
  const Arithmetic arithmetic_;
};

}  // namespace kiln::codegen
