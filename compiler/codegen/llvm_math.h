#pragma once

#include <llvm/IR/IRBuilder.h>

#include "compiler/codegen/llvm_arithmetic.h"
#include "compiler/language/tables/operator.h"
#include "runtime/core/dtype.h"

namespace kiln::codegen {

/// The operators of the table on values as value_type() says, in LLVM's instructions.
///
/// What C leaves open is defined here: an integer divided by zero is 0, and so is its remainder;
/// the smallest integer divided by -1 wraps; shifts by a negative count or past the width give what
/// the table says. Arithmetic of integers wraps.
class MathEmitter {
 public:
  /// `type` is that of the operands.
  llvm::Value* binary(language::Operator op, llvm::Value* a, llvm::Value* b, DType type);
  /// x / y in lanes of float32, where `y` is one value for all of them.
  llvm::Value* division_by_one(llvm::Value* x, llvm::Value* y);
  /// Calls other than Select and IfThenElse, which choose between expressions.
  llvm::Value* call(language::Operator op, const std::vector<llvm::Value*>& args, DType type);

  /// floordiv and floormod where the dividend is not negative and the divisor is positive.
  llvm::Value* natural_division(language::Operator op, llvm::Value* a, llvm::Value* b);

  MathEmitter(llvm::IRBuilderBase& builder, Arithmetic arithmetic)
      : b_(builder), arithmetic_(arithmetic) {}

 private:
  using Value = llvm::Value;
  using Operator = language::Operator;

  Value* integer_binary(Operator op, Value* x, Value* y, DType type);
  Value* integer_division(Operator op, Value* x, Value* y, DType type);
  Value* shift(Operator op, Value* x, Value* y, DType type);
  Value* float_binary(Operator op, Value* x, Value* y);
  Value* floor_division(Operator op, Value* x, Value* y);
  Value* compare(Operator op, Value* x, Value* y, DType type);
  Value* integer_call(Operator op, const std::vector<Value*>& args, DType type);
  Value* float_call(Operator op, const std::vector<Value*>& args);
  /// A function of the C library, lane by lane.
  Value* library_call(std::string_view name, const std::vector<Value*>& args);
  Value* by_lanes(llvm::FunctionCallee callee, const std::vector<Value*>& args);
  Value* integer_power(Value* x, Value* y, DType type);
  Value* next_after(Value* x, Value* y, DType type);
  Value* bits_of_number(Value* x);
  Value* tensor_float(Value* x);

  llvm::IRBuilderBase& b_;
  const Arithmetic arithmetic_;
};

}  // namespace kiln::codegen
