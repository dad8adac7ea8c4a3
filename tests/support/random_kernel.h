#pragma once

#include <map>
#include <string>

#include "tests/support/random.h"

namespace kiln::testing {

/// A kernel drawn at random, as the text of a .kiln file, and values for its sizes.
struct RandomKernel {
  std::string text;
  std::map<std::string, int64_t> sizes;
  bool has_scan = false;
  bool has_reduction = false;
  bool is_symbolic = false;
  int stages = 0;  // computed ones
};

/// One to five stages over tensors of one to three dimensions: element-wise, broadcast, permuted,
/// shifted (stencils), reductions, products, scans (single and multiple stages and states);
/// constant and symbolic sizes, small and mostly odd.
RandomKernel random_kernel(Random& random);

}  // namespace kiln::testing
