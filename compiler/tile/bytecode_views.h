#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "compiler/tile/bytecode_code.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// A pointer to a tensor, and what it points to.
struct Source {
  TypeNumber element = 0;
  int constant_bytes = 0;  // of an element that stands in the program
  Value pointer = 0;
};

/// What the values of a program are in memory: the parameters and views that they are loaded from
/// and stored to. Of a float32 that tensor cores read there are those of a type of its own, beside
/// what reads it as it is.
class BytecodeViews {
 public:
  BytecodeViews(CodeWriter& code, const Program& program);

  /// Of all loads and stores, in front of them.
  void write(std::span<const Value> pointers, std::span<const Value> sizes);

  TypeNumber element_of(ValueId value) const;
  /// A parameter as elements that this value is made of.
  Source source_of(uint32_t parameter, ValueId value);
  /// A view that this value is loaded from, or stored to.
  Value at(ViewId view, ValueId value) const { return views_.at({view, element_of(value)}); }

 private:
  TypeNumber pointer_type(TypeNumber element) const;
  Value aligned(const Source& source);
  void add_views(const std::vector<Instruction>& body);
  Value view_of(const View& view, const Source& source);

  CodeWriter& code_;
  const Program& program_;
  const std::vector<bool> tensor_floats_;  // by ValueId
  std::span<const Value> sizes_;
  std::vector<Source> sources_;              // by parameter
  std::map<uint32_t, Source> tensor_float_;  // by parameter, where there is one
  std::map<std::pair<ViewId, TypeNumber>, Value> views_;
};

}  // namespace kiln::tile
