#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/dtype.h"

namespace kiln::language {

enum class Operator : uint8_t {
#define OPERATOR(Name, ...) Name,
#include "compiler/language/tables/operators.def"
#undef OPERATOR
};

enum class TypeRule : uint8_t {
  Same,
  SameInt,
  SameFloat,
  SameBits,
  Compare,
  Logic,
  Choose,
  FloatTest,
  IntToInt,
  Bits,
  FromBits,
};

/// Whether a result has the type of the operands, so that a literal's type follows from its place.
constexpr bool result_is_operand_type(TypeRule rule) {
  return rule != TypeRule::Compare && rule != TypeRule::FloatTest && rule != TypeRule::Bits &&
         rule != TypeRule::FromBits;
}

/// A row of the operator table.
struct OperatorRow {
  Operator op;
  std::string_view spelling;
  int arity;
  TypeRule type_rule;
  std::string_view infix;
  std::string_view accuracy;
  std::string_view doc;
};

std::span<const OperatorRow> operator_table();
const OperatorRow& row_of(Operator op);
std::optional<Operator> find_operator(std::string_view spelling);

/// The type of `op` applied to operands of these types. Throws InvalidArgument OPERAND_TYPE, naming
/// both types, when the table's rule does not hold.
DType result_type(Operator op, std::span<const DType> operands);

/// Functions of floats that take more than an instruction or two: exp to hypot, but fma.
constexpr bool is_function(Operator op) {
  return op >= Operator::Exp && op <= Operator::Hypot && op != Operator::Fma;
}

/// The unsigned integer as wide as a type.
DType bits_type(DType type);
/// The floating type that an operator of rule FromBits makes.
std::optional<DType> type_of_bits(Operator op);

enum class Combiner : uint8_t {
#define COMBINER(Name, ...) Name,
#include "compiler/language/tables/combiners.def"
#undef COMBINER
};

struct CombinerRow {
  Combiner combiner;
  std::string_view spelling;
  Operator op;
  std::string_view identity;
  std::string_view doc;
};

std::span<const CombinerRow> combiner_table();
const CombinerRow& row_of(Combiner combiner);
std::optional<Combiner> find_combiner(std::string_view spelling);

}  // namespace kiln::language
