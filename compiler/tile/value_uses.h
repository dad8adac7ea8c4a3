#pragma once

#include <map>
#include <set>
#include <vector>

#include "compiler/tile/program.h"

namespace kiln::tile {

/// What makes each value of a program, and what reads it.
class ValueUses {
 public:
  explicit ValueUses(const Program& program);

  const Instruction& maker_of(ValueId value) const { return *makers_[value]; }
  /// How often it is read.
  int count_of(ValueId value) const { return counts_[value]; }
  bool is_broadcast(ValueId value) const { return broadcast_.contains(value); }

  /// A factor of a product that is loaded, and which of its dimensions goes along the sum; whether
  /// the other one is loaded, too. One that is computed is 0 beyond the end of the sum.
  struct Factor {
    ValueId value;
    size_t sum;
    bool are_both_loaded;
  };
  /// What factor a load is, if it is one.
  const Factor* factor_of(const Instruction& load) const;

 private:
  void look_at(const std::vector<Instruction>& body);
  void look_for_loads(const Instruction& mma);
  /// The load that makes a factor; through reshapes.
  const Instruction* load_of(ValueId factor) const;

  std::vector<const Instruction*> makers_;
  std::vector<int> counts_;
  std::set<ValueId> broadcast_;
  std::map<const Instruction*, Factor> factors_;
};

}  // namespace kiln::tile
