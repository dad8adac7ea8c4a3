#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace kiln::testing {

/// A contraction as text, and sizes to call it with.
struct DrawnContraction {
  std::string text;
  std::vector<int64_t> sizes;
};

/// How long its axes are.
struct DrawnExtents {
  int least_of_side = 1;
  int most_of_side = 75;
  int least_of_sum = 1;
  int most_of_sum = 90;
};

/// A sum of products of 16-bit or 8-bit floats, of float32 numbers by tensor cores, or of integers:
/// of sizes that are no multiples of tiles, one in four open; up to two batches, which a factor may
/// do without; any order of dimensions; and something made of the sums.
DrawnContraction drawn_contraction(Random& random, const DrawnExtents& extents = {});

/// The text of one in which no tensor core multiplies float32 numbers.
std::string without_tf32(std::string text);

}  // namespace kiln::testing
