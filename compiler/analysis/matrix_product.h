#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/launch.h"

namespace kiln::analysis {

/// A factor as the lanes of a warp load it: four times eight rows of 16 bytes at once, each row
/// from the address that one lane gives.
struct MatrixFactor {
  ir::BufferRef buffer;
  ir::Expr first;      // the element that lane 0 of the warp begins with
  bool is_transposed;  // its rows go along the other side of the matrix than its product wants
  int64_t row = 0;     // elements between the rows
  std::vector<int64_t> tiles;  // elements from `first` to each tile along the side

  /// Of 32 bits, and turned: lanes load the elements one by one.
  bool has_turned_words() const { return is_transposed && size_of(buffer->type) == 4; }
  /// Of 8 bits, and turned: what hardware turns are pairs of them, which lanes take apart.
  bool has_turned_bytes() const { return is_transposed && size_of(buffer->type) == 1; }
};

/// Products of 16 rows and 8 columns that one warp computes by mma.sync, of as many steps as
/// ir::matrix_unit says of the factors: the sums of tile (i, j) are at rows[i] + columns[j], with
/// those at the four places of a lane behind.
struct MatrixProduct {
  MatrixFactor rows;
  MatrixFactor columns;  // of an even number of tiles, two of them loaded at once
  ir::BufferRef sums;
  std::vector<int64_t> row_places;
  std::vector<int64_t> column_places;
  int64_t lower = 0;      // from a sum to that of the second row
  int64_t neighbour = 0;  // from a sum to that of the second column
};

/// What the loops inside of one over the steps of an instruction compute, if they are in the order
/// of a warp's fragments. The threads of the launch are `axes`: threadIdx.x of 4 and threadIdx.y
/// of 8.
///
///   for k in 0..16 { for m.. { for n.. { for i in 0..2 { for j in 0..2 {
///     C[m, n, i, j] = C[m, n, i, j] + float32(A[m*16 + i*8 + y, k])*float32(B[k, n*8 + x*2 + j])
///   } } } } }
///
/// C is a buffer of the thread, A and B are in shared memory. Of float32 factors, of which tf32()
/// is taken in the place of a cast, there are 8 steps. Of 8-bit factors there are 32, and those
/// that are transposed have other neighbours: a lane's rows are m*16 + y*2 + i, its columns n*16 +
/// x*4 + j*2 + t for t in 0..2, the innermost of the loops over tiles.
std::optional<MatrixProduct> find_matrix_product(const ir::For& loop,
                                                 const std::vector<const ir::For*>& axes);

}  // namespace kiln::analysis
