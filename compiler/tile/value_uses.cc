// Which values of a program are read where.
#include "compiler/tile/value_uses.h"

namespace kiln::tile {

ValueUses::ValueUses(const Program& program)
    : makers_(program.values.size()), counts_(program.values.size()) {
  look_at(program.body);
}

const ValueUses::Factor* ValueUses::factor_of(const Instruction& load) const {
  const auto found = factors_.find(&load);
  return found == factors_.end() ? nullptr : &found->second;
}

void ValueUses::look_at(const std::vector<Instruction>& body) {
  for (const Instruction& each : body) {
    for (const ValueId operand : each.operands)
      ++counts_[operand];
    for (const ValueId result : each.results)
      makers_[result] = &each;
    if (std::holds_alternative<Broadcast>(each.what)) broadcast_.insert(each.operands[0]);
    if (std::holds_alternative<Mma>(each.what)) look_for_loads(each);
    const auto* loop = std::get_if<For>(&each.what);
    if (loop == nullptr) continue;
    for (const ValueId carried : loop->carried)
      makers_[carried] = &each;
    for (const ValueId yielded : loop->yields)
      ++counts_[yielded];
    look_at(loop->body);
  }
}

void ValueUses::look_for_loads(const Instruction& mma) {
  for (const size_t i : {0, 1}) {
    const Instruction* load = load_of(mma.operands[i]);
    const bool are_both = load != nullptr && load_of(mma.operands[1 - i]) != nullptr;
    if (load != nullptr) factors_.try_emplace(load, Factor{mma.operands[i], 1 - i, are_both});
  }
}

const Instruction* ValueUses::load_of(ValueId factor) const {
  const Instruction* maker = makers_[factor];
  while (std::holds_alternative<Reshape>(maker->what))
    maker = makers_[maker->operands[0]];
  return std::holds_alternative<Load>(maker->what) ? maker : nullptr;
}

}  // namespace kiln::tile
