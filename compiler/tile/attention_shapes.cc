// The shapes that blocks of an attention may have. Products of 16 bits are those of tensor cores.
// In float32 lanes multiply: tileiras (13.5) writes all steps of a product out and keeps what they
// read in registers, so few keys, and a part of what a query has, are multiplied at once. Read from
// cubins, queries and keys of 64 numbers, instructions of the main loop and those among them that
// spill:
//
//   queries x keys, warps, numbers at once     sm_90             sm_80
//   64 x 64, 4, all                            6931 and 1995     7280 and 2396
//   64 x 32, 8, 32                             1519 and 51       none spills
//   32 x 32, 4, 32                             1462 and none     none spills
#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "compiler/tile/attention.h"
#include "compiler/tile/contraction.h"
#include "compiler/tile/find_attention.h"
#include "compiler/tile/part_sizes.h"

namespace kiln::tile {
namespace {

using namespace language;

constexpr std::array<std::string_view, 9> kArchitectures = {
    "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};

/// Of heads that no block held whole with as many queries as are good: eight warps have 512 numbers
/// of each of 64 results, and warpgroups all of the queries.
std::vector<AttentionShape> shapes_of_wide_heads(bool has_warpgroups, int64_t deepest) {
  constexpr int64_t kColumns = 512;
  if (!has_warpgroups) return {{64, 32, 8, 128, kColumns}, {32, 32, 8, 64, kColumns}};
  if (deepest <= kColumns) return {{64, 64, 8, 0, kColumns}, {64, 32, 8, 0, kColumns}};
  return {{64, 64, 8, 256, kColumns}, {64, 32, 8, 256, kColumns}};
}

/// By tensor cores; of `rows` queries in all, and `keys`.
std::vector<AttentionShape> shapes_of_short_floats(std::string_view arch, double rows, int64_t keys,
                                                   int64_t deepest) {
  constexpr int64_t kDeep = 128;
  constexpr int64_t kWide = 256;
  const bool is_deep = deepest > kDeep;
  const bool has_warpgroups = std::ranges::count(product_architectures(), arch) > 0;
  if (deepest > kWide) return shapes_of_wide_heads(has_warpgroups, deepest);
  if (!has_warpgroups && is_deep) return {{64, 32, 8}, {32, 32, 0}};
  if (!has_warpgroups) return {{64, 64, 0}, {32, 64, 0}};
  std::vector<AttentionShape> shapes;
  // Parts that are written out (tileiras 13.5) have too few registers where they are long.
  const bool is_short = keys < kFewParts * 128;
  if (rows >= kFewBlocks * 128) shapes.push_back({128, is_deep || is_short ? 64 : 128, 8});
  shapes.push_back({64, is_deep || is_short ? 64 : 128, 0});
  shapes.push_back({64, is_deep ? 32 : 64, 0});
  return shapes;
}

std::vector<AttentionShape> shapes_of_float32(int64_t deepest) {
  // Of more, a thread adds up too few products for what it reads.
  constexpr int64_t kMostDepth = 128;
  if (deepest > kMostDepth)
    refuse_form("a query or a value has {} numbers, and in float32 a block computes with {}",
                deepest, kMostDepth);
  if (deepest > 64) return {{64, 16, 8, 32}, {32, 16, 8, 32}};
  return {{64, 32, 8, 32}, {32, 32, 4, 32}, {64, 16, 8, 32}};
}

}  // namespace

std::vector<AttentionShape> attention_shapes(const Kernel& kernel, std::string_view arch) {
  if (std::ranges::count(kArchitectures, arch) == 0)
    refuse_form("Tile IR is used for {}, not for {}", fmt::join(kArchitectures, ", "), arch);
  const Definition& definition = kernel.definition;
  AttentionFinder finder(definition);
  const Attention found = finder.find();
  const auto whole = [&](language::AxisId axis, std::string_view what) {
    return whole_step(known_extent(definition, finder, axis, what));
  };
  const int64_t deepest = std::max(whole(found.column, "a value"), whole(found.depth, "a query"));
  const auto extent_of = [&](language::AxisId axis) {
    return extent_or_guess(definition, finder, axis);
  };
  double rows = 1;  // of all queries
  for (const language::AxisId axis : found.axes)
    if (axis != found.column) rows *= static_cast<double>(extent_of(axis));
  const auto is_float32 = [&](const Element& element) {
    return definition.type_of(element.tensor) == DType::Float32;
  };
  std::vector<AttentionShape> shapes =
      is_float32(found.query) || is_float32(found.values)
          ? shapes_of_float32(deepest)
          : shapes_of_short_floats(arch, rows, extent_of(found.key), deepest);
  for (AttentionShape& shape : shapes) {
    shape.keys = shortened(shape.keys, extent_of(found.key));
    const int64_t queries = shortened(shape.queries, extent_of(found.row));
    if (queries < shape.queries) shape.warps = 0;
    shape.queries = queries;
  }
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

}  // namespace kiln::tile
