#pragma once

#include "compiler/analysis/linear_layout.h"
#include "compiler/analysis/matrix_product.h"

namespace kiln::analysis {

/// Fragments of mma.sync: which element of its matrix a lane has. Of factors of 1, 2 and 4 bytes
/// the inputs are "element" (in a register), "register" and "lane", the outputs "side" (a row, or a
/// column) and "step"; of the sums they are "register" and "lane", and "row" and "column".
LinearLayout fragment_of_rows(int64_t bytes);
LinearLayout fragment_of_columns(int64_t bytes);
LinearLayout fragment_of_sums();

/// Which row of 16 bytes each "lane" gives to ldmatrix, by the first element of it, for factors of
/// so many bytes, turned or not: its "side", its "step", and its "tile", of which columns have two.
/// Words that are turned, lanes load one by one: the first one of each.
LinearLayout loads_of_lanes(int64_t bytes, bool is_turned, bool are_columns);
/// How many bytes of them, and by how many lanes at once: bits of their number.
struct LoadsAtOnce {
  int64_t bytes = 0;
  int lane_bits = 0;
};
LoadsAtOnce loads_at_once(int64_t bytes, bool is_turned);

/// Where the row begins that a "lane" gives to ldmatrix, in elements from the first of the factor's
/// tile, of rows, or of two tiles of columns; of words that are turned, which lanes load one by
/// one, where its first one lies.
LinearLayout places_of_lanes(const MatrixFactor& factor, bool are_columns);

/// Elements from there to what belongs into a lane's second and third word, where it loads them one
/// by one.
struct WordDistances {
  int64_t second = 0;
  int64_t third = 0;
};
WordDistances word_distances(const MatrixFactor& factor, bool are_columns);

}  // namespace kiln::analysis
