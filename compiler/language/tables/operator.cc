// The tables operators.def and combiners.def as rows, and the type rules: what operands an operator
// takes and what type comes of them.
//
//   add(int32, int64)  ->  refused: numbers of one type     less(a, b)  ->  bool
#include "compiler/language/tables/operator.h"

#include <algorithm>
#include <array>

#include "runtime/core/error.h"

namespace kiln::language {
namespace {

constexpr auto kOperators = std::to_array<OperatorRow>({
#define OPERATOR(Name, spelling, arity, rule, infix, accuracy, doc) \
  {Operator::Name, spelling, arity, TypeRule::rule, infix, accuracy, doc},
#include "compiler/language/tables/operators.def"
#undef OPERATOR
});

constexpr auto kCombiners = std::to_array<CombinerRow>({
#define COMBINER(Name, spelling, Op, identity, doc) \
  {Combiner::Name, spelling, Operator::Op, identity, doc},
#include "compiler/language/tables/combiners.def"
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
    case TypeRule::Bits: return "a floating number";
    case TypeRule::FromBits: return "an unsigned integer as wide as its result";
  }
  return "";
}

bool accepts(const OperatorRow& row, std::span<const DType> operands) {
  const DType first = operands[0];
  switch (row.type_rule) {
    case TypeRule::Same: return all_same(operands) && first != DType::Bool;
    case TypeRule::SameInt: return all_same(operands) && is_int(first);
    case TypeRule::SameFloat: return all_same(operands) && is_float(first);
    case TypeRule::SameBits: return all_same(operands) && !is_float(first);
    case TypeRule::Compare: return all_same(operands);
    case TypeRule::Logic: return all_same(operands) && first == DType::Bool;
    case TypeRule::Choose: return first == DType::Bool && operands[1] == operands[2];
    case TypeRule::FloatTest: return is_float(first);
    case TypeRule::IntToInt: return is_int(first);
    case TypeRule::Bits: return is_float(first);
    // The operator's name has the type: float16_of_bits takes 16 bits.
    case TypeRule::FromBits: return first == bits_type(*type_of_bits(row.op));
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
  if (!accepts(row, operands)) fail_operands(row, operands, wanted_by(row.type_rule));
  switch (row.type_rule) {
    case TypeRule::Compare:
    case TypeRule::FloatTest: return DType::Bool;
    case TypeRule::Choose: return operands[1];
    case TypeRule::Bits: return bits_type(operands[0]);
    case TypeRule::FromBits: return *type_of_bits(op);
    default: return operands[0];
  }
}

DType bits_type(DType type) {
  switch (bits_of(type)) {
    case 8: return DType::UInt8;
    case 16: return DType::UInt16;
    case 32: return DType::UInt32;
    default: return DType::UInt64;
  }
}

std::optional<DType> type_of_bits(Operator op) {
  switch (op) {
    case Operator::Float16OfBits: return DType::Float16;
    case Operator::BFloat16OfBits: return DType::BFloat16;
    case Operator::Float32OfBits: return DType::Float32;
    case Operator::Float64OfBits: return DType::Float64;
    case Operator::Float8E4M3FNOfBits: return DType::Float8E4M3FN;
    case Operator::Float8E5M2OfBits: return DType::Float8E5M2;
    default: return std::nullopt;
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
