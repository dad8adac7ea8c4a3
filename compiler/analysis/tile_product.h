#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::analysis {

/// What a core's matrix unit holds: tiles of so many rows of so many bytes, which is 16 sums of 32
/// bits, and of factors four of 8 bits or two of 16 for each (Intel AMX).
inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileColumns = 16;
inline constexpr int64_t kTileGroups = 16;
inline constexpr int64_t kTiles = 8;

/// Tiles along an axis of so many rows, or columns.
inline int64_t tiles_along(int64_t count) { return (count + kTileRows - 1) / kTileRows; }

/// Groups of steps that go together along a loop of so many: as many as leave none over, or as a
/// tile has room for. A few less take as long, so that some are better left over than all short.
int64_t groups_at_once(int64_t groups);

/// Whether there are tiles for so many sums and for both factors of a step. A single row or column
/// is no product of matrices. What is left over of the steps has tiles of its own, beside one for
/// each factor, which must then be full, or the only one.
bool tiles_have_room(int64_t rows, int64_t columns, int64_t groups);

/// Cycles that the matrix unit of a core takes for one step of so many rows and columns. A product
/// of two tiles takes as many as it has rows, but not less than 9.3, however many columns and steps
/// there are: measured on Sapphire Rapids.
double cycles_of_step(int64_t rows, int64_t columns);

/// A loop over steps of a sum, and how far the factors move along it.
struct TileSteps {
  const ir::For* loop;
  int64_t extent;
  int64_t a = 0;  // elements
  int64_t b = 0;
};

/// Sums of `rows` x `columns` to which the products of all steps are added. Neighbours of a row of
/// sums lie side by side, and so do the `group` steps that one element of a tile is:
///
///   for k in 0..256 { for i in 0..32 { for j in 0..32 { for t in 0..4 {
///     C[i, j] = C[i, j] + int32(A[i, k*4 + t])*int32(B[k, j, t])
///   } } } }
///
/// Points into the statement that it was found in.
struct TileProduct {
  const ir::Store* sums = nullptr;
  const ir::Load* a = nullptr;  // of the rows; bfloat16, float16, int8 or uint8
  const ir::Load* b = nullptr;  // of the columns
  const ir::For* rows = nullptr;
  const ir::For* columns = nullptr;
  const ir::For* group = nullptr;
  std::vector<TileSteps> steps;  // outermost first; along the last, groups of `a` are neighbours
  int64_t row_count = 0;
  int64_t column_count = 0;
  int64_t group_size = 0;
  int64_t sums_row = 0;  // elements from a row of sums to the next
  int64_t a_row = 0;
  bool begins_with_zero = false;  // all sums; else with what is there
};

/// The product of a loop over steps, if it is one that tiles have room for.
std::optional<TileProduct> tile_product(const ir::For& loop);
/// The product that a statement was marked for.
std::optional<TileProduct> tile_product(const ir::MultiplyTiles& node);

}  // namespace kiln::analysis
