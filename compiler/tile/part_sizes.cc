// How large the parts are that axes are cut into.
#include "compiler/tile/part_sizes.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kiln::tile {

int64_t shortened(int64_t step, int64_t extent) {
  const auto needed = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  return std::min(step, std::max(kLeast, needed));
}

int64_t known_extent(const language::Definition& definition, const ElementFinder& finder,
                     language::AxisId axis, std::string_view what) {
  const Extent extent = finder.extent_of(definition.axes[axis].extent);
  if (extent.size >= 0) refuse_form("the call says how many numbers {} has", what);
  return extent.constant;
}

int64_t whole_step(int64_t extent) {
  return shortened(std::numeric_limits<int64_t>::max(), std::max<int64_t>(extent, 1));
}

int64_t extent_or_guess(const language::Definition& definition, const ElementFinder& finder,
                        language::AxisId axis) {
  const Extent found = finder.extent_of(definition.axes[axis].extent);
  return found.size < 0 ? std::max<int64_t>(found.constant, 1) : kOpenExtent;
}

}  // namespace kiln::tile
