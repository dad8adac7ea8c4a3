// What instructions make of the types of their operands.
#include "compiler/tile/result_type.h"

#include <fmt/ranges.h>

namespace kiln::tile {
namespace {

TileType type_of_mma(const Program& program, const Mma& mma, const Instruction& each) {
  require_operands(each, "mma", 3);
  const TileType& a = type_of_operand(program, each, 0);
  const TileType& b = type_of_operand(program, each, 1);
  const TileType& c = type_of_operand(program, each, 2);
  if (mma.in_tf32 && a.element != DType::Float32)
    refuse_program("mma reads tf32 of tiles of float32, not of {}", text(a));
  const bool are_byte_floats = is_float(a.element) && size_of(a.element) == 1;
  if (mma.is_fast && !are_byte_floats)
    refuse_program("mma adds up fast products of 8-bit floats, not of {}", text(a));
  const bool are_ints = is_factor_int(a.element) && is_factor_int(b.element);
  const bool is_float_factor = is_factor_float(a.element) || a.element == DType::Float32;
  const bool are_factors = are_ints || (is_float_factor && a.element == b.element);
  const bool fits = are_factors && c.element == sum_type_of(a.element) && a.shape.size() == 2 &&
                    b.shape.size() == 2 && a.shape[1] == b.shape[0] &&
                    c.shape == std::vector<int64_t>{a.shape[0], b.shape[1]};
  if (!fits) refuse_program("mma adds no product of {} and {} to {}", text(a), text(b), text(c));
  return c;
}

TileType type_of_apply(const Program& program, const Apply& apply, const Instruction& each) {
  const language::OperatorRow& row = language::row_of(apply.function);
  require_operands(each, row.spelling, static_cast<size_t>(row.arity));
  const TileType& last = type_of_operand(program, each, each.operands.size() - 1);
  if (!is_known(apply.function, last.element)) {
    refuse_program("{} is not done element by element on tiles of {}{}", row.spelling, last.element,
                   is_known(apply.function, DType::Float32) ? "; cast them first" : "");
  }
  TileType wanted = last;
  for (size_t i = 0; i < each.operands.size(); ++i) {
    const bool is_choice = apply.function == language::Operator::Select && i == 0;
    wanted.element = is_choice ? DType::Bool : last.element;
    if (type_of_operand(program, each, i) == wanted) continue;
    refuse_program("{} takes tiles of one type, but got {} and {}", row.spelling,
                   text(type_of_operand(program, each, i)), text(last));
  }
  const bool is_comparison = row.type_rule == language::TypeRule::Compare;
  return {is_comparison ? DType::Bool : last.element, last.shape};
}

TileType type_of_reduce(const Program& program, const Reduce& reduce, const Instruction& each) {
  require_operands(each, "reduce", 1);
  TileType type = type_of_operand(program, each, 0);
  const language::CombinerRow& row = language::row_of(reduce.combiner);
  const bool is_done = reduce.combiner == language::Combiner::Sum ||
                       reduce.combiner == language::Combiner::Min ||
                       reduce.combiner == language::Combiner::Max;
  if (!is_done || (type.element != DType::Float32 && type.element != DType::Int32))
    refuse_program("{} of {} is not done along a tile", row.spelling, type.element);
  if (reduce.dimension >= type.shape.size())
    refuse_program("the tile {} has no dimension {}", text(type), reduce.dimension);
  type.shape[reduce.dimension] = 1;
  return type;
}

}  // namespace

std::string text(const TileType& type) {
  return fmt::format("{}[{}]", type.element, fmt::join(type.shape, ", "));
}

const TileType& type_of_operand(const Program& program, const Instruction& instruction,
                                size_t operand) {
  return program.values[instruction.operands[operand]];
}

void require_operands(const Instruction& instruction, std::string_view what, size_t count) {
  if (instruction.operands.size() == count) return;
  refuse_program("{} takes {} operands, but got {}", what, count, instruction.operands.size());
}

TileType result_type(const Program& program, const Instruction& instruction) {
  if (const auto* apply = std::get_if<Apply>(&instruction.what))
    return type_of_apply(program, *apply, instruction);
  if (const auto* reduce = std::get_if<Reduce>(&instruction.what))
    return type_of_reduce(program, *reduce, instruction);
  const auto* mma = std::get_if<Mma>(&instruction.what);
  KILN_CHECK(mma != nullptr);
  return type_of_mma(program, *mma, instruction);
}

}  // namespace kiln::tile
