// Writes a copy of a tensor in another order: tiles that are as long along what lies side by side
// before as along what does after, so that both are moved 128 bits at a time.
#include "compiler/tile/copy_program.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "compiler/tile/verify.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

constexpr int64_t kTileBytes = 8192;
constexpr int64_t kSideBytes = 128;  // of a tile that is turned: those of 64 elements of 16 bits
constexpr int64_t kMostSide = 64;    // elements
constexpr int64_t kOpenBytes = 512;  // along what the call says the length of

/// Dimensions of the tensor that are side by side in both, as one.
struct Group {
  uint32_t first = 0;  // in the tensor
  uint32_t count = 1;
  Extent extent;
};

/// In the order of the copy.
std::vector<Group> groups_of(const Parameter& from, const Parameter& to,
                             std::span<const uint32_t> order) {
  std::vector<Group> groups;
  for (size_t d = 0; d < order.size(); ++d) {
    const Extent& extent = from.shape[order[d]];
    const bool is_last_of_pitched =
        d + 1 == order.size() && to.pitch(extent.constant) != extent.constant;
    const bool is_known = extent.size < 0 && !groups.empty() && groups.back().extent.size < 0;
    const bool is_next = !groups.empty() && groups.back().first + groups.back().count == order[d];
    if (is_known && is_next && !is_last_of_pitched) {
      groups.back().extent.constant *= extent.constant;
      ++groups.back().count;
      continue;
    }
    groups.push_back({order[d], 1, extent});
  }
  return groups;
}

int64_t whole_step(const Extent& extent, int64_t bytes) {
  if (extent.size >= 0) return kOpenBytes / bytes;
  return static_cast<int64_t>(
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(extent.constant, 1))));
}

/// How long a tile is along each group: `first` lies side by side in the tensor, the last group in
/// the copy.
std::vector<int64_t> steps_of(const std::vector<Group>& groups, size_t first, int64_t bytes) {
  std::vector<int64_t> steps(groups.size(), 1);
  int64_t room = kTileBytes / bytes;
  const auto take = [&](size_t group, int64_t most) {
    const int64_t longest =
        std::min({whole_step(groups[group].extent, bytes), most, room * steps[group]});
    if (longest <= steps[group]) return;
    room /= longest / steps[group];
    steps[group] = longest;
  };
  const size_t last = groups.size() - 1;
  const int64_t side = std::min(kMostSide, kSideBytes / bytes);
  if (first != last) {
    take(first, side);
    take(last, side);
  }
  for (size_t group = groups.size(); group-- > 0;)
    take(group, kTileBytes);
  return steps;
}

}  // namespace

Program copy_program(const std::string& name, const std::vector<std::string>& sizes,
                     const Parameter& from, const Parameter& to, std::span<const uint32_t> order) {
  const std::vector<Group> groups = groups_of(from, to, order);
  std::vector<uint32_t> in_tensor(groups.size());  // groups as the tensor has them
  for (uint32_t i = 0; i < groups.size(); ++i)
    in_tensor[i] = i;
  std::ranges::sort(in_tensor, {}, [&](uint32_t group) { return groups[group].first; });
  const std::vector<int64_t> steps = steps_of(groups, in_tensor.back(), size_of(from.type));

  Program program;
  program.name = name;
  program.sizes = sizes;
  program.parameters = {{from.name, from.type, {}, false, from.row_multiple},
                        {to.name, to.type, {}, true, to.row_multiple}};
  View read{.parameter = 0, .tile = {}, .order = {}};
  View stored{.parameter = 1, .tile = {}, .order = {}};
  std::vector<AxisId> at;
  for (uint32_t i = 0; i < groups.size(); ++i) {
    program.axes.push_back({fmt::format("d{}", i), groups[i].extent, steps[i]});
    program.parameters[1].shape.push_back(groups[i].extent);
  }
  program.block_axes = static_cast<uint32_t>(groups.size());
  // A tile has its dimensions as the tensor does.
  for (uint32_t i = 0; i < groups.size(); ++i) {
    const uint32_t group = in_tensor[i];
    program.parameters[0].shape.push_back(groups[group].extent);
    read.tile.push_back(steps[group]);
    read.order.push_back(i);
    stored.tile.push_back(steps[group]);
    stored.order.push_back(group);
    at.push_back(group);
  }
  const ValueId tile = 0;
  program.values = {{from.type, read.tile}};
  program.views = {std::move(read), std::move(stored)};
  program.body = {{.what = Load{0, at}, .operands = {}, .results = {tile}},
                  {.what = Store{1, at}, .operands = {tile}, .results = {}}};
  verify(program);
  return program;
}

}  // namespace kiln::tile
