#pragma once

#include <map>

#include "compiler/tile/tensor_places.h"
#include "compiler/tile/thread_nest.h"
#include "compiler/tile/value_uses.h"

namespace kiln::tile {

/// Elements of the values of a program, as one thread has them: in registers, or as expressions of
/// what it has. What is int32 in a program are indices here.
class ThreadElements {
 public:
  ThreadElements(const Program& program, const ValueUses& uses, const TensorPlaces& places)
      : program_(program), uses_(uses), places_(places) {}

  /// From now on the value is in these registers, as own_place() has them.
  void set_registers(ValueId value, ir::BufferRef registers) {
    registers_[value] = std::move(registers);
  }
  bool are_in_registers(ValueId value) const { return registers_.contains(value); }
  const ir::BufferRef& registers_of(ValueId value) const { return registers_.at(value); }
  /// Whether the value is computed once and kept, not where it is read.
  bool is_kept(ValueId value) const;

  /// The element of a tile at a place. Throws Unsupported TILE_FORM for what threads do not
  /// compute.
  ir::Expr operator()(ValueId value, const Indices& at) const;

 private:
  const TileType& type_of(ValueId value) const { return program_.values[value]; }
  ir::Expr element(const Constant& constant, const Instruction&, ValueId value,
                   const Indices&) const;
  ir::Expr element(const SizeOf& size, const Instruction&, ValueId, const Indices&) const;
  ir::Expr element(const Places& places, const Instruction&, ValueId, const Indices& at) const;
  ir::Expr element(const Load& load, const Instruction&, ValueId value, const Indices& at) const;
  ir::Expr element(const Apply& apply, const Instruction& each, ValueId, const Indices& at) const;
  ir::Expr element(const Cast&, const Instruction& each, ValueId value, const Indices& at) const;
  ir::Expr element(const Reshape&, const Instruction& each, ValueId value, const Indices& at) const;
  ir::Expr element(const Broadcast&, const Instruction& each, ValueId, const Indices& at) const;

  const Program& program_;
  const ValueUses& uses_;
  const TensorPlaces& places_;
  std::map<ValueId, ir::BufferRef> registers_;
};

}  // namespace kiln::tile
