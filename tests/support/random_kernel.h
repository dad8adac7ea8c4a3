#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/language/evaluate/host_tensor.h"
#include "tests/support/kernel_writer.h"
#include "tests/support/random.h"

namespace kiln::testing {

/// A kernel drawn at random, as the text of a .kiln file, and values for its sizes.
struct RandomKernel {
  std::string text;
  std::map<std::string, int64_t> sizes;
  std::vector<DrawnInput> inputs;    // what to call it with
  std::vector<double> errors;        // how far rounding may move each output
  bool is_exact = true;              // not at all
  bool may_stop = false;             // at an index outside of a tensor
  std::set<std::string_view> kinds;  // of its stages, as kernel_kinds() calls them
  int stages = 0;                    // computed tensors
};

/// One to five stages over tensors of up to three dimensions, of the kinds that
/// tests/support/stage_kinds.h lists; constant and symbolic sizes, small and mostly odd, now and
/// then 0; all types.
RandomKernel random_kernel(Random& random);

/// What to call it with, a tensor for each of its inputs.
std::vector<language::HostTensor> random_inputs(const RandomKernel& kernel, Random& random);

/// What random_kernel() draws from.
std::vector<std::string_view> kernel_kinds();

}  // namespace kiln::testing
