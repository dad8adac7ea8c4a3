#pragma once

#include <span>

#include "compiler/codegen/llvm_float_builder.h"
#include "compiler/language/tables/operator.h"

namespace kiln::codegen {

/// exp, log, tanh and their like of float32, written out for vectors.
///
/// Each is an argument reduction and a polynomial, the same instructions for one lane and for many,
/// so that results do not depend on how a loop is vectorised. Infinities, nan, signed zeros and the
/// numbers below the normal range are as in C. What a function is off, in ulp, is measured over all
/// arguments, of tan, the arcs and the hyperbolic ones over every 4093rd, and stands at it.
///
/// The polynomials are minimax approximations by Remez's exchange algorithm, in 40 digits, of the
/// relative error of the function over the reduced range; their own error is below 2^-28.
struct ElementaryFunction {
  language::Operator op;
  /// The operands are float32, or vectors of it.
  llvm::Value* (*emit)(FloatBuilder& f, std::span<llvm::Value* const> operands);
};

/// Null for an operator that is not written out.
const ElementaryFunction* find_elementary(language::Operator op);

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
