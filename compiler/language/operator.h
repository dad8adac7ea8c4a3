#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/dtype.h"

namespace kiln::language {

enum class Operator : uint8_t {
#define OPERATOR(Name, ...) Name,
#include "compiler/language/operators.def"
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
};

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

enum class Combiner : uint8_t {
#define COMBINER(Name, ...) Name,
#include "compiler/language/combiners.def"
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
