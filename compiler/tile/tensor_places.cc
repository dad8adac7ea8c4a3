// Places of tiles as indices of loops.
#include "compiler/tile/tensor_places.h"

#include <algorithm>

#include "compiler/ir/build.h"

namespace kiln::tile {

using namespace ir;

std::vector<size_t> long_dimensions(const View& view) {
  std::vector<size_t> found;
  for (size_t d = 0; d < view.tile.size(); ++d)
    if (view.tile[d] > 1) found.push_back(d);
  return found;
}

TensorPlaces::TensorPlaces(const Program& program)
    : program_(program), parts_(program.axes.size()) {
  for (const std::string& size : program.sizes)
    sizes_.push_back(Var::make(size));
  for (const Parameter& parameter : program.parameters) {
    std::vector<Expr> shape;
    for (const Extent& extent : parameter.shape)
      shape.push_back(extent_of(extent));
    tensors_.push_back(
        Buffer::make(parameter.name, parameter.type, std::move(shape), Scope::Global));
  }
}

Expr TensorPlaces::extent_of(const Extent& extent) const {
  return extent.size < 0 ? index(extent.constant) : sizes_[static_cast<size_t>(extent.size)];
}

Expr TensorPlaces::parts_of(AxisId axis) const {
  const Axis& cut = program_.axes[axis];
  if (cut.extent.size < 0) return index(cut.parts({}));
  return ceildiv(extent_of(cut.extent), index(cut.step));
}

Expr TensorPlaces::first_of(AxisId axis) const { return parts_[axis] * program_.axes[axis].step; }

Expr TensorPlaces::extent_of(const View& view, size_t dimension) const {
  return extent_of(program_.parameters[view.parameter].shape[view.order[dimension]]);
}

bool TensorPlaces::may_end(const View& view, size_t dimension) const {
  if (view.tile[dimension] == 1) return false;
  const Extent& extent = program_.parameters[view.parameter].shape[view.order[dimension]];
  return extent.size >= 0 || extent.constant % view.tile[dimension] != 0;
}

bool TensorPlaces::has_shorter_part(const View& view, size_t dimension) const {
  const Extent& extent = program_.parameters[view.parameter].shape[view.order[dimension]];
  return may_end(view, dimension) && (extent.size >= 0 || extent.constant > view.tile[dimension]);
}

bool TensorPlaces::is_multiple(const View& view, size_t dimension, int64_t factor) const {
  const Extent& extent = program_.parameters[view.parameter].shape[view.order[dimension]];
  return extent.size < 0 && extent.constant % factor == 0;
}

int64_t TensorPlaces::count_of(const View& view, size_t dimension) const {
  const Extent& extent = program_.parameters[view.parameter].shape[view.order[dimension]];
  const int64_t tile = view.tile[dimension];
  return extent.size < 0 ? std::min(tile, std::max<int64_t>(extent.constant, 1)) : tile;
}

std::vector<Expr> TensorPlaces::place_of(const View& view, const std::vector<AxisId>& at,
                                         const std::vector<Expr>& place) const {
  std::vector<Expr> indices(place.size());
  for (size_t d = 0; d < place.size(); ++d)
    indices[view.order[d]] = parts_[at[d]] * view.tile[d] + place[d];
  return indices;
}

std::vector<Expr> TensorPlaces::inside(const View& view, const std::vector<AxisId>& at,
                                       const std::vector<Expr>& place) const {
  std::vector<Expr> indices = place_of(view, at, place);
  for (size_t d = 0; d < place.size(); ++d) {
    if (!may_end(view, d)) continue;
    Expr& at_d = indices[view.order[d]];
    at_d = min(at_d, extent_of(view, d) - 1);
  }
  return indices;
}

}  // namespace kiln::tile
