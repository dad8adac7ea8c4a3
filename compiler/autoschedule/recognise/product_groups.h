#pragma once

#include "compiler/autoschedule/recognise/chooser.h"

namespace kiln::autoschedule {

/// Steps of a contraction that the CPU adds with one instruction.
struct ProductGroup {
  int64_t products = 1;  // 1: it has none for the types
  AxisId axis = 0;       // of the reduction, of which they are neighbours
  bool turns_signs =
      false;  // of bytes of one kind, which takes a register more for a vector of columns
  bool copies_rows = false;     // where they are, neighbours of the row factor lie apart
  bool in_tiles = false;        // whole tiles of sums, by the matrix unit of the CPU
  bool in_tiles_alone = false;  // no instruction adds these products in vectors
  bool adds_words = false;      // as int16, which bytes are copied as: both factors are
};

/// Four products of bytes into an int32, or two where the CPU has no instruction for four, or two
/// of int16, or of bfloat16 into a float32, or of float16 by a matrix unit; where both factors may
/// be copied side by side.
ProductGroup product_group_of(const Chooser& chooser, StageId stage, const Contraction& found);

/// The same of patches of an image, whose steps are one loop over channels and window, in the order
/// in which the row factor has them in memory: whole groups of them, by an instruction of vectors.
ProductGroup patch_group_of(const Chooser& chooser, StageId stage, const Contraction& found);

}  // namespace kiln::autoschedule
