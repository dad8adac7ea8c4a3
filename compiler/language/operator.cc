#include "compiler/language/operator.h"

#include <algorithm>
#include <array>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

constexpr auto kOperators = std::to_array<OperatorRow>({
#define OPERATOR(Name, spelling, arity, rule, infix, accuracy, doc) \
  {Operator::Name, spelling, arity, TypeRule::rule, infix, accuracy, doc},
#include "compiler/language/operators.def"
#undef OPERATOR
});

constexpr auto kCombiners = std::to_array<CombinerRow>({
#define COMBINER(Name, spelling, Op, identity, doc) \
  {Combiner::Name, spelling, Operator::Op, identity, doc},
#include "compiler/language/combiners.def"
#undef COMBINER
});

[[noreturn]] void fail_operands(const OperatorRow& row, std::span<const DType> operands,
                                std::string_view wanted) {
  std::string given;
  for (const DType type : operands) {
    if (!given.empty()) given += " and ";
    given += name_of(type);
  }
  fail(ErrorKind::InvalidArgument, "OPERAND_TYPE", "{} takes {}, but got {}", row.spelling, wanted,
       given);
}

bool all_same(std::span<const DType> types) {
  return std::all_of(types.begin(), types.end(), [&](DType type) { return type == types[0]; });
}

/// What operands a rule asks for, as the message says it.
std::string_view wanted_by(TypeRule rule) {
  switch (rule) {
    case TypeRule::Same: return "numbers of one type";
    case TypeRule::SameInt: return "integers of one type";
    case TypeRule::SameFloat: return "floating numbers of one type";
    case TypeRule::SameBits: return "integers of one type, or bools";
    case TypeRule::Compare: return "operands of one type";
    case TypeRule::Logic: return "bools";
    case TypeRule::Choose: return "a bool and two values of one type";
    case TypeRule::FloatTest: return "a floating number";
    case TypeRule::IntToInt: return "an integer";
  }
  return "";
}

bool accepts(TypeRule rule, std::span<const DType> operands) {
  const DType first = operands[0];
  switch (rule) {
    case TypeRule::Same: return all_same(operands) && first != DType::Bool;
    case TypeRule::SameInt: return all_same(operands) && is_int(first);
    case TypeRule::SameFloat: return all_same(operands) && is_float(first);
    case TypeRule::SameBits: return all_same(operands) && !is_float(first);
    case TypeRule::Compare: return all_same(operands);
    case TypeRule::Logic: return all_same(operands) && first == DType::Bool;
    case TypeRule::Choose: return first == DType::Bool && operands[1] == operands[2];
    case TypeRule::FloatTest: return is_float(first);
    case TypeRule::IntToInt: return is_int(first);
  }
  return false;
}

}  // namespace

std::span<const OperatorRow> operator_table() { return kOperators; }
const OperatorRow& row_of(Operator op) { return kOperators[static_cast<size_t>(op)]; }

std::optional<Operator> find_operator(std::string_view spelling) {
  for (const OperatorRow& row : kOperators) {
    if (row.spelling == spelling) return row.op;
  }
  return std::nullopt;
}

DType result_type(Operator op, std::span<const DType> operands) {
  const OperatorRow& row = row_of(op);
  KILN_CHECK(static_cast<int>(operands.size()) == row.arity);
  if (!accepts(row.type_rule, operands)) fail_operands(row, operands, wanted_by(row.type_rule));
  switch (row.type_rule) {
    case TypeRule::Compare:
    case TypeRule::FloatTest: return DType::Bool;
    case TypeRule::Choose: return operands[1];
    default: return operands[0];
  }
}

std::span<const CombinerRow> combiner_table() { return kCombiners; }
const CombinerRow& row_of(Combiner combiner) { return kCombiners[static_cast<size_t>(combiner)]; }

std::optional<Combiner> find_combiner(std::string_view spelling) {
  for (const CombinerRow& row : kCombiners) {
    if (row.spelling == spelling) return row.combiner;
  }
  return std::nullopt;
}

}  // namespace kiln::language
