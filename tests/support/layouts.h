#pragma once

#include <array>
#include <vector>

#include "compiler/analysis/matrix_fragments.h"
#include "compiler/ir/swizzle.h"

namespace kiln::testing {

/// A tile of 2^lines lines of 2^elements elements: "line" and "element" to where they lie.
inline analysis::LinearLayout tile_in_memory(int lines, int elements, int64_t padding) {
  analysis::LinearLayout::Input line{.name = "line", .bits = {}};
  analysis::LinearLayout::Input element{.name = "element", .bits = {}};
  for (int bit = 0; bit < lines; ++bit)
    line.bits.push_back({int64_t{1} << bit, 0});
  for (int bit = 0; bit < elements; ++bit)
    element.bits.push_back({0, int64_t{1} << bit});
  return analysis::LinearLayout(
      {line, element},
      {{"line", lines, (int64_t{1} << elements) + padding}, {"element", elements}});
}

/// The same of elements of so many bytes, swizzled.
inline analysis::LinearLayout swizzled_tile(int lines, int elements, int64_t bytes, int64_t every) {
  const ir::Swizzle swizzle = ir::swizzle_of(bytes, every);
  analysis::LinearLayout::Input line{.name = "line", .bits = {}};
  analysis::LinearLayout::Input element{.name = "element", .bits = {}};
  for (int bit = 0; bit < elements; ++bit)
    element.bits.push_back({swizzle(int64_t{1} << bit)});
  for (int bit = 0; bit < lines; ++bit)
    line.bits.push_back({swizzle(int64_t{1} << (bit + elements))});
  return analysis::LinearLayout({line, element}, {{"place", lines + elements}});
}

/// Fragments, what lanes load of them, and padded and swizzled tiles.
inline std::vector<analysis::LinearLayout> layouts_of_templates() {
  std::vector<analysis::LinearLayout> all = {analysis::fragment_of_sums()};
  for (const int64_t bytes : {1, 2, 4}) {
    all.push_back(analysis::fragment_of_rows(bytes));
    all.push_back(analysis::fragment_of_columns(bytes));
    for (const bool is_turned : {false, true}) {
      for (const bool are_columns : {false, true}) {
        const analysis::LinearLayout lanes =
            analysis::loads_of_lanes(bytes, is_turned, are_columns);
        all.push_back(lanes);
        all.push_back(lanes.with_strides(std::array<int64_t, 3>{72, 1, 16}));
        all.push_back(lanes.with_strides(std::array<int64_t, 3>{1, 136, 32}));
      }
    }
  }
  for (const int64_t padding : {0, 1, 2, 4, 8, 16}) {
    all.push_back(tile_in_memory(5, 5, padding));
    all.push_back(tile_in_memory(3, 6, padding));
  }
  // Of transposes, by as many rows as a vector has elements; of lines of 64 and of 128 bytes.
  const std::vector<std::array<int, 4>> swizzled = {{4, 4, 8, 32},   {5, 5, 4, 128}, {6, 6, 2, 512},
                                                    {7, 7, 1, 2048}, {5, 5, 2, 64},  {5, 6, 2, 64},
                                                    {5, 6, 1, 128},  {5, 4, 4, 32}};
  for (const auto& [lines, elements, bytes, every] : swizzled)
    all.push_back(swizzled_tile(lines, elements, bytes, every));
  return all;
}

}  // namespace kiln::testing
