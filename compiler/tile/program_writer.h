#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/tile/find_elements.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// A tile that elements are computed for: a row for each place of some axes, the last of which is
/// the fastest, and a column for each of one, or one.
struct Sheet {
  std::vector<language::AxisId> rows;
  std::optional<language::AxisId> column;
  std::function<ValueId()> reduction;  // what the one reduction in the elements is
};

/// What the caller gives a program of a kernel. Throws as refuse_form does where an extent is more
/// than a number or a size.
std::vector<Parameter> parameters_of(const language::Kernel& kernel);

/// Writes the program of a kernel, instruction by instruction, from what a finder has looked at.
/// Axes of the definition get their number and step by add_axis, and are named then.
class ProgramWriter {
 public:
  ProgramWriter(const language::Kernel& kernel, const ElementFinder& finder);

  void add_axis(language::AxisId axis, int64_t step);
  /// The axes so far are those of blocks.
  void end_blocks() { program_.block_axes = static_cast<uint32_t>(program_.axes.size()); }

  int64_t step_of(language::AxisId axis) const { return program_.axes[numbers_.at(axis)].step; }
  AxisId number_of(language::AxisId axis) const { return numbers_.at(axis); }
  Extent extent_of(language::AxisId axis) const { return program_.axes[numbers_.at(axis)].extent; }
  uint32_t parameter_of(language::TensorId tensor) const;
  const TileType& type_of(ValueId value) const { return program_.values[value]; }

  ValueId add(Instruction instruction, TileType type);
  ValueId constant(double number, TileType type);
  ValueId apply(language::Operator function, std::vector<ValueId> operands, DType type);
  ValueId cast(DType type, ValueId operand);
  ValueId reduce(language::Combiner combiner, uint32_t dimension, ValueId operand);
  /// Dimensions of 1 as long as those of `shape`.
  ValueId broadcast(ValueId operand, const std::vector<int64_t>& shape);
  /// Of the places of an axis a tile of this shape.
  ValueId places(language::AxisId axis, std::vector<int64_t> shape);
  /// An extent, as an int32 in each element of a tile.
  ValueId extent(const Extent& extent, const std::vector<int64_t>& shape);

  /// A loop over axes that `body` writes: given what is carried, it returns what comes next.
  using Body = std::function<std::vector<ValueId>(std::span<const ValueId>)>;
  std::vector<ValueId> loop(For loop, const std::vector<ValueId>& first, const Body& body);

  /// The part of a tensor that has single places of all axes but `last`, in that order, as a tile
  /// of these extents.
  ValueId load(const Element& element, const std::vector<language::AxisId>& last,
               const std::vector<int64_t>& extents);
  /// What an expression is, which the finder has looked at.
  ValueId value_of(const Sheet& sheet, language::ExprId expr, const Renamed& renamed);
  /// A sheet of the output, whose axes are these.
  void store(const Sheet& sheet, language::StageId output,
             const std::vector<language::AxisId>& axes, ValueId result);

  /// The program, verified.
  Program finish();

 private:
  std::pair<ViewId, std::vector<AxisId>> view_of(const Element& element,
                                                 const std::vector<language::AxisId>& last);
  std::vector<language::AxisId> tiled_axes(const Sheet& sheet) const;
  std::vector<int64_t> shape_of(const Sheet& sheet) const;
  using Tile = std::function<ValueId(const std::vector<language::AxisId>& axes,
                                     const std::vector<int64_t>& extents)>;
  ValueId spread(const Sheet& sheet, const Element& element, const Tile& tile);
  ValueId place_of(const Sheet& sheet, language::ExprId expr, const Renamed& renamed);
  ValueId reshape(ValueId operand, const std::vector<int64_t>& shape);

  const language::Definition& definition_;
  const ElementFinder& finder_;
  const language::SourceMap names_;
  Program program_;
  std::vector<Instruction>* body_ = &program_.body;
  std::map<language::AxisId, AxisId> numbers_;
  // Stages, read at these axes for a tile of these, in the body that is written.
  using Axes = std::vector<language::AxisId>;
  std::map<std::tuple<language::TensorId, Axes, Axes>, ValueId> known_;
};

}  // namespace kiln::tile
