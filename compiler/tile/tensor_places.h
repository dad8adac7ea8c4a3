#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

/// The dimensions of a view that have several elements of a tile, in order.
std::vector<size_t> long_dimensions(const View& view);

/// Where the elements of tiles are in the tensors of a program: loops know of each axis which part
/// of it they are at.
class TensorPlaces {
 public:
  explicit TensorPlaces(const Program& program);

  const std::vector<ir::VarRef>& sizes() const { return sizes_; }
  const std::vector<ir::BufferRef>& tensors() const { return tensors_; }
  const ir::BufferRef& tensor_of(const View& view) const { return tensors_[view.parameter]; }

  ir::Expr extent_of(const Extent& extent) const;
  /// Of an axis.
  ir::Expr parts_of(AxisId axis) const;
  void set_part(AxisId axis, ir::Expr part) { parts_[axis] = std::move(part); }
  const ir::Expr& part_of(AxisId axis) const { return parts_[axis]; }
  /// Where the part of an axis begins.
  ir::Expr first_of(AxisId axis) const;

  /// The place in a tensor of an element of a tile of a view, whose place in the tile has one
  /// number a dimension. Beyond the end of a dimension it is the last element there is.
  std::vector<ir::Expr> inside(const View& view, const std::vector<AxisId>& at,
                               const std::vector<ir::Expr>& place) const;
  /// The same of one that is known to be there.
  std::vector<ir::Expr> place_of(const View& view, const std::vector<AxisId>& at,
                                 const std::vector<ir::Expr>& place) const;
  /// Whether a dimension of a tile may reach beyond the end of the tensor.
  bool may_end(const View& view, size_t dimension) const;
  /// Whether there are several tiles along a dimension, of which the last one may reach beyond it.
  bool has_shorter_part(const View& view, size_t dimension) const;
  ir::Expr extent_of(const View& view, size_t dimension) const;
  /// Whether a dimension is known to have a multiple of so many elements.
  bool is_multiple(const View& view, size_t dimension, int64_t factor) const;
  /// How many elements of a dimension of a tile there are at most.
  int64_t count_of(const View& view, size_t dimension) const;

 private:
  const Program& program_;
  std::vector<ir::VarRef> sizes_;
  std::vector<ir::BufferRef> tensors_;
  std::vector<ir::Expr> parts_;
};

}  // namespace kiln::tile
