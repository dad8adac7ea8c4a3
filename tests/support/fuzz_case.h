#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/language/tables/step.h"
#include "compiler/language/text/text.h"
#include "tests/support/random_kernel.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// A kernel with a schedule, sizes, inputs, and what the definition evaluator makes of them.
struct FuzzCase {
  RandomKernel drawn;
  language::Kernel kernel;
  language::Schedule schedule;
  std::vector<int64_t> sizes;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> expected;
  bool stops = false;  // at an index outside of a tensor; `expected` then only has the shapes

  /// Empty, or how what `run` gives or throws differs from what the definition says.
  std::string difference_of(const std::function<std::vector<HostTensor>()>& run) const;
  /// The same of loops, run in the interpreter; of such that have their barriers, with a look for
  /// those that are missing.
  std::string difference_of(const ir::Kernel& loops, bool has_barriers = false) const;
};

/// The case of a seed: always the same one, until the tables it is drawn from change.
FuzzCase draw_case(uint64_t seed);

/// How to repeat the case, and what it is.
std::string describe(uint64_t seed, const FuzzCase& which);

/// For each parameter that is an input, in order: small whole numbers.
std::vector<HostTensor> random_inputs(const language::Kernel& kernel,
                                      const std::vector<int64_t>& sizes, Random& random);

/// Runs the loops in the interpreter; the outputs in order. What an output holds before is not
/// zero. `expected` gives their types and shapes.
std::vector<HostTensor> interpret_loops(const ir::Kernel& loops, const std::vector<int64_t>& sizes,
                                        const std::vector<HostTensor>& inputs,
                                        const std::vector<HostTensor>& expected,
                                        bool has_barriers = false);

/// Empty when the tensors are equal, where -0 is 0 and nan is nan, else where they differ first.
/// Numbers of output i may differ by errors[i]; by nothing where there is none.
std::string difference(const std::vector<HostTensor>& actual,
                       const std::vector<HostTensor>& expected, std::span<const double> errors);

}  // namespace kiln::testing
