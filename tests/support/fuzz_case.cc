// One seed as a whole case: kernel, schedule, inputs and what the definition evaluator says. What a
// failed comparison prints repeats it.
#include "tests/support/fuzz_case.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "compiler/ir/interpret.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "compiler/language/state/schedule_state.h"
#include "runtime/core/error.h"
#include "tests/support/random_schedule.h"

namespace kiln::testing {
namespace {

using Tensors = std::vector<HostTensor>;

/// Wants threads that do not wait for each other to be found, or not.
class ThreadWatch : public ir::InterpretWatch {
 public:
  explicit ThreadWatch(bool wants_races) : wants_races_(wants_races) {}
  bool wants_races() const override { return wants_races_; }

 private:
  const bool wants_races_;
};

bool close(const language::Scalar& a, const language::Scalar& b, double error) {
  if (!is_float(a.type)) return a.integer == b.integer;
  if (std::isnan(a.floating) || std::isnan(b.floating)) {
    return std::isnan(a.floating) && std::isnan(b.floating);
  }
  return a.floating == b.floating || std::fabs(a.floating - b.floating) <= error;
}

std::string text_of(const language::Scalar& value) {
  return is_float(value.type) ? fmt::format("{}", value.floating)
                              : fmt::format("{}", value.integer);
}

HostTensor zeros_of(const language::Definition& definition, language::TensorId tensor,
                    const std::vector<int64_t>& sizes) {
  std::vector<int64_t> shape;
  for (const language::ExprId extent : definition.shape_of(tensor))
    shape.push_back(language::evaluate_size(definition, extent, sizes));
  return zeros(definition.type_of(tensor), shape);
}

Tensors empty_outputs(const language::Kernel& kernel, const std::vector<int64_t>& sizes) {
  Tensors outputs;
  for (const language::TensorId parameter : kernel.definition.parameters) {
    if (kernel.definition.is_output(parameter))
      outputs.push_back(zeros_of(kernel.definition, parameter, sizes));
  }
  return outputs;
}

}  // namespace

Tensors random_inputs(const language::Kernel& kernel, const std::vector<int64_t>& sizes,
                      Random& random) {
  Tensors inputs;
  for (const language::TensorId parameter : kernel.definition.parameters) {
    if (kernel.definition.is_output(parameter)) continue;
    HostTensor tensor = zeros_of(kernel.definition, parameter, sizes);
    for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
      const auto value = language::Scalar::of_int(DType::Int64, random.between(-4, 4));
      language::write_element(tensor, i, language::convert(tensor.type, value));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

FuzzCase draw_case(uint64_t seed) {
  Random random(seed);
  FuzzCase result;
  result.drawn = random_kernel(random);
  result.kernel = language::parse_text(result.drawn.text, "random.kiln").at(0).kernel;
  result.schedule = random_schedule(result.kernel.definition, random);
  for (const std::string& name : result.kernel.names.variables) {
    result.sizes.push_back(result.drawn.sizes.at(name));
  }
  result.inputs = random_inputs(result.drawn, random);
  try {
    result.expected = language::evaluate(result.kernel.definition, result.kernel.names,
                                         result.sizes, result.inputs);
  } catch (const Error& error) {
    if (!result.drawn.may_stop || error.reason() != "INDEX_OUT_OF_RANGE") throw;
    result.stops = true;
    result.expected = empty_outputs(result.kernel, result.sizes);
  }
  return result;
}

std::string FuzzCase::difference_of(const std::function<Tensors()>& run) const {
  try {
    const Tensors outputs = run();
    if (stops) return "an index outside of a tensor is not noticed";
    return difference(outputs, expected, drawn.errors);
  } catch (const Error& error) {
    if (error.reason() != "INDEX_OUT_OF_RANGE") throw;
    // What no output needs may be computed, or not.
    return stops || drawn.may_stop ? "" : error.message();
  }
}

std::string FuzzCase::difference_of(const ir::Kernel& loops, bool has_barriers) const {
  return difference_of(
      [&] { return interpret_loops(loops, sizes, inputs, expected, has_barriers); });
}

namespace {

/// The kernel with its schedule, whose last step may be one that the language refuses.
std::string text_of_case(const FuzzCase& which) {
  language::TextKernel text{which.kernel, {{"cpu", {}}}};
  language::ScheduleState state(which.kernel.definition, which.kernel.names);
  for (const language::Step& step : which.schedule.steps) {
    try {
      state.apply(step);
    } catch (const Error& error) {
      return fmt::format("{}then {}: {}\n", language::print_text(text), state.text_of(step),
                         error.message());
    }
    text.schedules[0].second.steps.push_back(step);
  }
  return language::print_text(text);
}

}  // namespace

std::string describe(uint64_t seed, const FuzzCase& which) {
  std::string sizes;
  for (const auto& [name, value] : which.drawn.sizes)
    sizes += fmt::format(" {}={}", name, value);
  return fmt::format("to repeat: KILN_FUZZ_SEED={} KILN_FUZZ_ROUNDS=1\nsizes:{}\n{}", seed, sizes,
                     text_of_case(which));
}

Tensors interpret_loops(const ir::Kernel& loops, const std::vector<int64_t>& sizes,
                        const Tensors& inputs, const Tensors& expected, bool has_barriers) {
  Tensors arguments;
  size_t next_input = 0;
  size_t next_output = 0;
  for (const bool is_output : loops.is_output) {
    if (is_output) {
      HostTensor tensor = expected.at(next_output++);
      // A schedule that leaves an element out must not find a 0 there.
      std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0x5a});
      arguments.push_back(std::move(tensor));
    } else {
      arguments.push_back(inputs.at(next_input++));
    }
  }
  ThreadWatch watch(has_barriers);
  ir::interpret(loops, sizes, arguments, watch);
  Tensors outputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (loops.is_output[i]) outputs.push_back(std::move(arguments[i]));
  }
  return outputs;
}

std::string difference(const Tensors& actual, const Tensors& expected,
                       std::span<const double> errors) {
  if (actual.size() != expected.size()) return "the number of outputs differs";
  for (size_t t = 0; t < actual.size(); ++t) {
    if (actual[t].shape != expected[t].shape)
      return fmt::format("the shape of output {} differs", t);
    if (actual[t].bytes == expected[t].bytes) continue;
    // Both results are rounded.
    const double error = t < errors.size() ? 2 * errors[t] : 0;
    for (int64_t i = 0; i < element_count(expected[t].shape); ++i) {
      const language::Scalar a = language::read_element(actual[t], i);
      const language::Scalar b = language::read_element(expected[t], i);
      if (!close(a, b, error)) {
        return fmt::format("output {}, element {}: {} instead of {}", t, i, text_of(a), text_of(b));
      }
    }
  }
  return "";
}

}  // namespace kiln::testing
