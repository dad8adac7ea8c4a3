// Draws gathers and scatters. Their places are inside by what the data is, by arithmetic that a
// compiler can see, or now and then not at all: then the call must stop.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

using Indices = std::vector<std::string>;

/// An index below `extent` for every value of the axis, which runs over `over`. What keeps it in
/// bounds is the data alone, or something that a compiler can see.
std::string place_below(KernelWriter& writer, const DrawnExtent& extent, const DrawnExtent& over,
                        const std::string& axis) {
  const int last = extent.value - 1;
  const auto any = [&](int low, int high) {
    const DrawnTensor places = writer.add_index_input({over}, low, high);
    return cast_to(DType::Int64, KernelWriter::read(places, {axis})).text;
  };
  if (writer.random.chance(0.08)) {
    writer.allow_outside();
    return writer.random.chance(0.5) ? any(-1, last) : any(0, last + 1);
  }
  switch (writer.random.below(4)) {
    case 0: return fmt::format("floormod({}, {})", any(-40, 40), extent.text());
    case 1: return fmt::format("max(min({}, {}), 0)", any(-40, 40), extent.less(1).text());
    default: return any(0, last);
  }
}

/// A read at any place, where there is one, else a literal.
Term guarded_read(KernelWriter& writer, const DrawnTensor& source, size_t dimension,
                  const DrawnExtent& over) {
  Indices indices = KernelWriter::axes_of(source.rank());
  const DrawnTensor places = writer.add_index_input({over}, -40, 40);
  const std::string place =
      cast_to(DType::Int64, KernelWriter::read(places, {indices[dimension]})).text;
  indices[dimension] = place;
  const Term inside = KernelWriter::read(source, indices);
  const Term outside = writer.literal(source.type());
  return {fmt::format("if_then_else({} >= 0 && {} < {}, {}, {})", place, place,
                      source.shape[dimension].text(), inside.text, outside.text),
          larger(inside, outside).values};
}

/// Extents that have something at every index, so that there are places.
bool has_places(const DrawnTensor& source) {
  return source.rank() > 0 &&
         std::all_of(source.shape.begin(), source.shape.end(),
                     [](const DrawnExtent& extent) { return extent.value > 0; });
}

}  // namespace

bool add_gather(KernelWriter& writer, const DrawnTensor& source) {
  if (!has_places(source)) return false;
  const auto dimension = static_cast<size_t>(writer.random.below(static_cast<int>(source.rank())));
  const Indices axes = KernelWriter::axes_of(source.rank());
  std::vector<DrawnExtent> shape = source.shape;
  shape[dimension] = writer.random.pick(writer.extents());
  if (writer.random.chance(0.2)) {
    writer.add_compute(shape, axes, guarded_read(writer, source, dimension, shape[dimension]));
    return true;
  }
  Indices indices = axes;
  indices[dimension] =
      place_below(writer, source.shape[dimension], shape[dimension], axes[dimension]);
  const Term element = KernelWriter::read(source, indices);
  writer.add_compute(shape, axes,
                     writer.random.chance(0.5)
                         ? element
                         : add(element, writer.read_over(axes, shape, source.type())));
  return true;
}

bool add_scatter(KernelWriter& writer, const DrawnTensor& source) {
  if (!has_places(source)) return false;
  Random& random = writer.random;
  const DrawnExtent updates = random.pick(writer.extents());
  // The first axis says which update; the others are indices themselves, or each one a place.
  std::vector<DrawnExtent> shape = {updates};
  Indices ranges = {fmt::format("i < {}", updates.text())};
  Indices indices;
  const auto indirect = static_cast<size_t>(random.below(static_cast<int>(source.rank())));
  for (size_t d = 0; d < source.rank(); ++d) {
    const DrawnExtent& extent = source.shape[d];
    if (d == indirect) {
      indices.push_back(place_below(writer, extent, updates, "i"));
    } else if (shape.size() < 3 && random.chance(0.8)) {
      indices.push_back(KernelWriter::axes_of(3)[shape.size()]);
      ranges.push_back(fmt::format("{} < {}", indices.back(), extent.text()));
      shape.push_back(extent);
    } else {
      indices.push_back(std::to_string(random.below(extent.value)));
    }
  }
  const Indices axes = KernelWriter::axes_of(shape.size());
  Term update = writer.read_over(axes, shape, source.type());
  Term element{"", source.values};
  // Each element may take all of the updates.
  int count = 1;
  for (const DrawnExtent& extent : shape)
    count *= extent.value;
  const bool has_room = !is_float(source.type()) ||
                        source.values.bound + update.bound() * count <= exact_limit(source.type());
  const bool can_add = source.type() != DType::Bool && has_room;
  const bool can_compare = source.type() != DType::Bool;
  std::string function = "scatter";
  Values values = larger(element, update).values;
  if (can_add && random.chance(0.5)) {
    function = "scatter_add";
    values = add(element, {"", sum_of(update.values, count)}).values;
  } else if (can_compare && random.chance(0.6)) {
    function = random.chance(0.5) ? "scatter_min" : "scatter_max";
  }
  const DrawnTensor result{writer.new_name(), source.shape, values};
  writer.add_lines(fmt::format("  {} = {}[{}]({}, {}, {})\n", result.name, function,
                               fmt::join(ranges, ", "), source.name, fmt::join(indices, ", "),
                               update.text));
  writer.declare(result);
  return true;
}

}  // namespace kiln::testing
