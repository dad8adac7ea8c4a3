// Fragments as layouts (PTX ISA, "Matrix Fragments for mma.m16n8k8", "..m16n8k16", "..m16n8k32"
// and "Warp-level matrix load instruction: ldmatrix"). All factors have one, in bits:
//
//   step of rows     = register 1, lane 1 and 0, element       side = register 0, lane 4 to 2
//   step of columns  = register 0, lane 1 and 0, element       side = lane 4 to 2
//
// A matrix of ldmatrix is a register of the fragment, and eight lanes give its rows: so the places
// that lanes name are those of the fragment, with the lanes that hold a row in the place of those
// that name it.
#include "compiler/analysis/matrix_fragments.h"

#include <array>
#include <bit>

#include "compiler/ir/matrix_unit.h"

namespace kiln::analysis {
namespace {

using Bits = std::vector<std::vector<int64_t>>;

constexpr int kRowsOfMatrix = 3;  // bits: eight rows, each named by a lane and held by four

LinearLayout fragment_of(int64_t bytes, bool are_columns) {
  const int in_word = std::countr_zero(static_cast<uint64_t>(4 / bytes));
  Bits elements;
  for (int bit = 0; bit < in_word; ++bit)
    elements.push_back({0, int64_t{1} << bit});
  const int64_t word = int64_t{1} << in_word;
  const std::vector<int64_t> half = {0, 4 * word};
  const Bits registers = are_columns ? Bits{half} : Bits{{8, 0}, half};
  const Bits lanes = {{0, word}, {0, 2 * word}, {1, 0}, {2, 0}, {4, 0}};
  return LinearLayout({{"element", elements}, {"register", registers}, {"lane", lanes}},
                      {{"side", are_columns ? 3 : 4}, {"step", in_word + 3}});
}

/// From an element of the tile to that of the next row or column, and of the next step.
struct Strides {
  int64_t side;
  int64_t step;
};
Strides strides_of(const MatrixFactor& factor) {
  return factor.is_transposed ? Strides{1, factor.row} : Strides{factor.row, 1};
}

}  // namespace

LinearLayout fragment_of_rows(int64_t bytes) { return fragment_of(bytes, false); }
LinearLayout fragment_of_columns(int64_t bytes) { return fragment_of(bytes, true); }
LinearLayout fragment_of_sums() {
  return LinearLayout(
      {{"register", {{0, 1}, {8, 0}}}, {"lane", {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}},
      {{"row", 4}, {"column", 3}});
}

LinearLayout loads_of_lanes(int64_t bytes, bool is_turned, bool are_columns) {
  const std::vector<LinearLayout::Output> outputs = {{"side", 4}, {"step", 5}, {"tile", 1}};
  Bits lanes;
  if (is_turned && bytes == 1) {
    // A lane has two rows of each matrix of 8 by 16 bytes, and two columns. So that steps 4n to
    // 4n + 3 are the same lane's, a matrix has two of each four. Which ones changes after half of
    // its rows: eight that follow each other begin in different banks.
    for (const int64_t step : {1, 4, 8 | 2, 2, 16})
      lanes.push_back({0, step, 0});
    return LinearLayout({{"lane", lanes}}, outputs);
  }
  const LinearLayout fragment = fragment_of(bytes, are_columns);
  if (is_turned && bytes == 4) {
    for (const std::vector<int64_t>& flips : fragment.input("lane").bits)
      lanes.push_back({flips[0], flips[1], 0});
    return LinearLayout({{"lane", lanes}}, outputs);
  }
  for (int bit = 0; bit < kRowsOfMatrix; ++bit) {
    const int64_t row = int64_t{1} << bit;
    lanes.push_back({is_turned ? 0 : row, is_turned ? row : 0, 0});
  }
  for (const std::vector<int64_t>& flips : fragment.input("register").bits)
    lanes.push_back({flips[0], flips[1], 0});
  if (are_columns) lanes.push_back({0, 0, 1});
  return LinearLayout({{"lane", std::move(lanes)}}, outputs);
}

LoadsAtOnce loads_at_once(int64_t bytes, bool is_turned) {
  return is_turned && bytes == 4 ? LoadsAtOnce{4, 5}
                                 : LoadsAtOnce{ir::kMatrixRowBytes, kRowsOfMatrix};
}

LinearLayout places_of_lanes(const MatrixFactor& factor, bool are_columns) {
  const Strides strides = strides_of(factor);
  const bool has_tiles = are_columns && !factor.has_turned_bytes() && !factor.has_turned_words();
  const int64_t next = has_tiles ? factor.tiles[1] - factor.tiles[0] : 0;
  return loads_of_lanes(size_of(factor.buffer->type), factor.is_transposed, are_columns)
      .with_strides(std::array{strides.side, strides.step, next});
}

WordDistances word_distances(const MatrixFactor& factor, bool are_columns) {
  const Strides strides = strides_of(factor);
  const LinearLayout fragment = fragment_of(size_of(factor.buffer->type), are_columns)
                                    .with_strides(std::array{strides.side, strides.step});
  const auto at = [&](int64_t word) { return fragment.place(std::array<int64_t, 3>{0, word, 0}); };
  return are_columns ? WordDistances{at(1), factor.tiles[1] - factor.tiles[0]}
                     : WordDistances{at(1), at(2)};
}

}  // namespace kiln::analysis
