#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/language/kernel.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

using Axes = std::vector<std::pair<std::string, std::string>>;  // names with extents

/// An attention as text.
struct Attention {
  std::string type = "float16";
  Axes batches = {{"b", "3"}};
  std::pair<std::string, std::string> row = {"i", "70"};
  std::pair<std::string, std::string> key = {"j", "70"};
  std::pair<std::string, std::string> column = {"d", "16"};
  std::pair<std::string, std::string> depth = {"k", "16"};
  Axes query = {{"b", "3"}, {"i", "70"}, {"k", "16"}};
  Axes keys = {{"b", "3"}, {"j", "70"}, {"k", "16"}};
  Axes values = {{"b", "3"}, {"j", "70"}, {"d", "16"}};
  Axes output = {{"b", "3"}, {"i", "70"}, {"d", "16"}};
  std::string more;                // parameters
  std::string score = "T * 0.25";  // of the product T
  std::string result = "R";        // of the weighted sum R
  std::string output_type = "float32";

  std::string text() const;
};

/// Any sizes, one in four open; up to two batches, which keys and values may do without; any order
/// of dimensions; keys that are not seen, masks, biases; something made of the result.
std::string drawn_attention(Random& random, std::vector<int64_t>& sizes);

/// Numbers of both signs, so that scores differ by a few units.
HostTensor drawn_floats(DType type, std::vector<int64_t> shape, Random& random);

/// Such numbers for all inputs of an attention.
std::vector<HostTensor> drawn_inputs(const language::Kernel& kernel,
                                     const std::vector<int64_t>& sizes, Random& random);

/// That weights are rounded in another place than in the definition, and sums of another order.
/// `values` are what is weighted.
void expect_near(const HostTensor& actual, const HostTensor& expected, const HostTensor& values);

}  // namespace kiln::testing
