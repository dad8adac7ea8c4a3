#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/tile/bytecode_views.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// What a window is written with: where its tensor is, the sizes of the call, and the part of
/// each axis, by AxisId.
struct WindowValues {
  Source source;
  std::span<const Value> sizes;
  std::span<const Value> places;
};

/// A window, as far as it is the same for all parts of loops: made where no loop has begun.
///
/// Where no index leaves the tensor, its rows overlap as those of one view, of which tiles are
/// copied without threads. Otherwise, each element has a pointer, and a condition.
class PreparedWindow {
 public:
  PreparedWindow(CodeWriter& code, const Program& program, const Window& window,
                 const WindowValues& values);

  /// The tile at these parts of axes, two-dimensional.
  Value load(CodeWriter& code, std::span<const Value> places) const;

 private:
  /// A tile of integers or of conditions.
  struct Numbers {
    Value value = 0;
    DType type = DType::Int32;
    std::vector<int64_t> shape;
  };
  class Arithmetic;
  /// An index of one dimension but the last: the part of a row, and what loops add to it.
  struct Dimension {
    Numbers rows;
    std::vector<Term> loops;
    Numbers extent;
    bool is_checked = false;
    int64_t stride = 0;
  };

  bool set_view(CodeWriter& code, const WindowValues& values);
  void set_pointers(CodeWriter& code, const WindowValues& values);
  Numbers rows_of(Arithmetic& numbers, const Index& index, std::span<const Value> places) const;
  Numbers elements_of(Arithmetic& numbers, AxisId axis, std::span<const Value> places) const;
  Value load_view(CodeWriter& code, std::span<const Value> places) const;
  Value load_pointers(CodeWriter& code, std::span<const Value> places) const;
  bool is_row(AxisId axis) const;
  const Axis& along() const { return program_.axes[window_.along]; }

  const Program& program_;
  const Window& window_;
  const Parameter& parameter_;
  const Source source_;
  std::vector<int64_t> strides_;     // of the tensor
  std::vector<int64_t> row_shape_;   // a step of each axis of rows
  std::vector<int64_t> tile_shape_;  // of the tile, two-dimensional
  // As a view: where in it a tile is along its last dimension, in tiles.
  std::optional<Value> view_;
  std::vector<Term> along_terms_;
  // As pointers: offsets of the rows, and where they are none.
  std::vector<Dimension> dimensions_;
  Numbers offsets_;
  std::optional<Numbers> condition_;
};

}  // namespace kiln::tile
