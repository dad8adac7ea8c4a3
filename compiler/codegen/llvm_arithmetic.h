#pragma once

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>

namespace kiln::codegen {

/// Instructions for arithmetic on floats that a CPU may have.
struct Arithmetic {
  bool fuses = false;   // a multiply-add rounds once
  bool scales = false;  // x 2^n in one instruction, for vectors of 16 to 64 bytes
};

/// Whether a value is a vector of float32 or float64 that registers hold without a rest.
bool fills_registers(llvm::Value* x);

/// x 2^n rounded once, for whole n; also where it overflows, and below the normal range. Where n is
/// infinite, infinity and 0, even of a nan. To be called where Arithmetic::scales, of vectors that
/// fill registers.
llvm::Value* scaled(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* n);

/// x / y for a y that is the same in all lanes, rounded as the division is, but by its reciprocal
/// where no part of that can overflow or get lost. To be called where Arithmetic::fuses.
llvm::Value* divided_by_one(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y);

/// Whether the magnitudes of all lanes of a vector are at most `limit`, or, of float64, less than
/// 2^-20 of it above; no nan is.
llvm::Value* are_at_most(llvm::IRBuilderBase& builder, llvm::Value* x, double limit);

/// What is nearly always the first of two, by a jump. Each emits a value of one type.
llvm::Value* chosen(llvm::IRBuilderBase& builder, llvm::Value* condition,
                    llvm::function_ref<llvm::Value*()> usual,
                    llvm::function_ref<llvm::Value*()> other);

}  // namespace kiln::codegen
