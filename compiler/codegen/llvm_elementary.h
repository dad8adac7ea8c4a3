#pragma once

#include <span>

#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/language/tables/operator.h"

namespace kiln::codegen {

/// exp, log, tanh and their like of float32 and float64, written out for vectors.
///
/// Each is an argument reduction and a polynomial, the same instructions for one lane and for many,
/// so that results do not depend on how a loop is vectorised. Infinities, nan, signed zeros and the
/// numbers below the normal range are as in C. What a function is off, in ulp, stands at it: of
/// float32 measured over all arguments, of float64 over 2^24 of them (tests/compiled).
///
/// The polynomials are minimax approximations by Remez's exchange algorithm, in 40 digits, of the
/// relative error of the function over the reduced range; their own error is below 2^-28, and below
/// 2^-57 of float64.
struct ElementaryFunction {
  enum class Of { Floats, Float32 };

  language::Operator op;
  /// The operands are float32 or float64, or vectors of one of them.
  llvm::Value* (*emit)(FloatBuilder& f, std::span<llvm::Value* const> operands);
  Of of = Of::Floats;  // both, or only this one
};

/// Null for an operator that is not written out for the type.
const ElementaryFunction* find_elementary(language::Operator op, bool is_double);

// Each family is a file, with a row for each of its functions.
std::span<const ElementaryFunction> arcs();
std::span<const ElementaryFunction> exponentials();
std::span<const ElementaryFunction> logarithms();
std::span<const ElementaryFunction> powers();
std::span<const ElementaryFunction> sines();

template <auto function>
llvm::Value* of_one(FloatBuilder& f, std::span<llvm::Value* const> operands) {
  return function(f, operands[0]);
}
template <auto function>
llvm::Value* of_two(FloatBuilder& f, std::span<llvm::Value* const> operands) {
  return function(f, operands[0], operands[1]);
}

}  // namespace kiln::codegen
