#pragma once

#include <initializer_list>

#include <llvm/IR/IRBuilder.h>

#include "compiler/codegen/llvm_arithmetic.h"

namespace kiln::codegen {

// ln 2 in two parts.
constexpr double kLn2High = 0.693359375;  // few bits, so that small multiples are exact
constexpr double kLn2Low = -2.12194440e-4;

/// What the functions of float32 are written with: arithmetic on one lane or many, at the place of
/// `b`.
struct FloatBuilder {
  using Value = llvm::Value;

  llvm::IRBuilderBase& b;
  const Arithmetic arithmetic;

  Value* constant(Value* like, double value);
  Value* fma(Value* x, Value* y, Value* z);
  /// c[0] + c[1] x + ..
  Value* polynomial(Value* x, std::initializer_list<double> c);
  Value* magnitude(Value* x);
  Value* with_sign_of(Value* x, Value* sign);
  Value* bits(Value* x);
  Value* from_bits(Value* x, Value* like);

  /// Rounded to a whole number, twice: as a float, and as an integer.
  struct Whole {
    Value* value;
    Value* integer;
  };
  /// Of x * factor, where that is below 2^22; or nan, which gives any integer.
  Whole rounded(Value* x, double factor);
  /// 2^n for -126 <= n <= 127
  Value* power_of_two(Value* exponent, Value* like);
  /// Whether x 2^n is one instruction.
  bool scales(Value* x) const;
};

}  // namespace kiln::codegen
