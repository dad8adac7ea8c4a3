#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/random.h"

namespace kiln::testing {

/// A kernel drawn at random, as the text of a .kiln file, and values for its sizes.
struct RandomKernel {
  std::string text;
  std::map<std::string, int64_t> sizes;
  std::set<std::string_view> kinds;  // of its stages, as kernel_kinds() calls them
  int stages = 0;                    // computed tensors
};

/// One to five stages over tensors of one to three dimensions, of the kinds that
/// tests/support/stage_kinds.h lists; constant and symbolic sizes, small and mostly odd.
RandomKernel random_kernel(Random& random);

/// What random_kernel() draws from.
std::vector<std::string_view> kernel_kinds();

}  // namespace kiln::testing
