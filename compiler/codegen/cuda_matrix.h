#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/launch.h"

namespace kiln::codegen {

/// A factor as the lanes of a warp load it: eight by eight elements at once, each row of them from
/// the address that one lane gives.
struct MatrixFactor {
  ir::BufferRef buffer;
  ir::Expr first;      // the element that lane 0 of the warp begins with
  bool is_transposed;  // its rows go along the other side of the matrix than its product wants
  int64_t row = 0;     // elements between the rows of eight
  int64_t side = 0;    // to the eight rows (transposed: elements) behind along the side
  int64_t step = 0;    // to the eight behind along the sum
  std::vector<int64_t> tiles;  // elements from `first` to each tile along the side
};

/// Products of 16 rows, 8 columns and 16 steps that one warp computes by mma.sync: the sums of
/// tile (i, j) are at rows[i] + columns[j], with those at the four places of a lane behind.
struct MatrixProduct {
  MatrixFactor rows;
  MatrixFactor columns;  // of an even number of tiles, two of them loaded at once
  ir::BufferRef sums;
  std::vector<int64_t> row_places;
  std::vector<int64_t> column_places;
  int64_t lower = 0;      // from a sum to that eight rows below
  int64_t neighbour = 0;  // from a sum to that of the next column
};

/// What the loops inside of one over 16 steps compute, if they are in the order of a warp's
/// fragments. The threads of the launch are `axes`: threadIdx.x of 4 and threadIdx.y of 8.
///
///   for k in 0..16 { for m.. { for n.. { for i in 0..2 { for j in 0..2 {
///     C[m, n, i, j] = C[m, n, i, j] + float32(A[m*16 + i*8 + y, k])*float32(B[k, n*8 + x*2 + j])
///   } } } } }
///
/// C is a buffer of the thread, A and B are of float16 or bfloat16 in shared memory.
std::optional<MatrixProduct> find_matrix_product(const ir::For& loop,
                                                 const std::vector<const ir::For*>& axes);

}  // namespace kiln::codegen
