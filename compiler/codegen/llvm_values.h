#pragma once

#include <llvm/IR/IRBuilder.h>

#include "compiler/ir/expr.h"

namespace kiln::codegen {

/// How values of Kiln's types stand in LLVM's registers.
///
/// bool is i1; integers are themselves; float16 is half; bfloat16 is an i16 and the float8 types
/// are an i8 that hold their bits, since few CPUs know them. A type with lanes is a vector of
/// these.
llvm::Type* value_type(llvm::LLVMContext& context, ir::Type type);

/// How an element lies in memory: an integer of its size where value_type() is i1 or half, else the
/// same.
llvm::Type* memory_type(llvm::LLVMContext& context, DType type);

/// Whether arithmetic on the type is done in float32 and rounded after each operation.
bool is_small_float(DType type);

/// A constant of the LLVM type (a vector: in every lane).
llvm::Constant* number(llvm::Type* type, double value);
llvm::Constant* integer(llvm::Type* type, int64_t value);

/// The same shape (scalar or vector) with another element.
llvm::Type* like(llvm::Type* shape, llvm::Type* element);

/// Elements first .. first + count - 1 of a vector.
llvm::Value* slice(llvm::IRBuilderBase& builder, llvm::Value* vector, int first, int count);

/// Exact.
llvm::Value* widen_small_float(llvm::IRBuilderBase& builder, llvm::Value* value, DType from);
/// Rounds a float to the nearest, halves to even. float8_e4m3fn has no infinity: what is past its
/// range is nan.
llvm::Value* round_to_small_float(llvm::IRBuilderBase& builder, llvm::Value* value, DType to);

/// The value as another type, as Cast says: floats round to the nearest; a float becomes an integer
/// rounded to zero, clamped to the integer's range, nan as 0; integers wrap; bool is "is not zero".
llvm::Value* convert(llvm::IRBuilderBase& builder, llvm::Value* value, DType from, DType to);

}  // namespace kiln::codegen
