#pragma once

#include <initializer_list>

#include <llvm/IR/IRBuilder.h>

#include "compiler/codegen/llvm_arithmetic.h"

namespace kiln::codegen {

// ln 2 in two parts, for float32 and for float64. The first has few bits, so that small multiples
// are exact.
constexpr double kLn2High = 0.693359375, kWideLn2High = 0x1.62e42ffp-1;
constexpr double kLn2Low = -2.12194440e-4, kWideLn2Low = -0x1.718432a1b0e26p-35;

/// What the functions of float32 and float64 are written with: arithmetic on one lane or many, at
/// the place of `b`. Two numbers, or two lists, are that of float32 and that of float64.
struct FloatBuilder {
  using Value = llvm::Value;
  using Coefficients = std::initializer_list<double>;

  llvm::IRBuilderBase& b;
  const Arithmetic arithmetic;

  Value* constant(Value* like, double value);
  Value* constant(Value* like, double narrow, double wide);
  Value* fma(Value* x, Value* y, Value* z);
  /// c[0] + c[1] x + ..
  Value* polynomial(Value* x, Coefficients c);
  Value* polynomial(Value* x, Coefficients narrow, Coefficients wide);
  /// x, or the limit past it; nan stays.
  Value* at_least(Value* x, Value* limit);
  Value* at_most(Value* x, Value* limit);
  Value* magnitude(Value* x);
  Value* with_sign_of(Value* x, Value* sign);
  Value* bits(Value* x);
  Value* from_bits(Value* x, Value* like);

  /// Rounded to a whole number, twice: as a float, and as an integer.
  struct Whole {
    Value* value;
    Value* integer;
  };
  /// Of x * factor, where that is below 2^22 or 2^51; or nan, which gives any integer.
  Whole rounded(Value* x, double factor);
  /// 2^n in the normal range
  Value* power_of_two(Value* exponent, Value* like);
  /// x less a multiple of ln 2.
  Value* less_ln2(Value* x, Value* multiple);
  /// Whether x 2^n is one instruction.
  bool scales(Value* x) const;
};

bool is_double(llvm::Value* x);
/// Of the fraction's bits, 23 or 52.
int64_t fraction_bits(llvm::Value* x);
/// What is added to an exponent in the bits, 127 or 1023.
int64_t exponent_bias(llvm::Value* x);

}  // namespace kiln::codegen
