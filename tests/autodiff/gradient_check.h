#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/autodiff/differentiate.h"
#include "tests/support/tensors.h"

namespace kiln::testing {

/// A kernel of float64, with what it is called with.
struct GradientCase {
  std::string text;
  std::map<std::string, int64_t> sizes;
  /// Values of inputs by name; others are drawn between `least` and `most`, integers are 0.
  std::map<std::string, std::vector<double>> values;
  double least = -1;
  double most = 1;
  double tolerance = 1e-6;
};

/// The gradients of all outputs with respect to all floating inputs.
autodiff::Gradient gradient_of(const language::Kernel& kernel);

/// The text of the gradient's stages, as a kernel file has them, without names of sizes.
std::string gradient_text(std::string_view text);

/// Expects that gradients of sum(head * output), for drawn heads, are central differences within
/// the tolerance, relative or absolute, element by element.
void expect_gradients(const GradientCase& test);

/// Expects the same of the gradients of the gradients.
void expect_second_gradients(const GradientCase& test);

}  // namespace kiln::testing
