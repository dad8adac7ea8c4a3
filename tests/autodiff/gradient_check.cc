// Compares gradients with central differences: of each element of each input the outputs are
// evaluated a little above and a little below. In float64, with steps of 1e-5, what is left of the
// third derivative and of rounding is below 1e-9 for values around 1.
#include "tests/autodiff/gradient_check.h"

#include <cmath>

#include <gtest/gtest.h>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "compiler/language/text/text.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

using language::Kernel;
using language::TensorId;

std::vector<TensorId> inputs_of(const Kernel& kernel) {
  std::vector<TensorId> found;
  for (const TensorId parameter : kernel.definition.parameters) {
    if (!kernel.definition.is_output(parameter)) found.push_back(parameter);
  }
  return found;
}

/// A kernel's call: sizes by number, a tensor for each input.
struct Call {
  std::vector<int64_t> sizes;
  std::vector<HostTensor> inputs;
};

std::vector<int64_t> shape_at(const Kernel& kernel, TensorId tensor,
                              const std::vector<int64_t>& sizes) {
  std::vector<int64_t> shape;
  for (const language::ExprId extent : kernel.definition.shape_of(tensor))
    shape.push_back(language::evaluate_size(kernel.definition, extent, sizes));
  return shape;
}

HostTensor drawn(DType type, const std::vector<int64_t>& shape, double least, double most,
                 Random& random) {
  HostTensor tensor = zeros(type, shape);
  if (!is_float(type)) return tensor;
  for (int64_t i = 0; i < element_count(shape); ++i) {
    const double value = least + (most - least) * random.between(0, 1'000'000) * 1e-6;
    language::write_element(tensor, i, language::Scalar::of_float(type, value));
  }
  return tensor;
}

Call call_of(const Kernel& kernel, const GradientCase& test, Random& random) {
  Call call;
  for (const std::string& name : kernel.names.variables)
    call.sizes.push_back(test.sizes.at(name));
  for (const TensorId input : inputs_of(kernel)) {
    const DType type = kernel.definition.type_of(input);
    HostTensor tensor =
        drawn(type, shape_at(kernel, input, call.sizes), test.least, test.most, random);
    const auto given = test.values.find(kernel.names.stages[input.stage]);
    if (given != test.values.end()) {
      for (size_t i = 0; i < given->second.size(); ++i) {
        const double value = given->second[i];
        language::write_element(tensor, static_cast<int64_t>(i),
                                is_float(type)
                                    ? language::Scalar::of_float(type, value)
                                    : language::Scalar::of_int(type, static_cast<int64_t>(value)));
      }
    }
    call.inputs.push_back(std::move(tensor));
  }
  return call;
}

std::vector<HostTensor> run(const Kernel& kernel, const Call& call) {
  return language::evaluate(kernel.definition, kernel.names, call.sizes, call.inputs);
}

/// sum(head * output) over all floating outputs.
double loss(const Kernel& kernel, const Call& call, const std::vector<HostTensor>& heads) {
  double total = 0;
  size_t next = 0;
  for (const HostTensor& output : run(kernel, call)) {
    if (!is_float(output.type)) continue;
    const HostTensor& head = heads[next++];
    for (int64_t i = 0; i < element_count(output.shape); ++i) {
      total +=
          language::read_element(output, i).floating * language::read_element(head, i).floating;
    }
  }
  return total;
}

void expect_gradients(const Kernel& kernel, const Call& call, double tolerance, Random& random) {
  const autodiff::Gradient gradient = gradient_of(kernel);
  std::vector<HostTensor> heads;
  Call backward = call;
  for (const TensorId output : autodiff::whole_request(kernel).outputs) {
    heads.push_back(drawn(kernel.definition.type_of(output), shape_at(kernel, output, call.sizes),
                          -1, 1, random));
    backward.inputs.push_back(heads.back());
  }
  const std::vector<HostTensor> gradients = run(gradient.kernel, backward);
  constexpr double kStep = 1e-5;
  size_t next = 0;
  for (size_t input = 0; input < call.inputs.size(); ++input) {
    if (!is_float(call.inputs[input].type)) continue;
    const HostTensor& actual = gradients[next++];
    ASSERT_EQ(actual.shape, call.inputs[input].shape);
    for (int64_t i = 0; i < element_count(actual.shape); ++i) {
      Call moved = call;
      const double value = language::read_element(call.inputs[input], i).floating;
      const auto at = [&](double x) {
        language::write_element(moved.inputs[input], i, language::Scalar::of_float(actual.type, x));
        return loss(kernel, moved, heads);
      };
      const double expected = (at(value + kStep) - at(value - kStep)) / (2 * kStep);
      const double found = language::read_element(actual, i).floating;
      EXPECT_NEAR(found, expected, tolerance * std::max(1.0, std::abs(expected)))
          << "element " << i << " of the gradient of input " << input << " in\n"
          << language::print_text({gradient.kernel, {}});
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace

autodiff::Gradient gradient_of(const Kernel& kernel) {
  return autodiff::differentiate(kernel, autodiff::whole_request(kernel));
}

std::string gradient_text(std::string_view text) {
  return language::print_text({gradient_of(kernel_of(text).kernel).kernel, {}});
}

void expect_gradients(const GradientCase& test) {
  SCOPED_TRACE(test.text);
  Random random(7);
  const Kernel kernel = kernel_of(test.text).kernel;
  expect_gradients(kernel, call_of(kernel, test, random), test.tolerance, random);
}

void expect_second_gradients(const GradientCase& test) {
  SCOPED_TRACE(test.text);
  Random random(7);
  const Kernel kernel = gradient_of(kernel_of(test.text).kernel).kernel;
  expect_gradients(kernel, call_of(kernel, test, random), test.tolerance, random);
}

}  // namespace kiln::testing
