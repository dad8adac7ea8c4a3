#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/kernel.h"

/// What print and parse must agree on: when a constant shows its type, and what a signature
/// implies.
namespace kiln::ir {

/// The element type a place asks for, if it asks for one.
using Expected = std::optional<DType>;

/// Which operands of an operator have one type T, and whether the result has it too.
struct SharedType {
  int first_operand;  // this one and those after it are T; those before are bool
  bool is_result;
};
SharedType shared_type_of(Operator op);

/// Whether the type of an expression shows without knowing its place: not of bare constants.
bool is_anchored(const Expr& expr);

/// What each operand of `op` is printed for. T is known from the place when the result is T, else
/// from the first anchored operand; when there is none, constants have their default type.
std::vector<Expected> expected_operands(Operator op, const std::vector<Expr>& args,
                                        Expected expected);

/// A constant as text, with `:type` after it when that is neither expected nor the default, which
/// is int64 for integers and float32 for floating numbers.
std::string literal_text(const IntImm& imm, Expected expected);
std::string literal_text(const FloatImm& imm, Expected expected);

/// The variables of the parameters' shapes, in order of appearance: the sizes of a kernel unless
/// the text lists others.
std::vector<VarRef> sizes_of(const std::vector<BufferRef>& parameters);

/// Whether a parameter is stored to: the outputs of a kernel unless the text says otherwise.
bool stores_to(const Stmt& body, const BufferRef& buffer);

}  // namespace kiln::ir
